#pragma once

/* Heddle::HTTP::Exchange: the Ruby object with which a request is answered. Each version of HTTP has a subclass. */

#include "http/engine.h"

struct heddle_exchange_handle {
    VALUE object; /* its Ruby object, which has this record within it */
    heddle_engine *engine;
    VALUE engine_object;
    heddle_exchange *exchange; /* NULL once the application has returned */
    int status;                /* of the response that C has sent; 0: none */
    uint64_t sent;             /* bytes of content */
    bool upgradable;           /* the client asks for a WebSocket or an event stream, and it is allowed here */
    bool chunking;             /* content is sent in chunks, as it comes */
    VALUE env;                 /* the application gets it, a Hash; 0: not made yet */
    VALUE lock;                /* a Mutex: who has it writes content; 0: none */
    VALUE on_disconnect;       /* its `cancel` is called when the client leaves; 0: none */
    heddle_address remote;
    const char *tls_version;   /* of the connection, such as TLSv1.3; NULL: no TLS */
};

/* Makes the Ruby object of an exchange that a runner has taken. */
VALUE heddle_exchange_object(heddle_exchange *exchange);
/*
 * [method, target, age in seconds, client's address, status that was sent or nil], or nil when it has ended. On any
 * thread.
 */
VALUE heddle_exchange_describe(VALUE object);
heddle_exchange_handle *heddle_exchange_handle_of(VALUE object);
/* The address of the client that trusted proxies name; false: the peer is the client, as far as is known. */
bool heddle_exchange_client(const heddle_exchange_handle *handle, heddle_address *client);
/* Raises when the request has ended. */
heddle_exchange *heddle_exchange_of(heddle_exchange_handle *handle);
/* NULL when the exchange is complete, or its connection is gone. */
static inline heddle_connection *heddle_exchange_connection(const heddle_exchange_handle *handle)
{
    return handle->exchange ? handle->exchange->work.connection : NULL;
}
/* The same; raises IOError instead of returning NULL, and ThreadError on a thread other than the loop's. */
heddle_connection *heddle_exchange_open_connection(heddle_exchange_handle *handle);
/* The same while a response can be sent; raises ClientGoneError otherwise. */
heddle_connection *heddle_exchange_writable_connection(heddle_exchange_handle *handle);

/* The part of the body that was received before a runner took the exchange: String, SpooledBody or nil; once. */
VALUE heddle_exchange_body_object(heddle_exchange *exchange);

/* The bytes of an Array of Strings; -1: it is no such Array. To be called again after application code has run. */
int64_t heddle_content_size(VALUE body);

/* Raise ClientGoneError and BadRequestError. `error`: an errno, or 0. */
NORETURN(void heddle_exchange_raise_gone(const char *text, int error));
NORETURN(void heddle_exchange_raise_bad_request(const heddle_rejection *rejection));

/*
 * Sends a plain response: a Hash of headers and an Array of Strings, `size` bytes. False: nothing was sent, and the
 * response needs the methods of the Ruby object, as one with a header of Rack's own does. With `wait`, returns when the
 * client has taken all of it. Raises InvalidResponseError and ClientGoneError.
 */
bool heddle_exchange_respond(heddle_exchange_handle *handle, VALUE status, VALUE headers, VALUE body, int64_t size,
                             bool wait);
/* `write_piece` of the operations. False, too, if the content is not chunked or the exchange has ended. */
bool heddle_exchange_write_piece(heddle_exchange_handle *handle, VALUE string);

void Init_heddle_engine(VALUE http);
void Init_heddle_exchange(VALUE http);
void Init_heddle_access_log(VALUE http);
