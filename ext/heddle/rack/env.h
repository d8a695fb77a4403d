#pragma once

/* The env of a request (the Rack specification, "The Environment"). */

#include "http/message.h"
#include "net/connection.h"

/*
 * Makes the keys that come from the request; the caller adds the rest (rack.input, rack.hijack …). `builder`: a
 * Heddle::Rack::EnvBuilder. It keeps values for later requests, so a builder belongs to one loop.
 */
VALUE heddle_rack_env(VALUE builder, const heddle_request_head *head, const char *bytes,
                      heddle_connection *connection);

/* Heddle::Rack::EnvBuilder. */
void Init_heddle_env(VALUE rack);
