#ifndef HEDDLE_HTTP_HEAD_H
#define HEDDLE_HTTP_HEAD_H

/* The part that heads of requests and of responses share: limits, field lines, and that they may come in pieces. */

#include "http/field_lines.h"

/* Beyond it slices would overflow; nobody wants a head of 256 MiB. */
#define HEDDLE_MOST_HEAD_BYTES ((size_t)1 << 28)

static inline size_t heddle_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t heddle_line_limit(const heddle_http_limits *limits)
{
    return heddle_least(limits->request_line, HEDDLE_MOST_HEAD_BYTES);
}

static inline size_t heddle_header_limit(const heddle_http_limits *limits)
{
    return heddle_least(limits->header, HEDDLE_MOST_HEAD_BYTES);
}

/*
 * Is it worth reading the head from its start again, or are the bytes behind `seen` only more of the same? `start`: of
 * the first line; `lines` as for reading (they are read into, but say nothing afterwards). A head that comes byte by
 * byte costs O(n) in all: mostly only the lines are read that the new bytes belong to.
 */
bool heddle_head_worth_reading(heddle_field_lines lines, uint32_t start, size_t size, size_t seen,
                               const heddle_http_limits *limits);

typedef struct {
    int malformed, too_large; /* statuses */
    const char *message;      /* "request" */
} heddle_head_statuses;

/* Reads the field lines, from `start` up to where the limit or `size` ends them. Where the head ends, or 0 or -1. */
int64_t heddle_head_read_fields(heddle_field_lines *lines, uint32_t start, size_t size,
                                const heddle_http_limits *limits, const heddle_head_statuses *statuses,
                                heddle_rejection *rejection);

#endif
