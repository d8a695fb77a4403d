#pragma once

/*
 * A growing buffer. Its contents are the bytes from `start` to `size`; the bytes before `start` have been consumed.
 * `room` is the size of the allocation. A record of zeros is an empty buffer.
 */

#include "system.h"

typedef struct {
    char *bytes;
    size_t start, size, room;
} heddle_bytes;

/* Makes room for `more` bytes after the contents. Returns false, and keeps the contents, if memory is exhausted. */
static inline bool heddle_bytes_reserve(heddle_bytes *bytes, size_t more)
{
    if (bytes->room - bytes->size >= more)
        return true;
    if (bytes->start > 0) {
        memmove(bytes->bytes, bytes->bytes + bytes->start, bytes->size - bytes->start);
        bytes->size -= bytes->start;
        bytes->start = 0;
        if (bytes->room - bytes->size >= more)
            return true;
    }
    size_t room = bytes->room ? bytes->room : 256;
    while (room - bytes->size < more)
        room *= 2;
    char *grown = realloc(bytes->bytes, room);
    if (!grown)
        return false;
    bytes->bytes = grown;
    bytes->room = room;
    return true;
}

static inline bool heddle_bytes_add(heddle_bytes *bytes, const void *more, size_t size)
{
    if (!heddle_bytes_reserve(bytes, size))
        return false;
    if (size > 0)
        memcpy(bytes->bytes + bytes->size, more, size);
    bytes->size += size;
    return true;
}

static inline size_t heddle_bytes_left(const heddle_bytes *bytes)
{
    return bytes->size - bytes->start;
}

static inline char *heddle_bytes_first(const heddle_bytes *bytes)
{
    return bytes->bytes + bytes->start;
}

/* Empties the buffer. Frees its memory if that is larger than `keep` bytes. */
static inline void heddle_bytes_reset(heddle_bytes *bytes, size_t keep)
{
    bytes->start = bytes->size = 0;
    if (bytes->room > keep) {
        free(bytes->bytes);
        bytes->bytes = NULL;
        bytes->room = 0;
    }
}

/* Consumes bytes. Frees the memory when none are left, so that an idle connection has no buffer. */
static inline void heddle_bytes_use(heddle_bytes *bytes, size_t size)
{
    bytes->start += size;
    if (bytes->start == bytes->size)
        heddle_bytes_reset(bytes, 0);
}
