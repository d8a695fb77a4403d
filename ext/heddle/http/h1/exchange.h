#pragma once

/* Heddle::HTTP::H1::Exchange: an exchange over HTTP/1.1. */

#include "http/exchange_ruby.h"
#include "http/h1/server.h"

/* -- h1/sending.c -------------------------------------------------------------------------------------------------- */

/* Sends as much as possible now; raises ClientGoneError. */
void heddle_h1_flush(heddle_connection *connection);
/* Waits until at most `low` bytes of the output are left; raises ClientGoneError. */
void heddle_h1_drain(heddle_exchange_handle *handle, size_t low);
/* Writes a chunk of a chunked body if that needs no wait: `write_piece` of the exchange's operations. */
bool heddle_h1_write_piece(heddle_exchange_handle *handle, VALUE string);
/* Exchange#write */
VALUE heddle_h1_exchange_write(VALUE self, VALUE data);
void Init_heddle_h1_sending(VALUE exchange_class);

/* -- h1/respond.c -------------------------------------------------------------------------------------------------- */

/* Sends a complete response: `respond` of the exchange's operations. */
bool heddle_h1_respond(heddle_exchange_handle *handle, VALUE status, VALUE headers, VALUE body, int64_t size,
                       bool wait);

/* -- h1/exchange.c ------------------------------------------------------------------------------------------------- */

void Init_heddle_h1_exchange(VALUE h1);
