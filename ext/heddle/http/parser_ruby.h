#ifndef HEDDLE_HTTP_PARSER_RUBY_H
#define HEDDLE_HTTP_PARSER_RUBY_H

/* The part that parsers over Strings and over connections share. */

#include "http/message.h"

#include <ruby.h>

/* Of an HTTP::Limits. */
heddle_http_limits heddle_http_limits_of(VALUE configuration);
/* An HTTP::Rejection. */
VALUE heddle_rejection_object(const heddle_rejection *rejection);
/* An H1::ReceivedResponse, of a head that begins `position` bytes into what its user has. */
VALUE heddle_received_response(const char *bytes, const heddle_response_head *head, size_t position);
/* name in lower case, value, name, value …; `folded`: as heddle_response_head has it. */
VALUE heddle_fields_array(const char *bytes, const heddle_field *fields, unsigned count, bool folded);
/* As much of a request's method as its answer's framing depends on. */
heddle_method heddle_response_method(VALUE name);

#endif
