#pragma once

/* Shared by heads of requests and of responses: limits, field lines, and arrival in pieces. */

#include "http/h1/field_lines.h"

/* Beyond this, slices would overflow. */
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
 * Must the head be read from its start again, or do the bytes behind `seen` only continue a valid line? `start`: of the
 * first line; `lines` as for reading (they are read into, but mean nothing afterwards). A head that comes byte by byte
 * costs O(n): usually only the lines with new bytes are read.
 */
bool heddle_head_needs_reading(heddle_field_lines lines, uint32_t start, size_t size, size_t seen,
                               const heddle_http_limits *limits);

typedef struct {
    int malformed, too_large; /* statuses */
    const char *message;      /* "request" */
} heddle_head_statuses;

/* Reads the field lines, from `start` up to the limit or `size`. Returns where the head ends, or 0 or -1. */
int64_t heddle_head_read_fields(heddle_field_lines *lines, uint32_t start, size_t size,
                                const heddle_http_limits *limits, const heddle_head_statuses *statuses,
                                heddle_rejection *rejection);
