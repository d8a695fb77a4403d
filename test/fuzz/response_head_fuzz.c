/* sources: http/h1/client/response_head.c http/h1/head.c http/h1/field_lines.c http/fields.c http/control_fields.c
   http/content_length.c http/transfer_encoding.c http/text.c http/h1/line_errors.c http/rejection.c http/request_limits.c */

/* Heads of answers: any bytes give one result, however they are cut, and what is accepted means what it says. */

#include "fuzz.h"

typedef struct {
    heddle_response_head head;
    heddle_field fields[FUZZ_FIELDS];
    heddle_rejection rejection;
    int result;
} outcome;

static heddle_method request;

static void parse(outcome *out, const char *bytes, size_t size, size_t seen, const heddle_http_limits *limits)
{
    char *copy = fuzz_copy(bytes, size);
    out->head = (heddle_response_head){.fields = out->fields, .field_room = FUZZ_FIELDS};
    out->result = heddle_response_head_parse(&out->head, request, copy, size, seen, limits, &out->rejection);
    PROMISE(out->result >= -1 && (out->result <= 0 || (size_t)out->result <= size));
    PROMISE(out->result >= 0 || out->rejection.status == 502);
    free(copy);
}

static void same(const outcome *a, const outcome *b)
{
    PROMISE(a->result == b->result);
    if (a->result <= 0)
        return;
    const heddle_response_head *left = &a->head, *right = &b->head;
    PROMISE(left->status == right->status && left->minor == right->minor && left->field_count == right->field_count);
    PROMISE(left->content_length == right->content_length && left->until_close == right->until_close);
    PROMISE(left->keep_alive == right->keep_alive && left->folded == right->folded);
    for (unsigned i = 0; i < left->field_count; i++) {
        const heddle_field *one = &a->fields[i], *other = &b->fields[i];
        PROMISE(one->id == other->id && one->name.start == other->name.start && one->value.start == other->value.start);
        PROMISE(one->name.size == other->name.size && one->value.size == other->value.size);
    }
}

static void check_meaning(const outcome *out, const char *bytes, const heddle_http_limits *limits)
{
    const heddle_response_head *head = &out->head;
    size_t end = (size_t)out->result;
    PROMISE(head->size == end);
    fuzz_clean_lines(bytes, end);
    fuzz_fields(bytes, head->fields, head->field_count, end, head->folded);
    fuzz_inside(head->reason, end);
    PROMISE(head->status >= 100 && head->status <= 999 && head->field_bytes <= limits->header);
    PROMISE(head->line_count <= limits->header_count && head->field_count <= head->line_count);
    int bare = head->upgrade || request == HEDDLE_HEAD || head->status < 200 || head->status == 204 ||
               head->status == 304;
    PROMISE(!bare || (head->content_length == HEDDLE_NO_BODY && !head->until_close));
    PROMISE(bare || head->until_close == (head->content_length == HEDDLE_NO_BODY));
    PROMISE(!head->keep_alive || !(head->until_close || head->upgrade));
    PROMISE(head->content_length < 0 || (uint64_t)head->content_length <= limits->body);
    PROMISE(head->content_length != HEDDLE_CHUNKED_BODY || head->minor == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    heddle_http_limits limits = fuzz_limits(*data & 1);
    request = *data & 4 ? HEDDLE_HEAD : *data & 8 ? HEDDLE_CONNECT : HEDDLE_GET;
    const char *bytes = (const char *)data + 1;
    outcome whole, one;
    parse(&whole, bytes, --size, 0, &limits);
    if (whole.result > 0)
        check_meaning(&whole, bytes, &limits);
    size_t step = size <= FUZZ_EVERY_CUT ? 1 : 16;
    for (size_t cut = 1; cut < size; cut += step) {
        parse(&one, bytes, cut, 0, &limits);
        if (one.result == 0)
            parse(&one, bytes, size, cut, &limits);
        same(&whole, &one);
    }
    if (size <= 4 * FUZZ_EVERY_CUT) {
        one.result = 0;
        for (size_t end = 1; end <= size && one.result == 0; end++)
            parse(&one, bytes, end, end - 1, &limits);
        same(&whole, &one);
    }
    return 0;
}
