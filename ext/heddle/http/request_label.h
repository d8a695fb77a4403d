#ifndef HEDDLE_REQUEST_LABEL_H
#define HEDDLE_REQUEST_LABEL_H

/*
 * The label of a request: its method and path, with `:id` in place of what may name one of many, or be a secret: numbers,
 * segments of more than 15 characters that have a digit or are no words, and what has other characters than
 * letters, digits, `-`, `_`, `.`, `:` and `*`. A method that is no registered one may be is `OTHER`. The stall history
 * and the metrics count requests by it. This is the only place that decides what is part of a label. No Ruby here.
 */

#include <stddef.h>
#include <stdint.h>

enum {
    HEDDLE_REQUEST_LABEL = 160, /* bytes, with a NUL; a longer label is cut */
};

/* The target may have a query, or be absolute. Returns the bytes written, without the NUL. */
size_t heddle_request_label_write(char label[HEDDLE_REQUEST_LABEL], const char *method, size_t method_size,
                                  const char *target, size_t target_size);

/* A number that stands for the label, never 0. Different labels have different ones, but for one case in 2^32. */
uint32_t heddle_request_label_hash(const char *method, size_t method_size, const char *target, size_t target_size);
/* The same for bytes that begin with a request line; 0: too little of it is there. */
uint32_t heddle_request_label_hash_line(const char *bytes, size_t size);

#endif
