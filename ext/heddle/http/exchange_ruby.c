#include "http/exchange_ruby.h"

#include "http/body_spool_ruby.h"
#include "http/forwarded.h"
#include "net/networks.h"

#include <errno.h>
#include <ruby/io.h>

static VALUE exchange_class;

static void handle_mark(void *data)
{
    rb_gc_mark(((heddle_exchange_handle *)data)->engine_object);
}

static void let_go(heddle_exchange_handle *handle)
{
    if (handle->exchange)
        heddle_exchange_give_back(handle->engine, handle->exchange);
    handle->exchange = NULL;
}

static void handle_free(void *data)
{
    heddle_exchange_handle *handle = data;
    if (handle->base.connection)
        handle->base.connection->handle = NULL;
    let_go(handle);
    heddle_protocol_let_go(&handle->engine->base);
    xfree(handle);
}

static size_t handle_size(const void *data)
{
    return sizeof(heddle_exchange_handle);
}

static const rb_data_type_t exchange_type = {
    .wrap_struct_name = "Heddle::HTTP::H1::Exchange",
    .function = {.dmark = handle_mark, .dfree = handle_free, .dsize = handle_size},
    .parent = &heddle_handle_type,
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

VALUE heddle_exchange_object(heddle_connection *connection)
{
    heddle_exchange_handle *handle;
    heddle_engine *engine = heddle_h1_engine(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    VALUE object = TypedData_Make_Struct(exchange_class, heddle_exchange_handle, &exchange_type, handle);
    *handle = (heddle_exchange_handle){
        .base.connection = connection,
        .engine = engine,
        .engine_object = connection->sockets->protocol_object,
        .exchange = h1->exchange,
        .remote = connection->remote,
    };
    h1->exchange = NULL;
    heddle_protocol_hold(&engine->base);
    connection->handle = &handle->base;
    return object;
}

heddle_exchange_handle *heddle_exchange_handle_of(VALUE self)
{
    heddle_exchange_handle *handle;
    TypedData_Get_Struct(self, heddle_exchange_handle, &exchange_type, handle);
    return handle;
}

static bool trusts(const void *networks, const heddle_address *address)
{
    return heddle_networks_trust(*(const VALUE *)networks, address);
}

bool heddle_exchange_client(const heddle_exchange_handle *handle, heddle_address *client)
{
    const heddle_exchange *exchange = handle->exchange;
    const VALUE *proxies = &handle->engine->proxies;
    return heddle_forwarded_client(&exchange->head, exchange->bytes, trusts, proxies, client) &&
           trusts(proxies, &handle->remote);
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
        DBL2NUM((double)(heddle_now() - exchange->arrived) / 1e9),
        heddle_address_string(&client),
        handle->status ? INT2FIX(handle->status) : Qnil,
    };
    return rb_ary_new_from_values(sizeof(parts) / sizeof(parts[0]), parts);
}

void heddle_exchange_served(VALUE self)
{
    let_go(heddle_exchange_handle_of(self));
}

heddle_exchange *heddle_exchange_of(heddle_exchange_handle *handle)
{
    if (!handle->exchange)
        rb_raise(rb_eIOError, "this request is over");
    return handle->exchange;
}

static heddle_exchange *exchange_of(VALUE self)
{
    return heddle_exchange_of(heddle_exchange_handle_of(self));
}

static heddle_connection *connection_of(heddle_exchange_handle *handle)
{
    return heddle_connection_open(&handle->base);
}

static heddle_h1 *h1_of(VALUE self)
{
    return heddle_h1_of(connection_of(heddle_exchange_handle_of(self)));
}

/* -- what went wrong --------------------------------------------------------------------------------------------- */

void heddle_exchange_gone(const char *text, int error)
{
    VALUE message = rb_str_new_cstr(text);
    if (error) {
        VALUE cause = rb_syserr_new(error, NULL);
        rb_str_catf(message, " (%" PRIsVALUE ")", rb_obj_class(cause));
    }
    rb_exc_raise(rb_exc_new_str(rb_path2class("Heddle::ClientGone"), message));
}

NORETURN(static void raise_bad_request(const heddle_refusal *refusal));
static void raise_bad_request(const heddle_refusal *refusal)
{
    VALUE arguments[] = {INT2FIX(refusal->status), rb_str_new_cstr(refusal->reason)};
    /* Data makes keywords of them in `new`. */
    VALUE object = rb_funcallv(rb_path2class("Heddle::HTTP::H1::Refusal"), rb_intern("new"), 2, arguments);
    rb_exc_raise(rb_class_new_instance(1, &object, rb_path2class("Heddle::HTTP::BadRequest")));
}

/* -- the head ---------------------------------------------------------------------------------------------------- */

static VALUE text(const heddle_exchange *exchange, heddle_slice slice)
{
    return rb_str_new(exchange->bytes + slice.start, slice.size);
}

#define TEXT(name)                                                                                                    \
    static VALUE exchange_##name(VALUE self)                                                                          \
    {                                                                                                                 \
        heddle_exchange *exchange = exchange_of(self);                                                                \
        return text(exchange, exchange->head.name);                                                                   \
    }

/* The method, as sent: methods are case-sensitive. */
TEXT(method)
/* The request target, as sent. */
TEXT(target)

/*
 * call-seq: head_bytes -> String
 *
 * The head as it was sent.
 */
static VALUE exchange_head_bytes(VALUE self)
{
    heddle_exchange *exchange = exchange_of(self);
    return rb_str_new(exchange->bytes, exchange->head.size);
}

/*
 * call-seq: minor -> 0 or 1
 *
 * 0 for HTTP/1.0, 1 for HTTP/1.1 and later minor versions.
 */
static VALUE exchange_minor(VALUE self)
{
    return INT2FIX(exchange_of(self)->head.minor);
}

/*
 * call-seq: proxied? -> true or false
 *
 * Does the request name a proxy in front of this server: in Via, Forwarded, X-Forwarded-* or X-Real-IP? The proxy need
 * not be one whose word is taken.
 */
static VALUE exchange_proxied_p(VALUE self)
{
    const heddle_exchange *exchange = exchange_of(self);
    return heddle_forwarded_any(&exchange->head, exchange->bytes) ? Qtrue : Qfalse;
}

/*
 * call-seq: content_length -> Integer or nil
 *
 * The length of the body; nil if there is none or it is not known.
 */
static VALUE exchange_content_length(VALUE self)
{
    int64_t length = exchange_of(self)->head.content_length;
    return length < 0 ? Qnil : LL2NUM(length);
}

#define QUESTION(name, expression)                                                                                    \
    static VALUE exchange_##name(VALUE self)                                                                          \
    {                                                                                                                 \
        const heddle_request_head *head = &exchange_of(self)->head;                                                   \
        return (expression) ? Qtrue : Qfalse;                                                                         \
    }

/* Is the body chunked? */
QUESTION(chunked_p, head->content_length == HEDDLE_CHUNKED_BODY)
/* Does a body follow? */
QUESTION(body_p, head->content_length == HEDDLE_CHUNKED_BODY || head->content_length > 0)
/* Does the client want the connection to go on after the answer? */
QUESTION(keep_alive_p, head->keep_alive)
/* Has the answer no content, whatever its status? */
QUESTION(head_p, head->method_id == HEDDLE_HEAD)
QUESTION(connect_p, head->method_id == HEDDLE_CONNECT)

/*
 * call-seq: age -> Float
 *
 * Seconds since the head was complete.
 */
static VALUE exchange_age(VALUE self)
{
    return DBL2NUM((double)(heddle_now() - exchange_of(self)->arrived) / 1e9);
}

static VALUE exchange_engine(VALUE self)
{
    return heddle_exchange_handle_of(self)->engine_object;
}

/* The peer's address, also when the connection is gone. */
static VALUE exchange_remote_address(VALUE self)
{
    return heddle_address_string(&heddle_exchange_handle_of(self)->remote);
}

/* -- the body ---------------------------------------------------------------------------------------------------- */

/*
 * call-seq: take_body -> String, SpooledBody or nil
 *
 * What was read of the body before anybody served the request; once.
 */
static VALUE exchange_take_body(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_exchange *exchange = heddle_exchange_of(handle);
    if (exchange->spool && !exchange->spool->kept)
        return heddle_spooled_body(exchange->spool);
    return heddle_exchange_take_body(handle->engine, exchange);
}

/* Is the body complete, as far as the wire is concerned? */
static VALUE exchange_received_p(VALUE self)
{
    return h1_of(self)->received ? Qtrue : Qfalse;
}

/* Does the client wait for 100 Continue? */
static VALUE exchange_expects_p(VALUE self)
{
    return h1_of(self)->expects ? Qtrue : Qfalse;
}

/* It waits no more. */
static VALUE exchange_expected(VALUE self)
{
    h1_of(self)->expects = false;
    return Qnil;
}

/* Are there bytes that nothing has used yet? */
static VALUE exchange_buffered_p(VALUE self)
{
    return heddle_connection_buffered(connection_of(heddle_exchange_handle_of(self))) ? Qtrue : Qfalse;
}

/* Is what the application has left of the body likely worth reading for the sake of the connection? */
static VALUE exchange_discardable_p(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    return heddle_h1_discardable(handle->engine, heddle_h1_of(connection_of(handle))) ? Qtrue : Qfalse;
}

static VALUE take_length(heddle_connection *connection, heddle_h1 *h1)
{
    size_t size = heddle_connection_buffered(connection);
    if ((int64_t)size > h1->left)
        size = (size_t)h1->left;
    if (size == 0)
        return Qnil;
    VALUE bytes = rb_str_new(connection->input + connection->input_start, (long)size);
    heddle_connection_use_input(connection, size);
    h1->left -= (int64_t)size;
    h1->received = h1->left == 0;
    return bytes;
}

static VALUE take_chunks(heddle_exchange_handle *handle, heddle_connection *connection, heddle_h1 *h1)
{
    heddle_refusal refusal;
    size_t size = heddle_connection_buffered(connection), length;
    if (size == 0)
        return Qnil;
    VALUE bytes = rb_str_buf_new((long)size);
    int64_t used = heddle_chunked_decode(&h1->chunked, connection->input + connection->input_start, size,
                                         RSTRING_PTR(bytes), &length, &handle->engine->limits, &refusal);
    if (used < 0)
        raise_bad_request(&refusal);
    rb_str_set_len(bytes, (long)length);
    heddle_connection_use_input(connection, (size_t)used);
    h1->received = h1->chunked.done;
    return length ? bytes : Qnil;
}

/*
 * call-seq: decode -> String or nil
 *
 * The body's bytes that have come; nil if there are none now. Raises BadRequest for what is malformed or too large.
 */
static VALUE exchange_decode(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_connection *connection = connection_of(handle);
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (h1->received)
        return Qnil;
    return h1->left < 0 ? take_chunks(handle, connection, h1) : take_length(connection, h1);
}

/*
 * call-seq: fill(timeout) -> Integer or nil
 *
 * Reads what comes of the body; waits if nothing is there. How many bytes; nil at the end of input. Raises
 * IO::TimeoutError, and ClientGone when the connection broke.
 */
static VALUE exchange_fill(VALUE self, VALUE seconds)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    int64_t timeout = heddle_duration(seconds), deadline = -1;
    if (handle->base.waits[HEDDLE_READING])
        rb_raise(rb_eIOError, "another fiber is reading this request's body already");
    for (;;) {
        heddle_connection *connection = connection_of(handle);
        heddle_h1 *h1 = heddle_h1_of(connection);
        if (h1->ended)
            return Qnil;
        char *room = heddle_connection_room(connection, HEDDLE_SCRATCH);
        if (!room)
            rb_memerror();
        ssize_t bytes = heddle_connection_receive(connection, room, HEDDLE_SCRATCH);
        if (bytes > 0) {
            connection->input_end += (uint32_t)bytes;
            return SSIZET2NUM(bytes);
        }
        if (!heddle_connection_buffered(connection))
            heddle_connection_drop_input(connection);
        if (bytes == 0) {
            h1->ended = true;
            return Qnil;
        }
        if (bytes != -EAGAIN)
            heddle_exchange_gone("the connection broke", (int)-bytes);
        if (deadline < 0 && timeout >= 0)
            deadline = heddle_deadline(timeout);
        if (!heddle_connection_wait_for(&handle->base, HEDDLE_READING, deadline))
            rb_raise(rb_eIOTimeoutError, "the client sent nothing in time");
    }
}

/* -- ending ------------------------------------------------------------------------------------------------------ */

/*
 * call-seq: finish(reusable, status) -> nil
 *
 * The answer is complete: what is left of it goes out by itself. With +reusable+ the connection may serve another
 * request; this object is of no use for it any more. +status+ is counted.
 */
static VALUE exchange_finish(VALUE self, VALUE reusable, VALUE status)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_connection *connection = heddle_exchange_writable(handle);
    /* Now, as long as there is somebody who can be told that it fails; answers to pipelined requests leave together. */
    if (!heddle_connection_buffered(connection))
        heddle_exchange_flush(connection);
    heddle_h1_answered(connection, RTEST(reusable), NUM2INT(status));
    return Qnil;
}

/*
 * call-seq: refuse(status, reason) -> true or false
 *
 * Answers with a sentence for a person, waits for the client to take it in, and closes; without a fiber. false when
 * nobody is left to be told.
 */
static VALUE exchange_refuse(VALUE self, VALUE status, VALUE reason)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_refusal refusal;
    heddle_refuse(&refusal, NUM2INT(status), "%s", StringValueCStr(reason));
    heddle_exchange *exchange = heddle_exchange_of(handle);
    if (!handle->base.connection)
        return Qfalse;
    heddle_connection *connection = connection_of(handle);
    handle->status = refusal.status;
    if (!heddle_h1_add_refusal(connection, &refusal, exchange->head.method_id != HEDDLE_HEAD, NULL)) {
        heddle_sockets_close_connection(connection);
        return Qfalse;
    }
    heddle_h1_refused(connection, refusal.status);
    return Qtrue;
}

/*
 * call-seq: close -> nil
 *
 * Without further words: what was promised and not sent, the client must see as missing. Idempotent.
 */
static VALUE exchange_close(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_connection *connection = handle->base.connection;
    if (!connection)
        return Qnil;
    heddle_connection_open(&handle->base);
    heddle_connection_flush(connection);
    heddle_sockets_close_connection(connection);
    return Qnil;
}

/* The status that was sent; 0 when it was not by this object. */
static VALUE exchange_status_sent(VALUE self)
{
    return INT2FIX(heddle_exchange_handle_of(self)->status);
}

/* Bytes of content that C has sent. */
static VALUE exchange_content_sent(VALUE self)
{
    return ULL2NUM(heddle_exchange_handle_of(self)->sent);
}

void Init_heddle_exchange(VALUE h1)
{
    exchange_class = rb_define_class_under(h1, "Exchange", heddle_connection_class);
    rb_undef_alloc_func(exchange_class);
    rb_undef_method(exchange_class, "idle!"); /* see finish */
    rb_define_method(exchange_class, "method", exchange_method, 0);
    rb_define_method(exchange_class, "target", exchange_target, 0);
    rb_define_method(exchange_class, "head_bytes", exchange_head_bytes, 0);
    rb_define_method(exchange_class, "minor", exchange_minor, 0);
    rb_define_method(exchange_class, "proxied?", exchange_proxied_p, 0);
    rb_define_method(exchange_class, "content_length", exchange_content_length, 0);
    rb_define_method(exchange_class, "chunked?", exchange_chunked_p, 0);
    rb_define_method(exchange_class, "body?", exchange_body_p, 0);
    rb_define_method(exchange_class, "keep_alive?", exchange_keep_alive_p, 0);
    rb_define_method(exchange_class, "head?", exchange_head_p, 0);
    rb_define_method(exchange_class, "connect?", exchange_connect_p, 0);
    rb_define_method(exchange_class, "age", exchange_age, 0);
    rb_define_method(exchange_class, "engine", exchange_engine, 0);
    rb_define_method(exchange_class, "remote_address", exchange_remote_address, 0);
    rb_define_method(exchange_class, "take_body", exchange_take_body, 0);
    rb_define_method(exchange_class, "received?", exchange_received_p, 0);
    rb_define_method(exchange_class, "expects?", exchange_expects_p, 0);
    rb_define_method(exchange_class, "expected", exchange_expected, 0);
    rb_define_method(exchange_class, "buffered?", exchange_buffered_p, 0);
    rb_define_method(exchange_class, "discardable?", exchange_discardable_p, 0);
    rb_define_method(exchange_class, "decode", exchange_decode, 0);
    rb_define_method(exchange_class, "fill", exchange_fill, 1);
    rb_define_method(exchange_class, "finish", exchange_finish, 2);
    rb_define_method(exchange_class, "refuse", exchange_refuse, 2);
    rb_define_method(exchange_class, "close", exchange_close, 0);
    rb_define_method(exchange_class, "status_sent", exchange_status_sent, 0);
    rb_define_method(exchange_class, "content_sent", exchange_content_sent, 0);
    Init_heddle_exchange_sending(exchange_class);
}
