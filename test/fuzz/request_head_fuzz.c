/* sources: http/h1/server/request_head.c http/h1/head.c http/h1/field_lines.c http/fields.c http/control_fields.c
   http/content_length.c http/transfer_encoding.c http/target.c http/authority.c http/text.c http/h1/line_errors.c
   http/rejection.c http/request_limits.c */

/* Request heads: any bytes give one result, however they are cut, and what is accepted means what it says. */

#include "fuzz.h"

#include "http/fields.h"

typedef struct {
    heddle_request_head head;
    heddle_field fields[FUZZ_FIELDS];
    heddle_rejection rejection;
    int result;
} outcome;

static void parse(outcome *out, const char *bytes, size_t size, size_t seen, const heddle_http_limits *limits)
{
    char *copy = fuzz_copy(bytes, size);
    out->head = (heddle_request_head){.fields = out->fields, .field_room = FUZZ_FIELDS};
    out->result = heddle_request_head_parse(&out->head, copy, size, seen, limits, &out->rejection);
    PROMISE(out->result >= -1 && (out->result <= 0 || (size_t)out->result <= size));
    if (out->result < 0) {
        PROMISE(out->rejection.status == 400 || out->rejection.status == 413 || out->rejection.status == 414 ||
                out->rejection.status == 417 || out->rejection.status == 431 || out->rejection.status == 501 ||
                out->rejection.status == 505);
        PROMISE(strlen(out->rejection.reason) > 10 && strlen(out->rejection.reason) < sizeof(out->rejection.reason) - 1);
    }
    free(copy);
}

static void same(const outcome *a, const outcome *b)
{
    PROMISE(a->result == b->result);
    if (a->result < 0)
        PROMISE(a->rejection.status == b->rejection.status);
    if (a->result <= 0)
        return;
    heddle_request_head left = a->head, right = b->head;
    left.fields = right.fields = NULL;
    PROMISE(memcmp(&left.method, &right.method, sizeof(left.method)) == 0 && left.line_count == right.line_count);
    PROMISE(left.field_count == right.field_count && left.content_length == right.content_length);
    PROMISE(left.minor == right.minor && left.keep_alive == right.keep_alive && left.upgrade == right.upgrade);
    PROMISE(left.path.start == right.path.start && left.path.size == right.path.size);
    PROMISE(left.host.start == right.host.start && left.host.size == right.host.size);
    for (unsigned i = 0; i < left.field_count; i++) {
        const heddle_field *one = &a->fields[i], *other = &b->fields[i];
        PROMISE(one->id == other->id && one->name.start == other->name.start && one->value.start == other->value.start);
        PROMISE(one->name.size == other->name.size && one->value.size == other->value.size);
    }
}

static unsigned count_of(const outcome *out, heddle_field_id id)
{
    unsigned count = 0;
    for (unsigned i = 0; i < out->head.field_count; i++)
        count += out->fields[i].id == id;
    return count;
}

/* What no accepted head may be. */
static void check_meaning(const outcome *out, const char *bytes, size_t size, const heddle_http_limits *limits)
{
    const heddle_request_head *head = &out->head;
    size_t start = size >= 2 && memcmp(bytes, "\r\n", 2) == 0 ? 2 : 0, end = (size_t)out->result;
    PROMISE(head->size == end);
    fuzz_clean_lines(bytes + start, end - start);
    fuzz_fields(bytes, head->fields, head->field_count, end, 0);
    PROMISE(head->method.start == start && fuzz_is_token(bytes + start, head->method.size));
    PROMISE(head->target.start == start + head->method.size + 1 && head->target.size > 0);
    for (uint32_t i = 0; i < head->target.size; i++)
        PROMISE((uint8_t)bytes[head->target.start + i] > ' ' && bytes[head->target.start + i] != 0x7F);
    const char *version = bytes + head->target.start + head->target.size;
    PROMISE(memcmp(version, " HTTP/1.", 8) == 0 && memcmp(version + 9, "\r\n", 2) == 0);
    PROMISE(head->minor == (version[8] != '0'));
    PROMISE((size_t)(version + 11 - bytes) + head->field_bytes == end && head->field_bytes <= limits->header);
    PROMISE((size_t)(version + 9 - bytes) - start <= limits->request_line);
    PROMISE(head->line_count <= limits->header_count && head->field_count <= head->line_count);

    fuzz_inside(head->path, end);
    fuzz_inside(head->query, end);
    fuzz_inside(head->authority, end);
    fuzz_inside(head->host, end);
    fuzz_inside(head->port, end);
    PROMISE(!memchr(bytes + head->path.start, '?', head->path.size));
    PROMISE(head->path.size > 0 || head->method_id == HEDDLE_OPTIONS);

    PROMISE(count_of(out, HEDDLE_FIELD_HOST) <= 1 && (count_of(out, HEDDLE_FIELD_HOST) == 1 || head->minor == 0));
    if (head->content_length >= 0) {
        PROMISE(count_of(out, HEDDLE_FIELD_CONTENT_LENGTH) && !count_of(out, HEDDLE_FIELD_TRANSFER_ENCODING));
        PROMISE((uint64_t)head->content_length <= limits->body);
    } else if (head->content_length == HEDDLE_CHUNKED_BODY) {
        PROMISE(count_of(out, HEDDLE_FIELD_TRANSFER_ENCODING) && !count_of(out, HEDDLE_FIELD_CONTENT_LENGTH));
        PROMISE(head->minor == 1);
    } else {
        PROMISE(!count_of(out, HEDDLE_FIELD_TRANSFER_ENCODING) && !count_of(out, HEDDLE_FIELD_CONTENT_LENGTH));
    }
    PROMISE(head->minor == 1 || (!head->expects_continue && !head->upgrade));
    for (unsigned i = 0; i < head->field_count; i++) {
        const heddle_field *field = &head->fields[i];
        PROMISE(field->id == heddle_field_find(bytes + field->name.start, field->name.size));
        PROMISE(limits->keep_underscores || !memchr(bytes + field->name.start, '_', field->name.size));
    }
}

/* The head as it was understood, written anew, is understood in the same way. */
static void check_rewritten(const outcome *out, const char *bytes, const heddle_http_limits *limits)
{
    const heddle_request_head *head = &out->head;
    char *text = malloc((size_t)out->result + 4 * (size_t)head->field_count + 4);
    PROMISE(text);
    size_t size = 0;
#define ADD(from, count) (memcpy(text + size, (from), (count)), size += (count))
    ADD(bytes + head->method.start, head->method.size);
    ADD(" ", 1);
    ADD(bytes + head->target.start, head->target.size);
    ADD(head->minor ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n", 11);
    for (unsigned i = 0; i < head->field_count; i++) {
        ADD(bytes + head->fields[i].name.start, head->fields[i].name.size);
        ADD(":", 1);
        ADD(bytes + head->fields[i].value.start, head->fields[i].value.size);
        ADD("\r\n", 2);
    }
    ADD("\r\n", 2);
#undef ADD
    outcome again;
    parse(&again, text, size, 0, limits);
    PROMISE(again.result == (int)size);
    PROMISE(again.head.content_length == head->content_length && again.head.keep_alive == head->keep_alive);
    PROMISE(again.head.expects_continue == head->expects_continue && again.head.upgrade == head->upgrade);
    PROMISE(again.head.has_host == head->has_host && again.head.host.size == head->host.size);
    PROMISE(memcmp(text + again.head.host.start, bytes + head->host.start, head->host.size) == 0);
    PROMISE(again.head.path.size == head->path.size && again.head.query.size == head->query.size);
    PROMISE(memcmp(text + again.head.path.start, bytes + head->path.start, head->path.size) == 0);
    free(text);
}

static void check_cut(const outcome *whole, const char *bytes, size_t size, size_t cut,
                      const heddle_http_limits *limits)
{
    outcome first, then;
    parse(&first, bytes, cut, 0, limits);
    if (first.result == 0) {
        parse(&then, bytes, size, cut, limits);
        same(whole, &then);
    } else {
        same(whole, &first);
    }
}

static void check_byte_by_byte(const outcome *whole, const char *bytes, size_t size, const heddle_http_limits *limits)
{
    outcome one = {.result = 0};
    for (size_t end = 1; end <= size && one.result == 0; end++)
        parse(&one, bytes, end, end - 1, limits);
    same(whole, &one);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    heddle_http_limits limits = fuzz_limits(*data);
    const char *bytes = (const char *)data + 1;
    outcome whole;
    parse(&whole, bytes, --size, 0, &limits);
    if (whole.result > 0) {
        check_meaning(&whole, bytes, size, &limits);
        check_rewritten(&whole, bytes, &limits);
    }
    size_t step = size <= FUZZ_EVERY_CUT ? 1 : 16;
    for (size_t cut = 1; cut < size; cut += step)
        check_cut(&whole, bytes, size, cut, &limits);
    if (size <= 4 * FUZZ_EVERY_CUT)
        check_byte_by_byte(&whole, bytes, size, &limits);
    return 0;
}
