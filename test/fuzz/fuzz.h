#ifndef HEDDLE_FUZZ_H
#define HEDDLE_FUZZ_H

/*
 * What the fuzz targets share. Every piece of input is a copy of exactly its size, so that AddressSanitizer sees a byte
 * that is read behind it.
 */

#include "http/message.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROMISE(condition)                                                                                            \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition);                           \
            abort();                                                                                                  \
        }                                                                                                             \
    } while (0)

enum {
    FUZZ_FIELDS = 100,
    FUZZ_EVERY_CUT = 300, /* longer inputs are cut at every 16th place */
};

/* The first byte of an input chooses among limits: bit 0: low ones, bit 1: names with underscores are kept. */
static inline heddle_http_limits fuzz_limits(uint8_t choice)
{
    heddle_http_limits limits = {
        .request_line = 8192, .header = 32768, .header_count = FUZZ_FIELDS, .body = 1 << 30, .chunk_extension = 4096,
        .chunk_overhead = 16384,
    };
    if (choice & 1) {
        limits = (heddle_http_limits){.request_line = 24, .header = 60, .header_count = 3, .body = 20,
                                      .chunk_extension = 8, .chunk_overhead = 16};
    }
    limits.keep_underscores = (choice & 2) != 0;
    return limits;
}

static inline char *fuzz_copy(const char *bytes, size_t size)
{
    char *copy = malloc(size ? size : 1);
    PROMISE(copy);
    if (size)
        memcpy(copy, bytes, size);
    return copy;
}

static inline void fuzz_inside(heddle_slice slice, size_t size)
{
    PROMISE(slice.start <= size && slice.size <= size - slice.start);
}

static inline int fuzz_same(const char *bytes, heddle_slice a, heddle_slice b)
{
    return a.size == b.size && memcmp(bytes + a.start, bytes + b.start, a.size) == 0;
}

static inline int fuzz_is_token(const char *text, size_t size)
{
    static const char allowed[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (size_t i = 0; i < size; i++) {
        if (!text[i] || !strchr(allowed, text[i]))
            return 0;
    }
    return size > 0;
}

/* No control characters but tabs and CR LF; the empty line is the end and nowhere else. */
static inline void fuzz_clean_lines(const char *head, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (head[i] == '\r')
            PROMISE(i + 1 < size && head[i + 1] == '\n');
        else if (head[i] == '\n')
            PROMISE(i > 0 && head[i - 1] == '\r');
        else
            PROMISE(((uint8_t)head[i] >= 0x20 && head[i] != 0x7F) || head[i] == '\t');
        if (i + 4 < size)
            PROMISE(memcmp(head + i, "\r\n\r\n", 4) != 0);
    }
    PROMISE(size >= 4 && memcmp(head + size - 4, "\r\n\r\n", 4) == 0);
}

static inline void fuzz_fields(const char *bytes, const heddle_field *fields, unsigned count, size_t size, int folded)
{
    for (unsigned i = 0; i < count; i++) {
        heddle_slice name = fields[i].name, value = fields[i].value;
        fuzz_inside(name, size);
        fuzz_inside(value, size);
        PROMISE(fuzz_is_token(bytes + name.start, name.size));
        PROMISE(bytes[name.start + name.size] == ':');
        if (value.size) {
            PROMISE(!strchr(" \t\r\n", bytes[value.start]));
            PROMISE(!strchr(" \t\r\n", bytes[value.start + value.size - 1]));
        }
        PROMISE(folded || !memchr(bytes + value.start, '\r', value.size));
        PROMISE(folded || !memchr(bytes + value.start, '\n', value.size));
    }
}

#endif
