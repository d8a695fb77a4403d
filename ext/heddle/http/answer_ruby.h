#ifndef HEDDLE_HTTP_ANSWER_RUBY_H
#define HEDDLE_HTTP_ANSWER_RUBY_H

/* Heads of answers from what a Rack application returns. */

#include "http/answer_head.h"

#include <ruby.h>

/*
 * The buffers here own their bytes, from malloc, and grow; an empty one is {0}. They stay their owner's, who frees
 * them with heddle_buffer_free, when an exception is raised, and nothing of the answer is in them then.
 *
 * Where headers are no plain Strings, application code turns them into some, and that code may let other fibers run:
 * they may use the same buffer for their own answers. Its earlier content is there again afterwards.
 */

/* Room for so many bytes more; raises NoMemoryError. */
void heddle_buffer_reserve(heddle_buffer *buffer, size_t more);
void heddle_buffer_free(heddle_buffer *buffer);

/* The status of a final answer, 200 to 999 or 101; raises InvalidResponse. */
int heddle_answer_status(VALUE status);

/*
 * A whole head, from heddle_answer_begin to heddle_answer_end. `headers`: a Hash, or whatever yields names and values;
 * `protocol`: a String for which the status is 101 then, or nil. Raises InvalidResponse.
 */
void heddle_answer_head(heddle_answer *answer, heddle_buffer *out, VALUE headers, VALUE protocol, const char *date,
                        size_t date_size);

/* A whole interim answer 103 (RFC 8297). Raises InvalidResponse. */
void heddle_early_hints(heddle_buffer *out, VALUE headers, heddle_head_form form);

/* Defines Heddle::HTTP::InvalidResponse. */
void Init_heddle_answer(VALUE http);

#endif
