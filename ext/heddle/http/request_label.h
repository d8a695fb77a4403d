#pragma once

/*
 * The label of a request: its method and path, with `:id` instead of each segment that may be an identifier or a
 * secret. Such segments are numbers; segments of more than 15 characters that have a digit or are not words; and
 * segments with other characters than letters, digits, `-`, `_`, `.`, `:` and `*`. A format such as `.json` is kept. A
 * method that can't be a registered one becomes `OTHER`. The stall history and the metrics use labels. Uses no
 * Ruby.
 */

#include "system.h"

enum {
    HEDDLE_REQUEST_LABEL = 160, /* bytes, including a NUL; a longer label is cut */
};

/* Writes the label of a request. The target may have a query, or be absolute. Returns the size without the NUL. */
size_t heddle_request_label_write(char label[HEDDLE_REQUEST_LABEL], const char *method, size_t method_size,
                                  const char *target, size_t target_size);

/* Returns a hash of the label, which is never 0. Two different labels share a hash with a probability of 2^-32. */
uint32_t heddle_request_label_hash(const char *method, size_t method_size, const char *target, size_t target_size);
/* Returns the same hash for bytes that begin with a request line, or 0 if there are too few bytes. */
uint32_t heddle_request_label_hash_line(const char *bytes, size_t size);
