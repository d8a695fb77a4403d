#include "http/exchange_ruby.h"

#include "binding.h"
#include "http/body/spool_ruby.h"
#include "http/forwarded.h"
#include "net/networks.h"
#include "scheduler/take_errinfo.h"

static void handle_mark(void *data)
{
    heddle_exchange_handle *handle = data;
    rb_gc_mark(handle->engine_object);
    if (handle->env)
        rb_gc_mark(handle->env);
    if (handle->on_disconnect)
        rb_gc_mark(handle->on_disconnect); /* pinned, because it is short-lived */
}

static void handle_free(void *data)
{
    heddle_exchange_handle *handle = data;
    heddle_exchange *exchange = handle->exchange;
    if (exchange) { /* its runner is gone, with the whole loop */
        exchange->handle = NULL;
        if (exchange->state == HEDDLE_EXCHANGE_RUNNING)
            heddle_exchange_enter(exchange, HEDDLE_EXCHANGE_WAITING);
        if (!exchange->work.connection) /* otherwise its session frees it */
            heddle_exchange_free(exchange);
    }
    heddle_service_release(&handle->engine->base);
    free(handle);
}

HEDDLE_FIXED_SIZE(handle_size, heddle_exchange_handle)

static const rb_data_type_t exchange_type =
    HEDDLE_TYPE("Heddle::HTTP::Exchange", 0, .dmark = handle_mark, .dfree = handle_free, .dsize = handle_size);

VALUE heddle_exchange_object(heddle_exchange *exchange)
{
    heddle_engine *engine = exchange->engine;
    heddle_connection *connection = exchange->work.connection;
    VALUE object = TypedData_Wrap_Struct(exchange->operations->object_class(), &exchange_type, NULL);
    /* Each request has one of these, and Ruby's own allocator takes longer: it counts bytes for its collector. */
    heddle_exchange_handle *handle = malloc(sizeof(*handle));
    if (!handle) {
        rb_gc(); /* as that allocator does: many of these may be garbage */
        handle = malloc(sizeof(*handle));
    }
    if (!handle)
        rb_memerror();
    *handle = (heddle_exchange_handle){
        .engine = engine,
        .engine_object = connection->sockets->service_object,
        .exchange = exchange,
        .remote = connection->remote,
        .tls_version = connection->transport.tls ? connection->transport.tls->version : NULL,
    };
    heddle_service_retain(&engine->base);
    RTYPEDDATA_DATA(object) = handle;
    exchange->handle = handle;
    return object;
}

heddle_exchange_handle *heddle_exchange_handle_of(VALUE self)
{
    return rb_check_typeddata(self, &exchange_type);
}

static bool is_trusted(const void *networks, const heddle_address *address)
{
    return heddle_networks_trust(*(const VALUE *)networks, address);
}

bool heddle_exchange_client(const heddle_exchange_handle *handle, heddle_address *client)
{
    const heddle_exchange *exchange = handle->exchange;
    const VALUE *proxies = &handle->engine->proxies;
    return heddle_forwarded_client(&exchange->head, exchange->bytes, is_trusted, proxies, client) &&
           is_trusted(proxies, &handle->remote);
}

enum {
    DESCRIBED = 200, /* bytes of a target */
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
        rb_str_new_cstr(exchange->work.connection && exchange->work.connection->transport.tls ? "https" : "http"),
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

heddle_connection *heddle_exchange_open_connection(heddle_exchange_handle *handle)
{
    heddle_connection *connection = heddle_exchange_connection(handle);
    if (!connection)
        rb_raise(rb_eIOError, "this request is complete, or its connection is closed");
    heddle_connection_check_thread(connection);
    return connection;
}

heddle_connection *heddle_exchange_writable_connection(heddle_exchange_handle *handle)
{
    heddle_connection *connection = heddle_exchange_connection(handle);
    if (!connection)
        heddle_exchange_raise_gone("the connection was closed before the client had the answer", 0);
    heddle_connection_check_thread(connection);
    if (connection->error)
        heddle_exchange_raise_gone("the client left before it had the answer", connection->error);
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
    VALUE arguments[] = {INT2FIX(rejection->status), rb_str_new_cstr(rejection->reason)};
    /* Data.new turns the arguments into keywords. */
    VALUE object = rb_funcallv(rb_path2class("Heddle::HTTP::Rejection"), rb_intern("new"), 2, arguments);
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

static VALUE length_of(const heddle_request_head *head)
{
    return head->content_length < 0 ? Qnil : LL2NUM(head->content_length);
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

VALUE heddle_exchange_body_object(heddle_exchange *exchange)
{
    if (exchange->spool && !exchange->spool->kept)
        return heddle_spooled_body(exchange->spool);
    return heddle_exchange_take_body(exchange);
}

/* -- the body ---------------------------------------------------------------------------------------------------- */

/*
 * call-seq: take_body -> String, SpooledBody or nil
 *
 * The part of the body that was received before the request was served; once.
 */
HEDDLE_DEFINE_METHOD(exchange_take_body, "take_body",
                     heddle_exchange_body_object(heddle_exchange_of(heddle_exchange_handle_of(self))))

static VALUE call_cancel(VALUE object)
{
    return rb_funcallv(object, rb_intern("cancel"), 0, NULL);
}

void heddle_exchange_disconnected(heddle_exchange *exchange)
{
    heddle_exchange_handle *handle = exchange->handle;
    if (!handle || !handle->on_disconnect)
        return;
    VALUE object = handle->on_disconnect;
    int state = 0;
    handle->on_disconnect = 0;
    rb_protect(call_cancel, object, &state);
    if (state)
        heddle_take_errinfo();
    RB_GC_GUARD(object);
}

/*
 * call-seq: cancel_on_disconnect(scope) -> nil
 *
 * Calls `scope.cancel`, once, when the client leaves before the exchange is complete: it closes its side of the
 * connection, resets the connection or the stream, or the connection fails. Calls it at once if that has happened
 * already.
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

/* Is it the request of a health check? */
static VALUE exchange_probe_p(VALUE self)
{
    const heddle_exchange *exchange = heddle_exchange_handle_of(self)->exchange;
    return exchange && exchange->work.probe ? Qtrue : Qfalse;
}

/* The env that the application gets; nil: not made yet. */
static VALUE exchange_env(VALUE self)
{
    VALUE env = heddle_exchange_handle_of(self)->env;
    return env ? env : Qnil;
}

/*
 * call-seq: reject(status, reason) -> true or false
 *
 * Answers with a sentence of text, lets the client receive it, and takes no fiber. Over HTTP/1.1 the connection closes.
 * false when the client has gone.
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

#define METHODS(X)                                                                                                     \
    /* The method as sent: methods are case-sensitive. */                                                              \
    X(exchange_method, "method", string_of(exchange_of(self), exchange_of(self)->head.method))                         \
    /* The request target as sent. */                                                                                  \
    X(exchange_target, "target", string_of(exchange_of(self), exchange_of(self)->head.target))                         \
    /* Does the request name a proxy in front of this server: in Via, Forwarded, X-Forwarded-* or X-Real-IP? */        \
    X(exchange_proxied_p, "proxied?", is_proxied(exchange_of(self)) ? Qtrue : Qfalse)                                  \
    /* The length of the body; nil if there is none or it is unknown. */                                               \
    X(exchange_content_length, "content_length", length_of(&exchange_of(self)->head))                                  \
    /* Is the body chunked? */                                                                                         \
    X(exchange_chunked_p, "chunked?", exchange_of(self)->head.content_length == HEDDLE_CHUNKED_BODY ? Qtrue : Qfalse)  \
    /* Does a body follow? */                                                                                          \
    X(exchange_body_p, "body?", has_body(&exchange_of(self)->head) ? Qtrue : Qfalse)                                   \
    /* Does the client want to keep the connection open after the response? */                                         \
    X(exchange_keep_alive_p, "keep_alive?", exchange_of(self)->head.keep_alive ? Qtrue : Qfalse)                       \
    /* Does the request's method demand a response without content? */                                                 \
    X(exchange_head_p, "head?", exchange_of(self)->head.method_id == HEDDLE_HEAD ? Qtrue : Qfalse)                     \
    /* 0 for HTTP/1.0, 1 for HTTP/1.1 and later minor versions. */                                                     \
    X(exchange_minor, "minor", INT2FIX(exchange_of(self)->head.minor))                                                 \
    /* Seconds since the head was complete. */                                                                         \
    X(exchange_age, "age", DBL2NUM((double)(heddle_clock_now() - exchange_of(self)->arrived) / 1e9))                   \
    X(exchange_engine, "engine", heddle_exchange_handle_of(self)->engine_object)                                       \
    /* The peer's address, also after the connection has ended. */                                                     \
    X(exchange_remote_address, "remote_address", heddle_address_string(&heddle_exchange_handle_of(self)->remote))      \
    /* Is the exchange complete, or its connection closed or taken over? */                                            \
    X(exchange_closed_p, "closed?", heddle_exchange_connection(heddle_exchange_handle_of(self)) ? Qfalse : Qtrue)      \
    /* Does the client ask for a WebSocket, and is it allowed here? */                                                 \
    X(exchange_upgradable_p, "upgradable?", heddle_exchange_handle_of(self)->upgradable ? Qtrue : Qfalse)              \
    /* The status that was sent; 0 when this object has sent none. */                                                  \
    X(exchange_status_sent, "status_sent", INT2FIX(heddle_exchange_handle_of(self)->status))                           \
    /* Bytes of content that C has sent. */                                                                            \
    X(exchange_content_sent, "content_sent", ULL2NUM(heddle_exchange_handle_of(self)->sent))
METHODS(HEDDLE_DEFINE_METHOD)

VALUE heddle_exchange_define(VALUE version, const heddle_exchange_methods *methods)
{
    VALUE exchange_class = rb_define_class_under(version, "Exchange", rb_path2class("Heddle::HTTP::Exchange"));
    rb_gc_register_mark_object(exchange_class);
    rb_define_method(exchange_class, "received?", methods->is_received, 0);
    rb_define_method(exchange_class, "expects?", methods->is_expecting, 0);
    rb_define_method(exchange_class, "end_expectation", methods->end_expectation, 0);
    rb_define_method(exchange_class, "buffered?", methods->is_buffered, 0);
    rb_define_method(exchange_class, "decode", methods->decode, 0);
    rb_define_method(exchange_class, "fill", methods->fill, 1);
    rb_define_method(exchange_class, "write", methods->write, 1);
    rb_define_method(exchange_class, "finish", methods->finish, 2);
    return exchange_class;
}

void Init_heddle_exchange(VALUE http)
{
    VALUE class = heddle_define_class(http, "Exchange", NULL);
    METHODS(HEDDLE_REGISTER_METHOD)
    rb_define_method(class, "take_body", exchange_take_body, 0);
    rb_define_method(class, "reject", exchange_reject, 2);
    rb_define_method(class, "close", exchange_close, 0);
    rb_define_method(class, "cancel_on_disconnect", exchange_cancel_on_disconnect, 1);
    rb_define_method(class, "probe?", exchange_probe_p, 0);
    rb_define_method(class, "env", exchange_env, 0);
}
