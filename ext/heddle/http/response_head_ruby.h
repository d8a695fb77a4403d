#pragma once

/* Writes heads of responses from the values that a Rack application returns. */

#include "http/response_head_writer.h"

#include <ruby.h>

/*
 * A buffer grows as needed; its bytes are from malloc. An empty buffer is {0}. The caller frees it with
 * heddle_buffer_free, also after an exception. After an exception it contains no part of the response.
 *
 * Converting headers that are not Strings runs application code. Other fibers may use the same buffer meanwhile, so its
 * content is restored afterwards.
 */

/* Makes room for `more` bytes; raises NoMemoryError. */
void heddle_buffer_reserve(heddle_buffer *buffer, size_t more);
void heddle_buffer_free(heddle_buffer *buffer);

/* Converts the status of a final response, 200 to 999 or 101. Raises InvalidResponseError for other values. */
int heddle_response_status(VALUE status);

/*
 * Writes a whole head. `headers`: a Hash, or an object whose `each` yields names and values; `protocol`: the protocol
 * to which a response 101 upgrades (a String), or nil; `date`: the whole `date` line. Raises InvalidResponseError.
 */
void heddle_response_head_write(heddle_head_writer *head, heddle_buffer *out, VALUE headers, VALUE protocol,
                                const char *date, size_t date_size);

/* Writes a whole interim response 103 (RFC 8297). Raises InvalidResponseError. */
void heddle_early_hints(heddle_buffer *out, VALUE headers, heddle_head_form form);

/* Defines Heddle::HTTP::InvalidResponseError. */
void Init_heddle_response_head(VALUE http);
