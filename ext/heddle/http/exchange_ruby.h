#pragma once

/*
 * Heddle::HTTP::Exchange: the Ruby object with which Ruby code reads the request and responds. Each version of HTTP has
 * a subclass.
 */

#include "http/engine.h"

struct heddle_exchange_handle {
    VALUE object; /* the Ruby object, which this record is embedded in */
    heddle_engine *engine;
    VALUE engine_object;
    heddle_exchange *exchange; /* NULL once the application has returned */
    int status;                /* the status of the response that C code has sent; 0: none */
    uint64_t sent;             /* bytes of content that C code has sent */
    bool upgradable;           /* the client requests a WebSocket or an event stream, and the server allows it */
    bool chunking;             /* each piece of content is sent at once, as a chunk */
    VALUE env;                 /* the Rack env, a Hash; 0: not made yet */
    VALUE lock;                /* the Mutex that fibers hold while they write content; 0: none */
    VALUE on_disconnect;       /* its `cancel` is called when the client leaves; 0: none */
    heddle_address remote;
    const char *tls_version;   /* the connection's version of TLS, such as TLSv1.3; NULL: no TLS */
};

/* Makes the Ruby object of an exchange that a runner has taken. */
VALUE heddle_exchange_object(heddle_exchange *exchange);
/*
 * Returns [method, target, age in seconds, client's address, status, "http" or "https"], or nil if the exchange has
 * ended. The status is nil until C code has sent a response. If Ruby code sends the response, the status stays nil. May
 * be called on any thread.
 */
VALUE heddle_exchange_describe(VALUE object);
heddle_exchange_handle *heddle_exchange_handle_of(VALUE object);
/*
 * Finds the client's address in the fields that trusted proxies have set. Returns false if there is none, or if the
 * peer is not a trusted proxy; then the peer is the client.
 */
bool heddle_exchange_client(const heddle_exchange_handle *handle, heddle_address *client);
/* Returns the exchange. Raises IOError if the application has returned. */
heddle_exchange *heddle_exchange_of(heddle_exchange_handle *handle);
/* Returns the connection of an exchange, or NULL if the exchange is complete or its connection is closed. */
static inline heddle_connection *heddle_exchange_connection(const heddle_exchange_handle *handle)
{
    return handle->exchange ? handle->exchange->work.connection : NULL;
}
/*
 * Like heddle_exchange_connection, but raises instead of returning NULL: IOError if the application has returned, else
 * ClientGoneError. Raises ThreadError on any thread but the loop's.
 */
heddle_connection *heddle_exchange_open_connection(heddle_exchange_handle *handle);
/*
 * Returns the connection of an exchange. Raises ClientGoneError if no response can be sent any more, because the
 * exchange is complete, or its connection is closed or broken. Raises ThreadError on any thread but the loop's.
 */
heddle_connection *heddle_exchange_writable_connection(heddle_exchange_handle *handle);

/*
 * Returns the part of the body that was received before a runner took the exchange: a String, a SpooledBody or nil.
 * Only the first call returns it.
 */
VALUE heddle_exchange_body_object(heddle_exchange *exchange);

/*
 * Returns the total size of an Array of Strings in bytes, or -1 if an element is not a String. Application code may
 * change the Array: call this function again after such code has run.
 */
int64_t heddle_content_size(VALUE body);

/* Raise ClientGoneError and BadRequestError. `error`: an errno, or 0. */
NORETURN(void heddle_exchange_raise_gone(const char *text, int error));
NORETURN(void heddle_exchange_raise_bad_request(const heddle_rejection *rejection));

/*
 * Sends a plain response: a Hash of headers, and an Array of Strings with `size` bytes. Returns false if it has sent
 * nothing, for example because the response has the header rack.hijack. Then Ruby code must send the response. With
 * `wait`, returns only when the kernel has accepted the whole response. Raises InvalidResponseError and
 * ClientGoneError.
 */
bool heddle_exchange_respond(heddle_exchange_handle *handle, VALUE status, VALUE headers, VALUE body, int64_t size,
                             bool wait);
/*
 * Calls the exchange's operation `write_piece`, and returns its result. Does not call it, and returns false, if the
 * content is not chunked or the exchange has ended.
 */
bool heddle_exchange_write_piece(heddle_exchange_handle *handle, VALUE string);

void Init_heddle_engine(VALUE http);
void Init_heddle_exchange(VALUE http);
void Init_heddle_access_log(VALUE http);
