#pragma once

/*
 * The queued output of a connection: copied bytes, and references to frozen Strings. While a connection is idle, the
 * queue is empty. The protocols then also free its memory (heddle_output_clear).
 */

#include <ruby.h>
#include <sys/uio.h>

typedef struct {
    /* a frozen String, marked and pinned by heddle_sockets; 0: the bytes are in the queue's own memory */
    VALUE string;
    size_t start, end; /* offsets in the String, or in the queue's memory */
} heddle_piece;

typedef struct {
    char *bytes;
    size_t used, room;
    heddle_piece *pieces;
    unsigned first, count, piece_room;
    size_t size; /* the number of bytes in all pieces */
    uint64_t sent; /* the number of bytes sent so far, through the queue or directly */
} heddle_output;

enum {
    HEDDLE_OUTPUT_COPIED = 8192, /* Strings up to this size are copied */
    HEDDLE_OUTPUT_FULL = 262144, /* when the queue has this size, a fiber that writes waits … */
    HEDDLE_OUTPUT_LOW = 65536,   /* … until the queue has shrunk to this size */
    HEDDLE_OUTPUT_AT_ONCE = 65536, /* deferred output is sent at once when it reaches this size */
    HEDDLE_OUTPUT_PART = 262144, /* the maximum number of bytes that one turn of a connection sends (io_turns.h) */
};

/* Adds a copy of the bytes. Returns false, and adds nothing, if memory is exhausted. */
bool heddle_output_add_bytes(heddle_output *output, const char *bytes, size_t size);
/*
 * Adds the part of the String from `start` on. A short part is copied; otherwise the String must be frozen, because the
 * queue refers to it. Returns false if memory is exhausted.
 */
bool heddle_output_add_string(heddle_output *output, VALUE string, size_t start);
/*
 * Returns room for `size` bytes at the end, or NULL if memory is exhausted. After the caller has written bytes there,
 * heddle_output_added adds them to the output.
 */
char *heddle_output_reserve(heddle_output *output, size_t size);
void heddle_output_added(heddle_output *output, size_t size);

/*
 * Removes these bytes from the end of the queue. Returns false, and changes nothing, if the queue does not end with
 * them.
 */
bool heddle_output_take_back(heddle_output *output, const char *bytes, size_t size);

/* Sets up to `most` entries of `pieces` to the beginning of the output. Returns how many entries were set. */
int heddle_output_gather(const heddle_output *output, struct iovec *pieces, int most);
/* Removes the first `sent` bytes after they were sent, and counts them. */
void heddle_output_advance(heddle_output *output, size_t sent);
void heddle_output_mark(const heddle_output *output);
/* Drops the output and frees the queue's memory. */
void heddle_output_clear(heddle_output *output);
