#pragma once

/* The Ruby objects of parsed heads. */

#include "http/message.h"

#include <ruby.h>

/* The limits in an HTTP::Limits. */
heddle_http_limits heddle_http_limits_of(VALUE configuration);
/* An HTTP::Rejection. */
VALUE heddle_rejection_object(const heddle_rejection *rejection);
/* An H1::ReceivedResponse. The head is at offset `position` in the caller's bytes. */
VALUE heddle_received_response(const char *bytes, const heddle_response_head *head, size_t position);
/* name in lower case, value, name, value …; `folded`: the flag of heddle_response_head. */
VALUE heddle_fields_array(const char *bytes, const heddle_field *fields, unsigned count, bool folded);
