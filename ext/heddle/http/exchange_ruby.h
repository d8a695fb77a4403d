#ifndef HEDDLE_HTTP_EXCHANGE_RUBY_H
#define HEDDLE_HTTP_EXCHANGE_RUBY_H

/* Heddle::HTTP::H1::Exchange: what the code that answers a request sees of it. */

#include "http/h1_server.h"

#include <ruby.h>

typedef struct {
    heddle_handle base;        /* it is a Heddle::Net::Connection, too */
    heddle_engine *engine;
    VALUE engine_object;
    heddle_exchange *exchange; /* NULL once it has been served */
    int status;                /* of the answer that C has sent; 0: none */
    uint64_t sent;             /* bytes of content */
    bool chunking;             /* content goes out as chunks, as it comes */
    heddle_address remote;
} heddle_exchange_handle;

VALUE heddle_exchange_object(heddle_connection *connection);
void heddle_exchange_served(VALUE object);
/* [method, target, age in seconds, client's address, status that was sent or nil], or nil: it is over. On any thread. */
VALUE heddle_exchange_describe(VALUE object);
heddle_exchange_handle *heddle_exchange_handle_of(VALUE object);
/* The client that trusted proxies speak for; false: it is the peer itself, as far as anybody tells. */
bool heddle_exchange_client(const heddle_exchange_handle *handle, heddle_address *client);
/* Raises when the request is over. */
heddle_exchange *heddle_exchange_of(heddle_exchange_handle *handle);

/* The connection, as long as something can be sent over it; raises ClientGone. */
heddle_connection *heddle_exchange_writable(heddle_exchange_handle *handle);
/* What can be sent now; raises ClientGone. */
void heddle_exchange_flush(heddle_connection *connection);
/* Waits until no more than `low` bytes of the output are left; raises ClientGone. */
void heddle_exchange_drain(heddle_exchange_handle *handle, size_t low);

/*
 * A chunk of a body that goes out as chunks, without a wait. false, and nothing is sent, when it is no such body, the
 * output is full or somebody waits for it, or this is no String or an empty one.
 */
bool heddle_exchange_chunk(heddle_exchange_handle *handle, VALUE string);

/* Raises ClientGone; `error`: what the system said, or 0. */
NORETURN(void heddle_exchange_gone(const char *text, int error));

void Init_heddle_exchange_sending(VALUE exchange_class);
void Init_heddle_engine(VALUE h1);
void Init_heddle_exchange(VALUE h1);
void Init_heddle_access_line(VALUE http);

#endif
