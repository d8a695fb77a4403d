#ifndef HEDDLE_REQUEST_LABEL_H
#define HEDDLE_REQUEST_LABEL_H

/*
 * The label of a request: its method and path, with `:id` in place of what names one of many (numbers, UUIDs, long
 * hexadecimal words). The stall history and the metrics count requests by it. This is the only place that decides what
 * is part of a label. No Ruby here.
 */

#include <stddef.h>

enum {
    HEDDLE_REQUEST_LABEL = 160, /* bytes, with a NUL; a longer label is cut */
};

/* The target may have a query, or be absolute. Returns the bytes written, without the NUL. */
size_t heddle_request_label_write(char label[HEDDLE_REQUEST_LABEL], const char *method, size_t method_size,
                                  const char *target, size_t target_size);

#endif
