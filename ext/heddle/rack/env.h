#pragma once

/* The env of a request (the Rack specification, "The Environment"). */

#include "http/message.h"
#include "net/connection.h"

/*
 * Makes an env with the values that come from the request. The caller adds the others (rack.input, rack.hijack …).
 * `builder`: a Heddle::Rack::EnvBuilder, which keeps values for later requests and so belongs to one loop.
 */
VALUE heddle_rack_env(VALUE builder, const heddle_request_head *head, const char *bytes,
                      heddle_connection *connection);

/* Heddle::Rack::EnvBuilder. */
void Init_heddle_env(VALUE rack);
