#pragma once

/*
 * Heddle::HTTP::Exchange, the Ruby object that Heddle's Ruby code responds with. Each version of HTTP has a subclass.
 */

#include "http/engine.h"

struct heddle_exchange_handle {
    VALUE object; /* its Ruby object, which has this record within it */
    heddle_engine *engine;
    VALUE engine_object;
    heddle_exchange *exchange; /* NULL once the application has returned */
    int status;                /* of the response that C has sent; 0: none */
    uint64_t sent;             /* bytes of content */
    bool upgradable;           /* the client asks for a WebSocket or an event stream, and the server allows that */
    bool chunking;             /* content is sent in chunks, as it comes */
    VALUE env;                 /* the Hash that the application gets; 0: not made yet */
    VALUE lock;                /* the Mutex that fibers hold while they write content; 0: none */
    VALUE on_disconnect;       /* its `cancel` is called when the client leaves; 0: none */
    heddle_address remote;
    const char *tls_version;   /* of the connection, such as TLSv1.3; NULL: no TLS */
};

/* Makes the Ruby object of an exchange that a runner has taken. */
VALUE heddle_exchange_object(heddle_exchange *exchange);
/*
 * Returns [method, target, age in seconds, client's address, status that was sent or nil, "http" or "https"], or nil if
 * the exchange has ended. May be called on any thread.
 */
VALUE heddle_exchange_describe(VALUE object);
heddle_exchange_handle *heddle_exchange_handle_of(VALUE object);
/*
 * Finds the client's address in the fields of trusted proxies. Returns false if they have none: then the peer is the
 * client.
 */
bool heddle_exchange_client(const heddle_exchange_handle *handle, heddle_address *client);
/* Raises when the request has ended. */
heddle_exchange *heddle_exchange_of(heddle_exchange_handle *handle);
/* NULL when the exchange is complete, or its connection is gone. */
static inline heddle_connection *heddle_exchange_connection(const heddle_exchange_handle *handle)
{
    return handle->exchange ? handle->exchange->work.connection : NULL;
}
/*
 * Like heddle_exchange_connection, but raises IOError instead of returning NULL, and ThreadError on any thread but the
 * loop's.
 */
heddle_connection *heddle_exchange_open_connection(heddle_exchange_handle *handle);
/* Like heddle_exchange_open_connection, but raises ClientGoneError if no response can be sent any more. */
heddle_connection *heddle_exchange_writable_connection(heddle_exchange_handle *handle);

/*
 * The part of the body that was received before a runner took the exchange: String, SpooledBody or nil. Only the first
 * call returns it.
 */
VALUE heddle_exchange_body_object(heddle_exchange *exchange);

/*
 * The size in bytes of an Array of Strings; -1 if the object is not such an Array. Application code may change the
 * Array: call this again after it has run.
 */
int64_t heddle_content_size(VALUE body);

/* Raise ClientGoneError and BadRequestError. `error`: an errno, or 0. */
NORETURN(void heddle_exchange_raise_gone(const char *text, int error));
NORETURN(void heddle_exchange_raise_bad_request(const heddle_rejection *rejection));

/*
 * Sends a plain response: a Hash of headers and an Array of Strings, `size` bytes. If it returns false, it has sent
 * nothing, and Ruby code must send the response, for example because it has a header such as rack.hijack. With `wait`,
 * returns when the client has received all of it. Raises InvalidResponseError and ClientGoneError.
 */
bool heddle_exchange_respond(heddle_exchange_handle *handle, VALUE status, VALUE headers, VALUE body, int64_t size,
                             bool wait);
/* Calls the operation `write_piece`. Also returns false if the content is not chunked or the exchange has ended. */
bool heddle_exchange_write_piece(heddle_exchange_handle *handle, VALUE string);

void Init_heddle_engine(VALUE http);
void Init_heddle_exchange(VALUE http);
void Init_heddle_access_log(VALUE http);
