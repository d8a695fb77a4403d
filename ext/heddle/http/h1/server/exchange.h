#pragma once

/* Heddle::HTTP::H1::Exchange: a request and its response over HTTP/1.1. */

#include "http/exchange_ruby.h"
#include "http/h1/server/server.h"

/* -- h1/server/sending.c ------------------------------------------------------------------------------------------- */

/* Sends as much of the output as the kernel accepts now. Raises ClientGoneError if the connection is broken. */
void heddle_h1_flush(heddle_connection *connection);
/*
 * Waits until at most `low` bytes of the output are left to send. Raises ClientGoneError if the connection is broken,
 * or if the client has read nothing for write_timeout, and IOError if the connection is closed during the wait.
 */
void heddle_h1_drain(heddle_exchange_handle *handle, size_t low);
/* The following two are operations of the exchange. */
bool heddle_h1_write_piece(heddle_exchange_handle *handle, VALUE string);
void heddle_h1_write(heddle_exchange_handle *handle, VALUE data);
void Init_heddle_h1_sending(VALUE exchange_class);

/* -- h1/server/complete_response.c --------------------------------------------------------------------------------- */

/* The following are operations of the exchange, too. */
void heddle_h1_begin_head(heddle_exchange_handle *handle, heddle_head_writer *head);
bool heddle_h1_send_response(heddle_exchange_handle *handle, const heddle_head_writer *head, heddle_buffer *out,
                             size_t start, VALUE body, size_t size, bool wait);

/* -- h1/server/exchange.c ------------------------------------------------------------------------------------------ */

void Init_heddle_h1_exchange(VALUE h1);
