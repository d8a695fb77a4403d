/* sources: http/h1/server/request_head.c http/h1/head.c http/h1/field_lines.c http/fields.c http/control_fields.c http/content_length.c http/transfer_encoding.c http/target.c */
/* sources: http/authority.c http/text.c http/h1/line_errors.c http/rejection.c http/request_limits.c */
/* wrap: heddle_field_lines_read */
#include "../fuzz/request_head_fuzz.c"

enum { CHECK_CHOICES = 4 };

#include "http_corpus.h"

#include "http/h1/field_lines.h"
#include "http/field_names.h"

/* -- how much is read --------------------------------------------------------------------------------------------- */

static size_t bytes_read;

int64_t __real_heddle_field_lines_read(heddle_field_lines *lines, uint32_t start);
int64_t __wrap_heddle_field_lines_read(heddle_field_lines *lines, uint32_t start)
{
    bytes_read += lines->end - start;
    return __real_heddle_field_lines_read(lines, start);
}

/* A head of about this size: one line after the other, each with a value of `value` bytes. */
static size_t long_head(char *bytes, size_t size, size_t value)
{
    size_t at = (size_t)sprintf(bytes, "GET / HTTP/1.1\r\nHost: a\r\n");
    while (at < size) {
        at += (size_t)sprintf(bytes + at, "Cookie: ");
        memset(bytes + at, 'x', value);
        at += value;
        at += (size_t)sprintf(bytes + at, "\r\n");
    }
    return at + (size_t)sprintf(bytes + at, "\r\n");
}

static void head_that_comes_byte_by_byte_is_read_in_linear_time(void)
{
    static heddle_field fields[4096];
    const heddle_http_limits limits = {.request_line = 8192, .header = 40000, .header_count = 4096, .body = 1};
    const size_t values[] = {1, 20, 200, 250, 300, 4000, 29000};
    char *bytes = malloc(70000);
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        size_t size = long_head(bytes, 29000, values[i]);
        heddle_request_head head = {.fields = fields, .field_room = 4096};
        heddle_rejection rejection;
        bytes_read = 0;
        for (size_t end = 1; end < size; end++)
            CHECK_EQUAL(0, heddle_request_head_parse(&head, bytes, end, end - 1, &limits, &rejection));
        CHECK_EQUAL(size, heddle_request_head_parse(&head, bytes, size, size - 1, &limits, &rejection));
        CHECK(bytes_read < 400 * size); /* size * size / 2 would be 14,500 times the size */
    }
    free(bytes);
}

/* -- promises ----------------------------------------------------------------------------------------------------- */

static void corpus_of_request_heads_keeps_the_invariants(void)
{
    CHECK(check_corpus("request_head") >= 20);
}

/* Each end of the input meets each way to read: bytes singly, by eight and by sixteen. */
static void parser_reads_no_byte_behind_the_end(void)
{
    static const char head[] = "POST http://[2001:db8::1]:8080/a/b/c/d/e?f=g HTTP/1.1\r\n"
                               "Host: [2001:db8::192.0.2.1]:80\r\nUpgrade-Insecure-Requests: 1\r\n"
                               "X-Unknown-Name-That-Is-Longer-Than-All: \x80\xFF\r\n"
                               "TE:\r\nSec-WebSocket-Extensions: a\r\n"
                               "Transfer-Encoding: , chunked\r\nConnection: upgrade,\tclose\r\nUpgrade: a, b\r\n\r\n";
    check_promises(head, sizeof(head) - 1);
    char copy[sizeof(head)];
    for (size_t at = 0; at < sizeof(head) - 1; at++) {
        for (size_t i = 0; i < 6; i++) {
            memcpy(copy, head, sizeof(head));
            copy[at] = "\r\n\0 :\xFF"[i];
            check_promises(copy, at + 1);
        }
    }
}

/* What an input of the fuzzer's cannot: all bytes at all places of a small head. */
static void any_byte_at_any_place_keeps_the_invariants(void)
{
    static const char head[] = "GET /a HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n";
    char copy[sizeof(head)];
    for (size_t at = 0; at < sizeof(head) - 1; at++) {
        memcpy(copy, head, sizeof(head));
        for (int byte = 0; byte < 256; byte++) {
            heddle_http_limits limits = fuzz_limits(0);
            outcome out, again;
            copy[at] = (char)byte;
            parse(&out, copy, sizeof(head) - 1, 0, &limits);
            if (out.result > 0)
                check_meaning(&out, copy, sizeof(head) - 1, &limits);
            parse(&again, copy, at + 1, 0, &limits);
            CHECK(again.result == 0 || again.result == out.result);
        }
    }
}

static void refused_at_once(const char *bytes, int status)
{
    outcome out;
    heddle_http_limits limits = fuzz_limits(0);
    parse(&out, bytes, strlen(bytes), 0, &limits);
    CHECK_EQUAL(-1, out.result);
    CHECK_EQUAL(status, out.rejection.status);
}

static void error_is_reported_as_soon_as_its_last_byte_has_come(void)
{
    refused_at_once("(", 400);
    refused_at_once("GET /#", 400);
    refused_at_once("GET / HTTP/1.1\n", 400);
    refused_at_once("GET / HTTP/2.0\r\n", 505);
    refused_at_once("GET / HTTP/1.1\r\n ", 400);
    refused_at_once("GET / HTTP/1.1\r\nA ", 400);
    refused_at_once("GET / HTTP/1.1\r\nA: b\n", 400);
    refused_at_once("GET * HTTP/1.1\r\n", 400);
}

/* -- framing ------------------------------------------------------------------------------------------------------ */

static void refused(const char *lines, int status, const char *reason)
{
    char head[512];
    outcome out;
    heddle_http_limits limits = fuzz_limits(0);
    size_t size = (size_t)snprintf(head, sizeof(head), "POST / HTTP/1.1\r\nHost: a\r\n%s\r\n", lines);
    parse(&out, head, size, 0, &limits);
    CHECK_EQUAL(-1, out.result);
    CHECK_EQUAL(status, out.rejection.status);
    if (!strstr(out.rejection.reason, reason))
        printf("    %s: %s\n", lines, out.rejection.reason);
    CHECK(strstr(out.rejection.reason, reason));
}

/* A proxy before us may have read the other one: what follows the body would be a request of somebody else's. */
static void body_with_an_ambiguous_end_is_rejected(void)
{
    refused("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400, "Content-Length and Transfer-Encoding");
    refused("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400, "Content-Length and Transfer-Encoding");
    refused("transfer-encoding: CHUNKED\r\nA: b\r\ncontent-length: 0\r\n", 400, "Content-Length and Transfer-Encoding");
    refused("Content-Length: 5\r\nContent-Length: 6\r\n", 400, "Content-Length");
    refused("Content-Length: 5, 6\r\n", 400, "Content-Length");
    refused("Content-Length: +5\r\n", 400, "Content-Length");
    refused("Content-Length: -5\r\n", 400, "Content-Length");
    refused("Content-Length: 0x5\r\n", 400, "Content-Length");
    refused("Content-Length: \r\n", 400, "Content-Length");
    refused("Content-Length: 99999999999999999999\r\n", 413, "larger");
    refused("Transfer-Encoding: chunked, chunked\r\n", 400, "");
    refused("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400, "");
    refused("Transfer-Encoding: chunked, identity\r\n", 400, "");
    refused("Transfer-Encoding: gzip, chunked\r\n", 501, "");
    refused_at_once("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
}

/* A cache or a proxy may have taken the other host. */
static void ambiguous_host_is_rejected(void)
{
    refused("Host: a\r\n", 400, "Host");
    refused("Content-Length: 0\r\nhost: b\r\n", 400, "Host");
    refused_at_once("GET / HTTP/1.1\r\nHost: [::1:2:3:4:5:6:7:8:9]\r\n\r\n", 400);
    refused_at_once("GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7]\r\n\r\n", 400);
    refused_at_once("GET / HTTP/1.1\r\nHost: [::1]:65536x\r\n\r\n", 400);
}

/* -- names -------------------------------------------------------------------------------------------------------- */

static void known_field_names_are_found_in_upper_and_lower_case(void)
{
    unsigned used[1 << HEDDLE_FIELD_SLOT_BITS] = {0};
    for (int id = 1; id < HEDDLE_FIELD_COUNT; id++) {
        const char *name = heddle_field_name((heddle_field_id)id);
        size_t size = strlen(name);
        CHECK(size >= HEDDLE_FIELD_SHORTEST && size < HEDDLE_KNOWN_NAME_ROOM);
        CHECK_EQUAL(id, heddle_field_find(name, size));
        char other[HEDDLE_KNOWN_NAME_ROOM];
        for (int way = 0; way < 4; way++) { /* upper case, first letters, every second one, the last */
            for (size_t i = 0; i < size; i++) {
                int up = way == 0 || (way == 1 && (i == 0 || name[i - 1] == '-')) || (way == 2 && i % 2) ||
                         (way == 3 && i == size - 1);
                other[i] = up && name[i] >= 'a' ? (char)(name[i] - 32) : name[i];
            }
            CHECK_EQUAL(id, heddle_field_find(other, size));
        }
    }
    for (unsigned slot = 0; slot < 1 << HEDDLE_FIELD_SLOT_BITS; slot++)
        used[heddle_field_slots[slot]]++;
    for (int id = 1; id < HEDDLE_FIELD_COUNT; id++)
        CHECK_EQUAL(1, used[id]);
}

/* In the lines of a head as alone: by vectors and by single bytes. */
static void field_name_that_differs_by_one_byte_is_unknown(void)
{
    char line[128];
    const heddle_http_limits limits = fuzz_limits(2);
    for (int id = 1; id < HEDDLE_FIELD_COUNT; id++) {
        const char *name = heddle_field_name((heddle_field_id)id);
        size_t size = strlen(name);
        for (size_t at = 0; at < size; at++) {
            for (int byte = 1; byte < 256; byte++) {
                int same = (byte | (name[at] >= 'a' ? 0x20 : 0)) == name[at];
                int start = sprintf(line, "GET / HTTP/1.0\r\n");
                memcpy(line + start, name, size);
                line[start + (int)at] = (char)byte;
                CHECK_EQUAL(same ? id : 0, heddle_field_find(line + start, size));
                int rest = sprintf(line + start + size, ": a value that is long enough\r\n\r\n");
                size_t total = (size_t)start + size + (size_t)rest;
                outcome out;
                parse(&out, line, total, 0, &limits);
                if (out.result > 0 && out.fields[0].name.size == size)
                    CHECK_EQUAL(same ? id : 0, out.fields[0].id);
                if (!fuzz_is_token(line + start, size) && byte != ':')
                    CHECK_EQUAL(-1, out.result);
            }
        }
        CHECK_EQUAL(0, heddle_field_find(name, size - 1));
    }
    CHECK_EQUAL(0, heddle_field_find("", 0));
    CHECK_EQUAL(0, heddle_field_find("x", 1));
    CHECK_EQUAL(0, heddle_field_find("a-name-that-is-longer-than-all-that-are-known", 45));
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("request head", "corpus of request heads keeps the invariants",
              corpus_of_request_heads_keeps_the_invariants);
    check_run("request head", "parser reads no byte behind the end", parser_reads_no_byte_behind_the_end);
    check_run("request head", "any byte at any place keeps the invariants", any_byte_at_any_place_keeps_the_invariants);
    check_run("request head", "error is reported as soon as its last byte has come",
              error_is_reported_as_soon_as_its_last_byte_has_come);
    check_run("request head", "head that comes byte by byte is read in linear time",
              head_that_comes_byte_by_byte_is_read_in_linear_time);
    check_run("request head", "body with an ambiguous end is rejected", body_with_an_ambiguous_end_is_rejected);
    check_run("request head", "ambiguous host is rejected", ambiguous_host_is_rejected);
    check_run("field names", "known field names are found in upper and lower case",
              known_field_names_are_found_in_upper_and_lower_case);
    check_run("field names", "field name that differs by one byte is unknown",
              field_name_that_differs_by_one_byte_is_unknown);
    return check_end();
}
