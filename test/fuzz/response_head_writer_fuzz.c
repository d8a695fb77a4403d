/* sources: http/response_head_writer.c http/status.c http/date_line.c http/h1/client/response_head.c http/h1/head.c
   http/h1/field_lines.c http/fields.c http/control_fields.c http/content_length.c http/transfer_encoding.c http/text.c http/h1/line_errors.c
   http/rejection.c http/request_limits.c */

/*
 * Whatever an application answers, the head that is written is one that our own client reads, and it says the same.
 * Input: three bytes of choices, then lines "name=value", each ended by a byte 1.
 */

#include "fuzz.h"

#include "http/response_head_writer.h"

static const char date[] = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

static const int statuses[] = {200, 101, 202, 200, 201, 204, 205, 206, 299, 301, 304, 400, 404, 500, 503, 999};
static const heddle_method methods[] = {HEDDLE_GET, HEDDLE_HEAD, HEDDLE_POST, HEDDLE_CONNECT};

enum {
    ROOM = 1 << 16,
    WRITTEN_ELSEWHERE = 5, /* date, content-length, transfer-encoding, connection, upgrade */
};

/* Values may hold control characters that a client need not take. */
static int is_plain(const char *value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (((uint8_t)value[i] < 0x20 && value[i] != '\t') || value[i] == 0x7F)
            return 0;
    }
    return 1;
}

static void check_length(const heddle_head_writer *answer, const heddle_response_head *head)
{
    switch (answer->framing) {
    case HEDDLE_NO_CONTENT:
        PROMISE(head->content_length == HEDDLE_NO_BODY || (answer->status == 205 && head->content_length == 0));
        break;
    case HEDDLE_CONTENT_BY_LENGTH:
        PROMISE(head->content_length == answer->length);
        break;
    case HEDDLE_CONTENT_CHUNKED:
        PROMISE(head->content_length == HEDDLE_CHUNKED_BODY);
        break;
    case HEDDLE_CONTENT_UNTIL_CLOSE:
        PROMISE(head->until_close || (answer->declared_chunked && head->content_length == HEDDLE_CHUNKED_BODY));
        break;
    case HEDDLE_CONTENT_RAW:
        PROMISE(head->upgrade);
        break;
    }
}

/* Each packed field is a line, in the same order. */
static void check_packed(const heddle_buffer *packed, const heddle_buffer *lines)
{
    const char *line = lines->bytes, *end = lines->bytes + lines->used;
    for (size_t at = 0; at < packed->used;) {
        heddle_packed_field size;
        PROMISE(packed->used - at >= sizeof(size));
        memcpy(&size, packed->bytes + at, sizeof(size));
        at += sizeof(size);
        PROMISE(packed->used - at >= (size_t)size.name_size + size.value_size);
        const char *name = packed->bytes + at, *value = name + size.name_size;
        at += size.name_size + size.value_size;
        do {
            line = memchr(line, '\n', (size_t)(end - line));
            PROMISE(line);
            line++;
        } while ((size_t)(end - line) < size.name_size + size.value_size + 4 ||
                 memcmp(line, name, size.name_size) != 0 || memcmp(line + size.name_size, ": ", 2) != 0 ||
                 memcmp(line + size.name_size + 2, value, size.value_size) != 0 ||
                 memcmp(line + size.name_size + 2 + size.value_size, "\r\n", 2) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    heddle_head_writer answer = {
        .request = methods[data[0] & 3], .minor = (data[0] >> 2) & 1, .status = statuses[data[1] & 15],
        .keep_alive = (data[0] >> 3) & 1, .until_close = (data[0] >> 4) & 1, .length = data[0] & 32 ? data[2] : -1,
    };
    char *bytes = malloc(ROOM);
    PROMISE(bytes);
    heddle_buffer out = {.bytes = bytes, .room = ROOM}, packed = {.bytes = malloc(ROOM), .room = ROOM};
    PROMISE(packed.bytes);
    heddle_head_writer same = answer;
    same.form = HEDDLE_AS_FIELDS;
    heddle_head_writer_begin(&answer, &out);
    heddle_head_writer_begin(&same, &packed);

    unsigned written = 0;
    int plain = 1;
    const char *at = (const char *)data + 3, *end = (const char *)data + size;
    while (at < end) {
        const char *stop = memchr(at, 1, (size_t)(end - at));
        if (!stop)
            stop = end;
        const char *mark = memchr(at, '=', (size_t)(stop - at));
        if (!mark)
            break;
        char *name = fuzz_copy(at, (size_t)(mark - at)), *value = fuzz_copy(mark + 1, (size_t)(stop - mark - 1));
        size_t before = out.used;
        heddle_field_result result = heddle_head_writer_field(&answer, &out, name, (size_t)(mark - at), value,
                                                         (size_t)(stop - mark - 1));
        PROMISE(result == HEDDLE_FIELD_WRITTEN ? out.used > before : out.used == before);
        PROMISE(result == heddle_head_writer_field(&same, &packed, name, (size_t)(mark - at), value,
                                              (size_t)(stop - mark - 1)));
        if (result == HEDDLE_FIELD_WRITTEN) {
            written++;
            plain &= is_plain(value, (size_t)(stop - mark - 1));
            PROMISE(!memchr(value, '\r', (size_t)(stop - mark - 1)) && !memchr(value, '\n', (size_t)(stop - mark - 1)));
        }
        free(name);
        free(value);
        at = stop < end ? stop + 1 : end;
    }
    heddle_head_writer_end(&answer, &out, date, sizeof(date) - 1, "x", data[0] & 64 ? 1 : 0);
    heddle_head_writer_end(&same, &packed, date, sizeof(date) - 1, "x", data[0] & 64 ? 1 : 0);
    PROMISE(same.framing == answer.framing && same.length == answer.length && same.keep_alive == answer.keep_alive);
    if (out.used <= ROOM && packed.used <= ROOM)
        check_packed(&packed, &out);
    free(packed.bytes);
    if (out.used > ROOM || written + WRITTEN_ELSEWHERE > FUZZ_FIELDS) {
        free(bytes);
        return 0;
    }

    heddle_field fields[FUZZ_FIELDS];
    heddle_response_head head = {.fields = fields, .field_room = FUZZ_FIELDS};
    heddle_rejection rejection;
    heddle_http_limits limits = fuzz_limits(0);
    limits.header = ROOM;
    limits.body = INT64_MAX - 1;
    char *copy = fuzz_copy(bytes, out.used);
    int result = heddle_response_head_parse(&head, answer.request, copy, out.used, 0, &limits, &rejection);
    /* No client takes it: the parser's numbers end where another digit could overflow. */
    int too_long = answer.framing == HEDDLE_CONTENT_BY_LENGTH && answer.length / 10 > (INT64_MAX - 9) / 10;
    if ((plain && !too_long) || result > 0) {
        PROMISE(result == (int)out.used);
        PROMISE(head.status == answer.status && head.minor == 1);
        PROMISE(head.field_count >= written && head.field_count <= written + WRITTEN_ELSEWHERE);
        check_length(&answer, &head);
        PROMISE(answer.minor == 0 || answer.framing == HEDDLE_CONTENT_RAW || head.keep_alive == answer.keep_alive);
    }
    free(copy);
    free(bytes);
    return 0;
}
