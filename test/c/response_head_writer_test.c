/* sources: http/response_head_writer.c http/date_line.c http/status.c http/text.c */
#include "check.h"
#include "http/field_value.h"
#include "http/response_head_writer.h"

#include <ctype.h>

/*
 * What the rules say about answers is checked through Ruby, in test/http/h1/answer_rules_test.rb; here is what is out
 * of its reach: memory that is too small, every byte at every place, every date.
 */

enum { ROOM = 2048 };

static char memory[ROOM];

static heddle_buffer empty(void)
{
    return (heddle_buffer){.bytes = memory, .used = 0, .room = sizeof(memory)};
}

static heddle_head_writer answer_with(int status)
{
    return (heddle_head_writer){.request = HEDDLE_GET, .minor = 1, .status = status, .keep_alive = true, .length = -1};
}

static void check_text(const char *expected, const heddle_buffer *out)
{
    if (out->used != strlen(expected) || memcmp(expected, out->bytes, out->used) != 0) {
        printf("    not %s but %.*s\n", expected, (int)out->used, out->bytes);
        fflush(stdout);
        _exit(1);
    }
}

static const char date[] = "date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";

static void write_whole(heddle_buffer *out, heddle_head_form form)
{
    heddle_head_writer answer = answer_with(426);
    answer.form = form;
    heddle_head_writer_begin(&answer, out);
    CHECK_EQUAL(HEDDLE_FIELD_WRITTEN,
                heddle_head_writer_field(&answer, out, "X-Longer-Than-All-That-Are-Taken", 32, "a", 1));
    CHECK_EQUAL(HEDDLE_FIELD_WRITTEN, heddle_head_writer_field(&answer, out, "Upgrade", 7, "x", 1));
    CHECK_EQUAL(HEDDLE_FIELD_WRITTEN, heddle_head_writer_plain_field(&answer, out, "x", 1, "", 0));
    CHECK_EQUAL(HEDDLE_FIELD_TAKEN, heddle_head_writer_field(&answer, out, "Connection", 10, "x, Close", 8));
    CHECK_EQUAL(HEDDLE_FIELD_TAKEN,
                heddle_head_writer_field(&answer, out, "Content-Length", 14, "9223372036854775807", 19));
    heddle_head_writer_end(&answer, out, date, sizeof(date) - 1, NULL, 0);
    CHECK_EQUAL(HEDDLE_CONTENT_BY_LENGTH, answer.framing);
    CHECK_EQUAL(INT64_MAX, answer.length);
    CHECK(!answer.keep_alive);
}

/* Each room up to what it takes. */
static void check_small_buffers(heddle_head_form form, size_t needed)
{
    heddle_buffer none = {0};
    write_whole(&none, form);
    CHECK_EQUAL(needed, none.used);
    for (size_t room = 0; room < needed; room++) {
        char *exact = malloc(room + 1);
        exact[room] = 42;
        heddle_buffer small = {.bytes = exact, .room = room};
        write_whole(&small, form);
        CHECK_EQUAL(needed, small.used);
        CHECK_EQUAL(42, exact[room]);
        free(exact);
    }
}

static void too_small_buffer_reports_the_needed_size(void)
{
    heddle_buffer whole = empty();
    write_whole(&whole, HEDDLE_AS_LINES);
    check_text("HTTP/1.1 426 Upgrade Required\r\nx-longer-than-all-that-are-taken: a\r\nupgrade: x\r\nx: \r\n"
               "date: Thu, 01 Jan 1970 00:00:00 GMT\r\ncontent-length: 9223372036854775807\r\n"
               "connection: upgrade\r\nconnection: close\r\n\r\n", &whole);
    check_small_buffers(HEDDLE_AS_LINES, whole.used);
}

/* The packed fields as text, one a line. */
static heddle_buffer unpack(const heddle_buffer *packed)
{
    static char text[ROOM];
    heddle_buffer out = {.bytes = text, .room = sizeof(text)};
    for (size_t at = 0; at < packed->used;) {
        heddle_packed_field size;
        memcpy(&size, packed->bytes + at, sizeof(size));
        const char *name = packed->bytes + at + sizeof(size);
        out.used += (size_t)snprintf(text + out.used, ROOM - out.used, "%.*s: %.*s\n", (int)size.name_size, name,
                                     (int)size.value_size, name + size.name_size);
        at += sizeof(size) + size.name_size + size.value_size;
    }
    return out;
}

static void packed_fields_omit_fields_about_the_connection(void)
{
    heddle_buffer packed = empty();
    write_whole(&packed, HEDDLE_AS_FIELDS);
    heddle_buffer text = unpack(&packed);
    check_text("x-longer-than-all-that-are-taken: a\nupgrade: x\nx: \ndate: Thu, 01 Jan 1970 00:00:00 GMT\n"
               "content-length: 9223372036854775807\n", &text);
    check_small_buffers(HEDDLE_AS_FIELDS, packed.used);

    heddle_head_writer chunked = answer_with(200), empty_one = answer_with(205);
    chunked.form = empty_one.form = HEDDLE_AS_FIELDS;
    packed.used = 0;
    heddle_head_writer_begin(&chunked, &packed);
    heddle_head_writer_end(&chunked, &packed, "", 0, NULL, 0);
    CHECK_EQUAL(0, packed.used);
    CHECK_EQUAL(HEDDLE_CONTENT_CHUNKED, chunked.framing);
    heddle_head_writer_begin(&empty_one, &packed);
    heddle_head_writer_end(&empty_one, &packed, "", 0, NULL, 0);
    text = unpack(&packed);
    check_text("content-length: 0\n", &text);
}

static void rejected_fields_leave_no_bytes(void)
{
    heddle_buffer out = empty();
    heddle_head_writer answer = answer_with(200);
    heddle_head_writer_begin(&answer, &out);
    size_t used = out.used;
    CHECK_EQUAL(HEDDLE_BAD_VALUE, heddle_head_writer_field(&answer, &out, "date", 4, "\n", 1));
    CHECK_EQUAL(HEDDLE_BAD_VALUE, heddle_head_writer_field(&answer, &out, "upgrade", 7, "x\r\ny", 4));
    CHECK_EQUAL(HEDDLE_BAD_VALUE, heddle_head_writer_field(&answer, &out, "connection", 10, "close\n", 6));
    CHECK_EQUAL(HEDDLE_BAD_NAME, heddle_head_writer_field(&answer, &out, "", 0, "x", 1));
    CHECK_EQUAL(HEDDLE_BAD_NAME,
                heddle_head_writer_field(&answer, &out, "x-longer-than-all-that-are:taken", 32, "x", 1));
    CHECK_EQUAL(HEDDLE_BAD_LENGTH,
                heddle_head_writer_field(&answer, &out, "content-length", 14, "9223372036854775808", 19));
    CHECK_EQUAL(HEDDLE_BAD_CODING,
                heddle_head_writer_field(&answer, &out, "transfer-encoding", 17, "chunked, chunked", 16));
    CHECK_EQUAL(used, out.used);
    CHECK(!answer.declared_date && !answer.declared_upgrade && !answer.declared_close && !answer.declared_chunked);
    CHECK_EQUAL(-1, answer.declared_length);
}

static void forbidden_bytes_are_found_at_every_place_of_a_value(void)
{
    for (size_t size = 1; size < 80; size++) {
        char *value = malloc(size); /* so that a sanitizer sees what is read beyond */
        for (size_t at = 0; at < size; at++) {
            for (int byte = 0; byte < 256; byte++) {
                memset(value, 0x0B, size); /* one bit away from LF, and near CR */
                value[at] = (char)byte;
                CHECK_EQUAL(byte == '\r' || byte == '\n' || byte == 0, heddle_value_is_forbidden(value, size));
            }
        }
        free(value);
    }
    CHECK(!heddle_value_is_forbidden(NULL, 0));
}

static void names_may_have_only_bytes_of_tokens(void)
{
    for (size_t size = 1; size < 24; size++) {
        for (int byte = 0; byte < 256; byte++) {
            char name[24];
            memset(name, 'x', size);
            name[size - 1] = (char)byte;
            bool good = byte && byte < 128 && (isalnum(byte) || strchr("!#$%&'*+-.^_`|~", byte));
            heddle_buffer out = empty();
            heddle_head_writer answer = answer_with(200);
            heddle_field_result result = heddle_head_writer_field(&answer, &out, name, size, "v", 1);
            CHECK_EQUAL(good ? HEDDLE_FIELD_WRITTEN : HEDDLE_BAD_NAME, result);
            CHECK_EQUAL(good, heddle_head_writer_plain_name(name, size));
            if (good)
                CHECK_EQUAL(tolower(byte), memory[size - 1]);
        }
    }
}

static void plain_names_are_fields_that_the_server_only_copies(void)
{
    static const char *const meaning[] = {
        "date", "status", "upgrade", "connection", "keep-alive", "content-length", "proxy-connection",
        "transfer-encoding", "Transfer-Encoding", "rack.hijack", "rack.", "", "a b",
    };
    static const char *const plain[] = {"dates", "etag", "rack", "content-type", "X-Frame-Options", "cache-control"};
    for (size_t i = 0; i < sizeof(meaning) / sizeof(*meaning); i++)
        CHECK(!heddle_head_writer_plain_name(meaning[i], strlen(meaning[i])));
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        CHECK(heddle_head_writer_plain_name(plain[i], strlen(plain[i])));
}

static void dates_are_correct_for_ten_thousand_years(void)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    /* The calendar repeats itself, days of the week included, after 400 years: 146,097 days. Of the other times some. */
    for (int64_t day = -719528; day <= 2932896; day += day >= 0 && day < 146097 ? 1 : 23) {
        time_t seconds = (time_t)(day * 86400 + (day * 7919 % 86400 + 86400) % 86400);
        struct tm tm;
        gmtime_r(&seconds, &tm);
        char expected[64], line[38];
        snprintf(expected, sizeof(expected), "date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n", days[tm.tm_wday],
                 tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
        heddle_date_line(line, seconds);
        if (strcmp(expected, line) != 0) {
            printf("    not %s but %s", expected, line);
            CHECK(false);
        }
    }
    char line[38];
    heddle_date_line(line, 784111777);
    CHECK_EQUAL(0, strcmp("date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", line));
    heddle_date_line(line, INT64_MAX);
    CHECK_EQUAL(0, strcmp("date: Fri, 31 Dec 9999 23:59:59 GMT\r\n", line));
    heddle_date_line(line, INT64_MIN);
    CHECK_EQUAL(0, strcmp("date: Sat, 01 Jan 0000 00:00:00 GMT\r\n", line));
}

static void chunk_heads_have_the_size_in_hexadecimal(void)
{
    for (int bit = 0; bit < 64; bit++) {
        for (int more = -1; more <= 1; more++) {
            size_t size = ((size_t)1 << bit) + (size_t)more;
            char expected[32], head[18];
            int length = snprintf(expected, sizeof(expected), "%zx\r\n", size);
            CHECK_EQUAL(length, heddle_chunk_head(head, size));
            CHECK_EQUAL(0, memcmp(expected, head, (size_t)length));
        }
    }
}

static void rejections_are_complete_responses(void)
{
    heddle_rejection rejection = {.status = 503, .reason = "too much is asked at once"};
    heddle_buffer out = empty();
    heddle_rejection_write(&rejection, &out, date, sizeof(date) - 1, true, "1");
    check_text("HTTP/1.1 503 Service Unavailable\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
               "content-type: text/plain; charset=utf-8\r\ncontent-length: 52\r\nretry-after: 1\r\n"
               "connection: close\r\n\r\n503 Service Unavailable: too much is asked at once.\n", &out);
    size_t used = out.used;
    out.used = 0;
    heddle_rejection_write(&rejection, &out, date, sizeof(date) - 1, false, "1");
    CHECK_EQUAL(used - 52, out.used);

    rejection.status = 499;
    memset(rejection.reason, 'x', sizeof(rejection.reason) - 1); /* the longest */
    out.used = 0;
    heddle_rejection_write(&rejection, &out, date, sizeof(date) - 1, true, NULL);
    out.bytes[out.used] = 0;
    CHECK(strstr(out.bytes, "HTTP/1.1 499 \r\n") == out.bytes);
    CHECK(strstr(out.bytes, "\r\ncontent-length: 124\r\n"));
    CHECK(strstr(out.bytes, "\r\n\r\n499 Error: xxx"));
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("answer", "packed fields omit fields about the connection",
              packed_fields_omit_fields_about_the_connection);
    check_run("answer", "too small buffer reports the needed size", too_small_buffer_reports_the_needed_size);
    check_run("answer", "rejected fields leave no bytes", rejected_fields_leave_no_bytes);
    check_run("answer", "forbidden bytes are found at every place of a value",
              forbidden_bytes_are_found_at_every_place_of_a_value);
    check_run("answer", "names may have only bytes of tokens", names_may_have_only_bytes_of_tokens);
    check_run("answer", "plain names are fields that the server only copies",
              plain_names_are_fields_that_the_server_only_copies);
    check_run("answer", "dates are correct for ten thousand years", dates_are_correct_for_ten_thousand_years);
    check_run("answer", "chunk heads have the size in hexadecimal", chunk_heads_have_the_size_in_hexadecimal);
    check_run("answer", "rejections are complete responses", rejections_are_complete_responses);
    return check_end();
}
