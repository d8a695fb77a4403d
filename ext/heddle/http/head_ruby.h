#pragma once

/* Makes Ruby objects from parsed heads. */

#include "http/message.h"

#include <ruby.h>

/* Reads an HTTP::Limits. */
heddle_http_limits heddle_http_limits_of(VALUE configuration);
/* Makes an HTTP::Rejection. */
VALUE heddle_rejection_object(const heddle_rejection *rejection);
/* Makes an H1::ReceivedResponse. The head begins at `bytes`. */
VALUE heddle_received_response(const char *bytes, const heddle_response_head *head);
/*
 * Makes an Array of names and values: [name, value, name, value …]. The names are in lower case. `folded`: see
 * heddle_response_head.
 */
VALUE heddle_fields_array(const char *bytes, const heddle_field *fields, unsigned count, bool folded);
