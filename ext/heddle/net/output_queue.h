#ifndef HEDDLE_OUTPUT_QUEUE_H
#define HEDDLE_OUTPUT_QUEUE_H

/*
 * The output of a connection, in order: copied bytes, and frozen Strings that are not copied. It is empty, and
 * holds no memory, while a connection is idle.
 */

#include <ruby.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

typedef struct {
    VALUE string;      /* frozen, marked and pinned by the sockets; 0: these bytes are the queue's own */
    size_t start, end; /* in the string, or in the queue's bytes */
} heddle_piece;

typedef struct {
    char *bytes;
    size_t used, room;
    heddle_piece *pieces;
    unsigned first, count, piece_room;
    size_t size; /* in all */
} heddle_output;

enum {
    HEDDLE_OUTPUT_COPIED = 8192, /* a string up to this size is copied */
    HEDDLE_OUTPUT_FULL = 262144, /* a writer waits … */
    HEDDLE_OUTPUT_LOW = 65536,   /* … until no more than this is left */
    HEDDLE_OUTPUT_AT_ONCE = 65536, /* deferred output is sent once it is this much */
};

/* Copies. false: no memory, and nothing was added. */
bool heddle_output_add_bytes(heddle_output *output, const char *bytes, size_t size);
/* Copies a short one, keeps a long one, which must be frozen and from `start` on. */
bool heddle_output_add_string(heddle_output *output, VALUE string, size_t start);
/* Room at the end for so many bytes, which count once `heddle_output_added` says how many they were. */
char *heddle_output_reserve(heddle_output *output, size_t size);
void heddle_output_added(heddle_output *output, size_t size);

/* Takes these bytes off the end. false: the queue ends with others, and stays as it is. */
bool heddle_output_take_back(heddle_output *output, const char *bytes, size_t size);

int heddle_output_gather(const heddle_output *output, struct iovec *pieces, int most);
void heddle_output_advance(heddle_output *output, size_t sent);
void heddle_output_mark(const heddle_output *output);
void heddle_output_clear(heddle_output *output);

#endif
