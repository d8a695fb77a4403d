/* sources: http/h1/chunked_decoder.c http/text.c http/h1/line_errors.c http/rejection.c http/request_limits.c */

/*
 * Chunked bodies: any bytes give one result, however they are cut and wherever the data goes, and a body that is
 * accepted is what a second, slow reading of the bytes finds.
 */

#include "fuzz.h"

typedef struct {
    char *data;
    size_t length, used;
    int status; /* 0: not refused */
    bool done;
} outcome;

/* One piece after the other; a piece ends after `step` bytes, the first after `first`. */
static void decode(outcome *out, const char *bytes, size_t size, size_t first, size_t step, bool in_place,
                   const heddle_http_limits *limits)
{
    heddle_chunked chunked;
    heddle_rejection rejection;
    heddle_chunked_start(&chunked, 20, 1);
    *out = (outcome){.data = malloc(size + 1)};
    PROMISE(out->data);
    size_t at = 0;
    for (size_t end = first < size ? first : size; at < size; end = size - end > step ? end + step : size) {
        size_t room = end - at, length;
        char *piece = fuzz_copy(bytes + at, room), *data = in_place ? piece : malloc(room ? room : 1);
        PROMISE(data);
        int64_t used = heddle_chunked_decode(&chunked, piece, room, data, &length, limits, &rejection);
        PROMISE(length <= room && used <= (int64_t)room);
        memcpy(out->data + out->length, data, length);
        out->length += length;
        if (!in_place)
            free(data);
        free(piece);
        if (used < 0) {
            PROMISE(rejection.status == 400 || rejection.status == 413 || rejection.status == 431);
            out->status = rejection.status;
            return;
        }
        PROMISE(chunked.done || used == (int64_t)room);
        at += (size_t)used;
        out->used = at;
        out->done = chunked.done;
        if (chunked.done)
            return;
    }
}

static void same(const outcome *a, outcome *b)
{
    PROMISE(a->status == b->status && a->done == b->done && a->length == b->length);
    PROMISE(memcmp(a->data, b->data, a->length) == 0);
    PROMISE(a->status || a->used == b->used);
    free(b->data);
}

/* Line by line, of a body that has been found to be complete. */
static void read_again(const outcome *out, const char *bytes)
{
    char *text = malloc(out->used + 1);
    PROMISE(text);
    memcpy(text, bytes, out->used);
    text[out->used] = '\0';
    size_t length = 0;
    const char *at = text;
    char *digits_end; /* out here: in the loop gcc 12 takes `at` for a pointer to it, where no sanitizer is on */
    for (;;) {
        PROMISE(strchr("0123456789abcdefABCDEF", *at) && *at);
        unsigned long long size = strtoull(at, &digits_end, 16);
        PROMISE(digits_end - at <= 16 && strchr(" \t;\r", *digits_end));
        const char *line_end = strstr(digits_end, "\r\n");
        PROMISE(line_end);
        at = line_end + 2;
        if (size == 0)
            break;
        PROMISE(size <= out->length - length && memcmp(out->data + length, at, size) == 0);
        length += size;
        PROMISE(memcmp(at + size, "\r\n", 2) == 0);
        at += size + 2;
    }
    PROMISE(length == out->length);
    if (memcmp(at, "\r\n", 2) != 0)
        fuzz_clean_lines(at, out->used - (size_t)(at - text));
    else
        PROMISE((size_t)(at + 2 - text) == out->used);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    heddle_http_limits limits = fuzz_limits(*data & 1);
    const char *bytes = (const char *)data + 1;
    outcome whole, other;
    size--;
    decode(&whole, bytes, size, size, size, false, &limits);
    PROMISE(whole.length <= limits.body);
    if (whole.done && !memchr(bytes, '\0', whole.used))
        read_again(&whole, bytes);
    decode(&other, bytes, size, size, size, true, &limits);
    same(&whole, &other);
    decode(&other, bytes, size, 1, 1, true, &limits);
    same(&whole, &other);
    size_t step = size <= FUZZ_EVERY_CUT ? 1 : 16;
    for (size_t cut = 1; cut < size; cut += step) {
        decode(&other, bytes, size, cut, size, cut & 1, &limits);
        same(&whole, &other);
    }
    free(whole.data);
    return 0;
}
