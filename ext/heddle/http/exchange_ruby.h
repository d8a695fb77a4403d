#ifndef HEDDLE_HTTP_EXCHANGE_RUBY_H
#define HEDDLE_HTTP_EXCHANGE_RUBY_H

/* Heddle::HTTP::Exchange: what the code that responds to a request sees of it. Each protocol has a class below it. */

#include "http/engine.h"

#include <ruby.h>

struct heddle_exchange_handle {
    heddle_engine *engine;
    VALUE engine_object;
    heddle_exchange *exchange; /* NULL once the application has returned */
    int status;                /* of the response that C has sent; 0: none */
    uint64_t sent;             /* bytes of content */
    bool upgradable;           /* the client asks for a WebSocket, and the application may give it */
    bool chunking;             /* content leaves as it comes, in pieces of unknown number */
    VALUE on_disconnect;       /* its `cancel` is called when the client leaves; 0: none */
    heddle_address remote;
    const char *tls_version;   /* of the connection, such as TLSv1.3; NULL: plain */
};

/* Makes the Ruby object of an exchange that a runner has taken. */
VALUE heddle_exchange_object(heddle_exchange *exchange);
/* [method, target, age in seconds, client's address, status that was sent or nil], or nil: it is over. On any thread. */
VALUE heddle_exchange_describe(VALUE object);
heddle_exchange_handle *heddle_exchange_handle_of(VALUE object);
/* The client that trusted proxies speak for; false: it is the peer itself, as far as anybody tells. */
bool heddle_exchange_client(const heddle_exchange_handle *handle, heddle_address *client);
/* Raises when the request is over. */
heddle_exchange *heddle_exchange_of(heddle_exchange_handle *handle);
/* NULL when the exchange is complete, or its connection is gone. */
static inline heddle_connection *heddle_exchange_connection(const heddle_exchange_handle *handle)
{
    return handle->exchange ? handle->exchange->work.connection : NULL;
}
/* The same; raises IOError in place of NULL, and ThreadError on another thread than its loop's. */
heddle_connection *heddle_exchange_open(heddle_exchange_handle *handle);
/* The same, as long as something can be sent over it; raises ClientGone. */
heddle_connection *heddle_exchange_writable(heddle_exchange_handle *handle);

/* The part of the body that was received before a runner took the exchange: String, SpooledBody or nil; once. */
VALUE heddle_exchange_body_object(heddle_exchange *exchange);

/* Bytes of an Array of Strings; -1: it is none. Application code may have changed it since it was last asked for. */
int64_t heddle_content_size(VALUE body);

/* Raise ClientGone and BadRequest. `error`: an errno, or 0. */
NORETURN(void heddle_exchange_raise_gone(const char *text, int error));
NORETURN(void heddle_exchange_raise_bad_request(const heddle_rejection *rejection));

void Init_heddle_engine(VALUE http);
void Init_heddle_exchange(VALUE http);
void Init_heddle_access_line(VALUE http);

#endif
