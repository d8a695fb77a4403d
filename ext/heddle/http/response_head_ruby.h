#pragma once

/* Writes heads of responses from the values that a Rack application returns. */

#include "http/response_head_writer.h"

#include <ruby.h>

/*
 * A buffer owns its bytes, from malloc, and grows; an empty buffer is {0}. Its owner frees it with heddle_buffer_free,
 * also after an exception. After an exception it contains nothing of the response.
 *
 * Application code converts headers that are not plain Strings. Other fibers may use the same buffer meanwhile, so its
 * content is restored afterwards.
 */

/* Makes room for `more` bytes; raises NoMemoryError. */
void heddle_buffer_reserve(heddle_buffer *buffer, size_t more);
void heddle_buffer_free(heddle_buffer *buffer);

/* The status of a final response, 200 to 999 or 101; raises InvalidResponseError. */
int heddle_response_status(VALUE status);

/*
 * Writes a whole head. `headers`: a Hash, or an object that yields names and values; `protocol`: a String, the protocol
 * to which a response 101 upgrades, or nil. Raises InvalidResponseError.
 */
void heddle_response_head_write(heddle_head_writer *head, heddle_buffer *out, VALUE headers, VALUE protocol,
                                const char *date, size_t date_size);

/* Writes a whole interim response 103 (RFC 8297). Raises InvalidResponseError. */
void heddle_early_hints(heddle_buffer *out, VALUE headers, heddle_head_form form);

/* Defines Heddle::HTTP::InvalidResponseError. */
void Init_heddle_response_head(VALUE http);
