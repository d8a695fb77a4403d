#pragma once

/*
 * The part of parsing that heads of requests and of responses share: limits, field lines, and heads that come in
 * pieces.
 */

#include "http/h1/field_lines.h"
#include "http/text.h"

/* In a larger head the offsets of slices would overflow. */
#define HEDDLE_MOST_HEAD_BYTES ((size_t)1 << 28)

static inline size_t heddle_line_limit(const heddle_http_limits *limits)
{
    return heddle_least(limits->request_line, HEDDLE_MOST_HEAD_BYTES);
}

static inline size_t heddle_header_limit(const heddle_http_limits *limits)
{
    return heddle_least(limits->header, HEDDLE_MOST_HEAD_BYTES);
}

/*
 * Must the head be read from its start again? Returns false if the bytes after `seen` only continue a valid line.
 * `start` is the start of the first line. `lines` is set as for reading, and must not be used afterwards. A head of n
 * bytes that comes byte by byte costs O(n), because usually only the lines with new bytes are read.
 */
bool heddle_head_needs_reading(heddle_field_lines lines, uint32_t start, size_t size, size_t seen,
                               const heddle_http_limits *limits);

typedef struct {
    int malformed, too_large; /* statuses */
    const char *message;      /* "request" or "response" */
} heddle_head_statuses;

/*
 * Reads the field lines, from `start` up to the limit or `size`. Returns where the head ends, 0 if it is incomplete, or
 * -1 if it is rejected.
 */
int64_t heddle_head_read_fields(heddle_field_lines *lines, uint32_t start, size_t size,
                                const heddle_http_limits *limits, const heddle_head_statuses *statuses,
                                heddle_rejection *rejection);
