#pragma once

/*
 * The output of a connection, in order: copied bytes, and frozen Strings that are not copied. It is empty, and
 * holds no memory, while a connection is idle.
 */

#include <ruby.h>
#include <sys/uio.h>

typedef struct {
    VALUE string;      /* frozen; the sockets mark and pin it; 0: the bytes are in the queue's own memory */
    size_t start, end; /* offsets in the string, or in the queue's memory */
} heddle_piece;

typedef struct {
    char *bytes;
    size_t used, room;
    heddle_piece *pieces;
    unsigned first, count, piece_room;
    size_t size; /* bytes of all pieces */
    uint64_t sent; /* all bytes sent so far, through the queue or without it */
} heddle_output;

enum {
    HEDDLE_OUTPUT_COPIED = 8192, /* a shorter string is copied */
    HEDDLE_OUTPUT_FULL = 262144, /* a writer waits from this size on … */
    HEDDLE_OUTPUT_LOW = 65536,   /* … until the queue is down to this size */
    HEDDLE_OUTPUT_AT_ONCE = 65536, /* deferred output of this size is sent at once */
    HEDDLE_OUTPUT_PART = 262144, /* bytes that are sent before other connections get their turn (io_turns.h) */
};

/* Copies the bytes. If out of memory, returns false and adds nothing. */
bool heddle_output_add_bytes(heddle_output *output, const char *bytes, size_t size);
/* Adds the string from `start` on. A short one is copied. A long one is kept, so it must be frozen. */
bool heddle_output_add_string(heddle_output *output, VALUE string, size_t start);
/* Makes room for `size` bytes at the end. heddle_output_added then adds the bytes that were written there. */
char *heddle_output_reserve(heddle_output *output, size_t size);
void heddle_output_added(heddle_output *output, size_t size);

/*
 * Removes these bytes from the end of the queue. If the queue does not end with them, returns false and changes
 * nothing.
 */
bool heddle_output_take_back(heddle_output *output, const char *bytes, size_t size);

int heddle_output_gather(const heddle_output *output, struct iovec *pieces, int most);
void heddle_output_advance(heddle_output *output, size_t sent);
void heddle_output_mark(const heddle_output *output);
void heddle_output_clear(heddle_output *output);
