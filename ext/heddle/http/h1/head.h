#pragma once

/*
 * What the parsers of request heads and of response heads share: limits, field lines, and heads that arrive in pieces.
 */

#include "http/h1/field_lines.h"
#include "http/text.h"

/* Larger limits are reduced to this one, so that the offsets of slices can't overflow. */
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
 * Must the head be read from its start again? Returns false if all `size` bytes together are a valid but incomplete
 * head. An earlier call has found the same for the first `seen` bytes. `start` is the offset of the first line. `lines`
 * has the same settings as for heddle_field_lines_read. Usually only the lines with new bytes are read here. If all
 * lines were read each time, a head of n bytes that arrives byte by byte would cost O(n²).
 */
bool heddle_head_needs_reading(heddle_field_lines lines, uint32_t start, size_t size, size_t seen,
                               const heddle_http_limits *limits);

typedef struct {
    int malformed, too_large; /* the HTTP statuses of rejections */
    const char *message;      /* "request" or "response", for error messages */
} heddle_head_statuses;

/*
 * Reads the field lines from `start` on, up to the limit or `size`. Returns the offset at which the head ends, 0 if the
 * head is incomplete, or -1 if it is rejected.
 */
int64_t heddle_head_read_fields(heddle_field_lines *lines, uint32_t start, size_t size,
                                const heddle_http_limits *limits, const heddle_head_statuses *statuses,
                                heddle_rejection *rejection);
