#include "http/exchange_ruby.h"

#include "binding.h"
#include "http/body/spool_ruby.h"
#include "http/forwarded.h"
#include "http/head_ruby.h"
#include "http/response_head_ruby.h"
#include "net/networks.h"
#include "scheduler/take_errinfo.h"

static void handle_mark(void *data)
{
    heddle_exchange_handle *handle = data;
    rb_gc_mark(handle->object); /* pins the object, because the exchange refers to the record that is embedded in it */
    /* The other objects could move, but an exchange lives too briefly for compaction to matter. */
    rb_gc_mark(handle->engine_object);
    rb_gc_mark(handle->env);
    rb_gc_mark(handle->lock);
    rb_gc_mark(handle->on_disconnect);
}

static void handle_free(void *data)
{
    heddle_exchange_handle *handle = data;
    heddle_exchange *exchange = handle->exchange;
    if (exchange) { /* happens only when the loop and the runner no longer exist */
        exchange->handle = NULL;
        if (exchange->state == HEDDLE_EXCHANGE_RUNNING)
            heddle_exchange_enter(exchange, HEDDLE_EXCHANGE_WAITING);
        if (!exchange->work.connection) /* otherwise the session frees the exchange */
            heddle_exchange_free(exchange);
    }
    heddle_service_release(&handle->engine->base);
}

/* The record is embedded in the object: each request has one, and a separate allocation would take longer. */
static const rb_data_type_t exchange_type =
    HEDDLE_TYPE("Heddle::HTTP::Exchange", RUBY_TYPED_EMBEDDABLE, .dmark = handle_mark, .dfree = handle_free);
_Static_assert(sizeof(heddle_exchange_handle) <= 320, "the record must fit into Ruby's second largest object slot");

VALUE heddle_exchange_object(heddle_exchange *exchange)
{
    heddle_engine *engine = exchange->engine;
    heddle_connection *connection = exchange->work.connection;
    heddle_exchange_handle *handle;
    VALUE object = TypedData_Make_Struct(*exchange->operations->object_class, heddle_exchange_handle, &exchange_type,
                                         handle);
    *handle = (heddle_exchange_handle){
        .object = object,
        .engine = engine,
        .engine_object = connection->sockets->service_object,
        .exchange = exchange,
        .remote = connection->remote,
        .tls_version = connection->transport.tls ? connection->transport.tls->version : NULL,
    };
    heddle_service_retain(&engine->base);
    exchange->handle = handle;
    return object;
}

heddle_exchange_handle *heddle_exchange_handle_of(VALUE self)
{
    return rb_check_typeddata(self, &exchange_type);
}

static bool is_trusted(const void *networks, const heddle_address *address)
{
    return heddle_networks_include(*(const VALUE *)networks, address);
}

bool heddle_exchange_client(const heddle_exchange_handle *handle, heddle_address *client)
{
    const heddle_exchange *exchange = handle->exchange;
    const VALUE *proxies = &handle->engine->proxies;
    return is_trusted(proxies, &handle->remote) &&
           heddle_forwarded_client(&exchange->head, exchange->bytes, is_trusted, proxies, client);
}

enum {
    DESCRIBED = 200, /* bytes; longer targets are cut */
};

VALUE heddle_exchange_describe(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    const heddle_exchange *exchange = handle->exchange;
    if (!exchange)
        return Qnil;
    heddle_slice target = exchange->head.target;
    heddle_address client = handle->remote;
    heddle_exchange_client(handle, &client);
    VALUE parts[] = {
        rb_str_new(exchange->bytes + exchange->head.method.start, exchange->head.method.size),
        rb_str_new(exchange->bytes + target.start, target.size > DESCRIBED ? DESCRIBED : target.size),
        DBL2NUM((double)(heddle_clock_now() - exchange->arrived) / 1e9),
        heddle_address_string(&client),
        handle->status ? INT2FIX(handle->status) : Qnil,
        rb_str_new_cstr(handle->tls_version ? "https" : "http"),
    };
    return rb_ary_new_from_values(sizeof(parts) / sizeof(parts[0]), parts);
}

heddle_exchange *heddle_exchange_of(heddle_exchange_handle *handle)
{
    if (!handle->exchange)
        rb_raise(rb_eIOError, "this request has ended");
    return handle->exchange;
}

static heddle_exchange *exchange_of(VALUE self)
{
    return heddle_exchange_of(heddle_exchange_handle_of(self));
}

/* Returns the operations of the exchange. Raises the same exceptions as heddle_exchange_open_connection. */
static const heddle_exchange_operations *operations_of(heddle_exchange_handle *handle)
{
    heddle_exchange_open_connection(handle);
    return handle->exchange->operations;
}

/* Returns the operations of the exchange. Raises the same exceptions as heddle_exchange_writable_connection. */
static const heddle_exchange_operations *sending_operations(heddle_exchange_handle *handle)
{
    heddle_exchange_writable_connection(handle);
    return handle->exchange->operations;
}

heddle_connection *heddle_exchange_open_connection(heddle_exchange_handle *handle)
{
    heddle_connection *connection = heddle_exchange_of(handle)->work.connection;
    if (!connection)
        heddle_exchange_raise_gone("this request is complete, or its connection is closed", 0);
    heddle_connection_check_thread(connection);
    return connection;
}

heddle_connection *heddle_exchange_writable_connection(heddle_exchange_handle *handle)
{
    heddle_connection *connection = heddle_exchange_connection(handle);
    if (!connection)
        heddle_exchange_raise_gone("the connection was closed before the client had the response", 0);
    heddle_connection_check_thread(connection);
    if (connection->error)
        heddle_exchange_raise_gone("the client left before it had the response", connection->error);
    return connection;
}

/* -- errors ------------------------------------------------------------------------------------------------------ */

void heddle_exchange_raise_gone(const char *text, int error)
{
    VALUE message = rb_str_new_cstr(text);
    if (error) {
        VALUE cause = rb_syserr_new(error, NULL);
        rb_str_catf(message, " (%" PRIsVALUE ")", rb_obj_class(cause));
    }
    rb_exc_raise(rb_exc_new_str(rb_path2class("Heddle::ClientGoneError"), message));
}

void heddle_exchange_raise_bad_request(const heddle_rejection *rejection)
{
    VALUE object = heddle_rejection_object(rejection);
    rb_exc_raise(rb_class_new_instance(1, &object, rb_path2class("Heddle::HTTP::BadRequestError")));
}

/* -- the head ---------------------------------------------------------------------------------------------------- */

static VALUE string_of(const heddle_exchange *exchange, heddle_slice slice)
{
    return rb_str_new(exchange->bytes + slice.start, slice.size);
}

static bool is_proxied(const heddle_exchange *exchange)
{
    return heddle_forwarded_any(&exchange->head, exchange->bytes);
}

static bool has_body(const heddle_request_head *head)
{
    return head->content_length == HEDDLE_CHUNKED_BODY || head->content_length > 0;
}

int64_t heddle_content_size(VALUE body)
{
    int64_t size = 0;
    for (long i = 0; i < RARRAY_LEN(body); i++) {
        VALUE string = RARRAY_AREF(body, i);
        if (!RB_TYPE_P(string, T_STRING))
            return -1;
        size += RSTRING_LEN(string);
    }
    return size;
}

/* -- the body ---------------------------------------------------------------------------------------------------- */

VALUE heddle_exchange_body_object(heddle_exchange *exchange)
{
    if (exchange->spool && !exchange->spool->kept)
        return heddle_spooled_body(exchange->spool);
    return heddle_exchange_take_body(exchange);
}

/* -- the response ------------------------------------------------------------------------------------------------ */

bool heddle_exchange_respond(heddle_exchange_handle *handle, VALUE status_value, VALUE headers, VALUE body,
                             int64_t size, bool wait)
{
    heddle_engine *engine = handle->engine;
    const heddle_exchange *exchange = heddle_exchange_of(handle);
    const heddle_exchange_operations *operations = exchange->operations;
    heddle_method method = exchange->head.method_id;
    if (method == HEDDLE_CONNECT || (wait && !operations->waits))
        return false;
    heddle_head_writer head = {
        .request = method,
        .status = heddle_response_status(status_value), /* may call application code */
        /*
         * For HEAD, an empty body does not mean the length 0: many applications omit the body that they would send for
         * GET (RFC 9110, 8.6).
         */
        .length = method == HEDDLE_HEAD && size == 0 ? -1 : size,
    };
    operations->begin_head(handle, &head);
    heddle_buffer *out = &engine->out;
    size_t start = out->used;
    heddle_response_head_write(&head, out, headers, Qnil, heddle_engine_date(engine), HEDDLE_DATE_LINE);
    /* Application code may have run. */
    if (!heddle_exchange_connection(handle) || head.has_internal || head.declared_chunked ||
        head.framing > HEDDLE_CONTENT_BY_LENGTH || heddle_content_size(body) != size) {
        out->used = start;
        return false;
    }
    if (head.framing != HEDDLE_CONTENT_BY_LENGTH)
        size = 0;
    return operations->send(handle, &head, out, start, body, (size_t)size, wait);
}

bool heddle_exchange_write_piece(heddle_exchange_handle *handle, VALUE string)
{
    return handle->chunking && handle->exchange && handle->exchange->operations->write_piece(handle, string);
}

/* -- the end ----------------------------------------------------------------------------------------------------- */

void heddle_exchange_disconnected(heddle_exchange *exchange)
{
    heddle_exchange_handle *handle = exchange->handle;
    if (!handle || !handle->on_disconnect)
        return;
    VALUE object = handle->on_disconnect;
    int state = 0;
    handle->on_disconnect = 0;
    heddle_call_protected(object, rb_intern("cancel"), 0, NULL, &state);
    if (state)
        heddle_take_errinfo();
    RB_GC_GUARD(object);
}

/*
 * call-seq: cancel_on_disconnect(scope) -> nil
 *
 * Calls `scope.cancel` once if the client leaves before the exchange is complete. A client leaves when it closes its
 * side of the connection, when it resets the connection or the stream, or when the connection fails. If the client has
 * already left, calls `scope.cancel` at once.
 */
static VALUE exchange_cancel_on_disconnect(VALUE self, VALUE scope)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_exchange *exchange = heddle_exchange_of(handle);
    handle->on_disconnect = scope;
    if (!exchange->work.connection || exchange->operations->watch_disconnect(exchange))
        heddle_exchange_disconnected(exchange);
    return Qnil;
}

/*
 * call-seq: reject(status, reason) -> true or false
 *
 * Responds with +status+, and with +reason+ as plain text. Does not wait: the loop sends the response. Over HTTP/1.1
 * the connection is then closed. Returns false if no response can be sent, for example because the client has left.
 */
static VALUE exchange_reject(VALUE self, VALUE status, VALUE reason)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_rejection rejection;
    heddle_reject(&rejection, NUM2INT(status), "%s", StringValueCStr(reason));
    heddle_exchange *exchange = heddle_exchange_of(handle);
    if (!exchange->work.connection)
        return Qfalse;
    heddle_exchange_open_connection(handle);
    bool content = exchange->head.method_id != HEDDLE_HEAD;
    if (!exchange->operations->reject_running(handle, &rejection, content))
        return Qfalse;
    handle->status = rejection.status;
    handle->sent = content ? heddle_rejection_text(&rejection, (char[HEDDLE_REJECTION_ROOM]){0}) : 0;
    return Qtrue;
}

/*
 * call-seq: close -> nil
 *
 * Ends the exchange at once, so that the client sees an incomplete response. Idempotent.
 */
static VALUE exchange_close(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_connection *connection = heddle_exchange_connection(handle);
    if (connection) {
        heddle_connection_check_thread(connection);
        handle->exchange->operations->abandon(handle->exchange);
    }
    return Qnil;
}

/* CALL calls an operation of an open exchange. SEND also checks that a response can be sent. */
#define CALL(self, operation, ...) operations_of(HANDLE(self))->operation(HANDLE(self), ##__VA_ARGS__)
#define SEND(self, operation, ...) sending_operations(HANDLE(self))->operation(HANDLE(self), __VA_ARGS__)
#define HANDLE(self) heddle_exchange_handle_of(self)
#define METHODS(X)                                                                                                     \
    /* The part of the body that was received before the request was served. Only the first call returns it. */        \
    X(exchange_take_body, "take_body", exchange_of(self)->operations->take_body(exchange_of(self)))                    \
    /* Was the body received completely? */                                                                            \
    X(exchange_received_p, "received?", CALL(self, is_received) ? Qtrue : Qfalse)                                      \
    /* Does the client wait for 100 Continue? */                                                                       \
    X(exchange_expects_p, "expects?", *CALL(self, expectation) ? Qtrue : Qfalse)                                       \
    /* Call this when 100 Continue was sent, or the client no longer needs it. */                                      \
    X(exchange_end_expectation, "end_expectation", (*CALL(self, expectation) = false, Qnil))                           \
    /* Are there received bytes that were not read yet? */                                                             \
    X(exchange_buffered_p, "buffered?", CALL(self, is_buffered) ? Qtrue : Qfalse)                                      \
    /* Received bytes of the body, or nil if there are none now. Raises BadRequestError if the body is invalid. */     \
    X(exchange_decode, "decode", CALL(self, decode))                                                                   \
    /* The method as sent: methods are case-sensitive. */                                                              \
    X(exchange_method, "method", string_of(exchange_of(self), exchange_of(self)->head.method))                         \
    /* The request target as sent. */                                                                                  \
    X(exchange_target, "target", string_of(exchange_of(self), exchange_of(self)->head.target))                         \
    /* Did a proxy forward the request? True if it has Via, Forwarded, X-Forwarded-*, X-Real-IP or Client-IP. */       \
    X(exchange_proxied_p, "proxied?", is_proxied(exchange_of(self)) ? Qtrue : Qfalse)                                  \
    /* Does the request have a body? */                                                                                \
    X(exchange_body_p, "body?", has_body(&exchange_of(self)->head) ? Qtrue : Qfalse)                                   \
    /* Does the client want to keep the connection open after the response? */                                         \
    X(exchange_keep_alive_p, "keep_alive?", exchange_of(self)->head.keep_alive ? Qtrue : Qfalse)                       \
    /* Does the client offer to change the protocol? Only then is the status 101 allowed. */                           \
    X(exchange_upgrade_offered_p, "upgrade_offered?", exchange_of(self)->head.upgrade ? Qtrue : Qfalse)                \
    /* Is the method HEAD? Then the response has no content. */                                                        \
    X(exchange_head_p, "head?", exchange_of(self)->head.method_id == HEDDLE_HEAD ? Qtrue : Qfalse)                     \
    /* 0 for HTTP/1.0; 1 for HTTP/1.1, later minor versions, and HTTP/2. */                                            \
    X(exchange_minor, "minor", INT2FIX(exchange_of(self)->head.minor))                                                 \
    /* Seconds since the head was complete. */                                                                         \
    X(exchange_age, "age", DBL2NUM((double)(heddle_clock_now() - exchange_of(self)->arrived) / 1e9))                   \
    X(exchange_engine, "engine", heddle_exchange_handle_of(self)->engine_object)                                       \
    /* The peer's address, also after the connection has ended. */                                                     \
    X(exchange_remote_address, "remote_address", heddle_address_string(&heddle_exchange_handle_of(self)->remote))      \
    /* Is the exchange complete, or its connection closed or detached? */                                              \
    X(exchange_closed_p, "closed?", heddle_exchange_connection(heddle_exchange_handle_of(self)) ? Qfalse : Qtrue)      \
    /* Does the client request a WebSocket or an event stream, and does the server allow it? */                        \
    X(exchange_upgradable_p, "upgradable?", heddle_exchange_handle_of(self)->upgradable ? Qtrue : Qfalse)              \
    /* The status of the response that C code has sent, or 0. */                                                       \
    X(exchange_status_sent, "status_sent", INT2FIX(heddle_exchange_handle_of(self)->status))                           \
    /* Is it the request of a health check? */                                                                         \
    X(exchange_probe_p, "probe?", HANDLE(self)->exchange && HANDLE(self)->exchange->work.probe ? Qtrue : Qfalse)       \
    /* The Rack env, or nil if it was not made yet. */                                                                 \
    X(exchange_env, "env", HANDLE(self)->env ? HANDLE(self)->env : Qnil)                                               \
    /* Makes the Mutex of the stream that the application writes to. */                                                \
    X(exchange_make_lock, "make_lock", HANDLE(self)->lock = rb_mutex_new())                                            \
    /* The bytes of content that C code has sent. */                                                                   \
    X(exchange_content_sent, "content_sent", ULL2NUM(heddle_exchange_handle_of(self)->sent))
METHODS(HEDDLE_DEFINE_METHOD)

#define METHODS_1(X)                                                                                                   \
    /*                                                                                                                 \
     * Waits until more of the body is received. Returns the number of bytes. Over HTTP/1.1, returns nil if the client \
     * has ended its side of the connection; over HTTP/2, returns 0 if the body is complete. Raises IO::TimeoutError,  \
     * or ClientGoneError if the connection is broken or the client has reset the stream.                              \
     */                                                                                                                \
    X(exchange_fill, "fill", timeout, CALL(self, fill, heddle_parse_duration(timeout)))                                \
    /*                                                                                                                 \
     * Queues content, which the loop sends in its next tick at the latest. Waits while the client is slower than the  \
     * application.                                                                                                    \
     * Raises ClientGoneError.                                                                                         \
     */                                                                                                                \
    X(exchange_write, "write", data, (SEND(self, write, data), self))                                                  \
    /*                                                                                                                 \
     * Writes a chunk without waiting. Returns false and writes nothing if that is not possible, for example because   \
     * the body is not chunked, the String is empty or large, the output is full, or another fiber waits to write.     \
     * Then the caller must use #write.                                                                                \
     */                                                                                                                \
    X(exchange_chunk, "chunk", string, heddle_exchange_write_piece(HANDLE(self), string) ? Qtrue : Qfalse)             \
    /* Set to true if the content is sent in chunks, each as soon as the application has written it. */                \
    X(exchange_set_chunking, "chunking=", on, (heddle_exchange_handle_of(self)->chunking = RTEST(on), on))
METHODS_1(HEDDLE_DEFINE_METHOD_1)

/*
 * call-seq: finish(reusable, status) -> nil
 *
 * Ends the response; the loop sends the queued rest. +reusable+: the connection may serve another request. +status+ is
 * counted in the statistics. This object can't be used afterwards.
 */
static VALUE exchange_finish(VALUE self, VALUE reusable, VALUE status)
{
    SEND(self, finish, RTEST(reusable), NUM2INT(status));
    return Qnil;
}

void Init_heddle_exchange(VALUE http)
{
    VALUE class = heddle_define_class(http, "Exchange", NULL);
    METHODS(HEDDLE_REGISTER_METHOD)
    METHODS_1(HEDDLE_REGISTER_METHOD_1)
    rb_define_method(class, "finish", exchange_finish, 2);
    rb_define_method(class, "reject", exchange_reject, 2);
    rb_define_method(class, "close", exchange_close, 0);
    rb_define_method(class, "cancel_on_disconnect", exchange_cancel_on_disconnect, 1);
}
