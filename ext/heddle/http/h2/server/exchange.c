/* Heddle::HTTP::H2::Exchange: an exchange over a stream of HTTP/2. */

#include "binding.h"
#include "http/response_head_ruby.h"
#include "http/exchange_ruby.h"
#include "http/h2/server/server.h"

#include <ruby/io.h>

static VALUE exchange_class;

/* Raises when the exchange has ended. */
static heddle_h2_carrier *carrier_of(heddle_exchange_handle *handle)
{
    heddle_exchange_open_connection(handle);
    heddle_h2_carrier *carrier = handle->exchange->carrier;
    heddle_h2_set_now(carrier->server->session, heddle_clock_coarse());
    return carrier;
}

/* The same while a response can be sent; raises ClientGoneError otherwise. */
static heddle_h2_carrier *find_writable(heddle_exchange_handle *handle)
{
    heddle_exchange_writable_connection(handle);
    heddle_h2_carrier *carrier = handle->exchange->carrier;
    if (carrier->gone)
        heddle_exchange_raise_gone("the client has reset the stream before it had the answer", 0);
    heddle_h2_set_now(carrier->server->session, heddle_clock_coarse());
    return carrier;
}

/* -- waiting ------------------------------------------------------------------------------------------------------- */

/* The client's window may be closed. */
static void note_lender(heddle_wait *wait, bool begins)
{
    ((heddle_sockets *)wait->data)->lenders += begins ? 1 : (size_t)-1;
}

/* False: the deadline has passed. The carrier may be freed. */
static bool wait_for(heddle_h2_carrier *carrier, heddle_direction direction, int64_t deadline)
{
    heddle_sockets *sockets = carrier->server->connection->sockets;
    bool reads = direction == HEDDLE_READING;
    heddle_wait wait = {.slot = &carrier->waits[direction], .deadline = deadline, .part = HEDDLE_SPENT_CLIENT,
                        .note = reads ? NULL : note_lender, .data = sockets};
    return heddle_wait_in_slot(sockets->loop, wait,
                               reads ? "another fiber is reading this request's body already"
                                     : "another fiber is writing this answer already") != HEDDLE_WAIT_TIMED_OUT;
}

/* -- the body ------------------------------------------------------------------------------------------------------ */

HEDDLE_DEFINE_METHOD(exchange_received_p, "received?",
                     carrier_of(heddle_exchange_handle_of(self))->received ? Qtrue : Qfalse)

/* Does the client wait for 100 Continue? It got that at once. */
HEDDLE_DEFINE_METHOD(exchange_expects_p, "expects?", Qfalse)

HEDDLE_DEFINE_METHOD(exchange_end_expectation, "end_expectation", Qnil)

static VALUE exchange_buffered_p(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    carrier_of(handle);
    return handle->exchange->body_size > 0 ? Qtrue : Qfalse;
}

/*
 * call-seq: decode -> String or nil
 *
 * The received bytes of the body; nil if there are none now. The client may send as many again.
 */
static VALUE exchange_decode(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_h2_carrier *carrier = carrier_of(handle);
    size_t size = handle->exchange->body_size;
    VALUE bytes = heddle_exchange_take_body(handle->exchange);
    if (size > 0 && !carrier->gone) {
        heddle_h2_consume(carrier->server->session, carrier->stream, size);
        heddle_last_use(heddle_h2_send(carrier->server));
    }
    return bytes;
}

/* See HTTP::Exchange; the client may send as many bytes of a streamed body again. */
static VALUE exchange_take_body(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_exchange *exchange = heddle_exchange_of(handle);
    bool streamed = exchange->carrier && heddle_h2_carrier_of(exchange)->streams;
    return streamed ? exchange_decode(self) : heddle_exchange_body_object(exchange);
}

/*
 * call-seq: fill(timeout) -> Integer or nil
 *
 * Waits for more of the body. Returns how many bytes are there; 0 at its end. Raises IO::TimeoutError, and
 * ClientGoneError when the client has reset the stream.
 */
static VALUE exchange_fill(VALUE self, VALUE seconds)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    int64_t timeout = heddle_parse_duration(seconds), deadline = timeout < 0 ? -1 : heddle_deadline_after(timeout);
    for (;;) {
        heddle_h2_carrier *carrier = carrier_of(handle);
        if (handle->exchange->body_size > 0)
            return SIZET2NUM(handle->exchange->body_size);
        if (carrier->gone)
            heddle_exchange_raise_gone("the client has reset the stream within the request's body", 0);
        if (carrier->received)
            return INT2FIX(0);
        if (!wait_for(carrier, HEDDLE_READING, deadline))
            rb_raise(rb_eIOTimeoutError, "the client sent nothing in time");
    }
}

/* -- the answer ---------------------------------------------------------------------------------------------------- */

static void check_written(heddle_h2_write_result result)
{
    if (result == HEDDLE_H2_GONE)
        heddle_exchange_raise_gone("the client has reset the stream before it had the answer", 0);
    if (result != HEDDLE_H2_WRITTEN)
        rb_raise(rb_path2class("Heddle::HTTP::InvalidResponseError"), "these headers can't be sent over HTTP/2");
}

/*
 * call-seq: write_head(status, fields, ended) -> nil
 *
 * Sends a head with fields from H2::ResponseWriter; with +ended+ no content follows. Raises ClientGoneError.
 */
static VALUE exchange_write_head(VALUE self, VALUE status, VALUE fields, VALUE ended)
{
    int code = NUM2INT(status);
    heddle_h2_carrier *carrier = find_writable(heddle_exchange_handle_of(self));
    Check_Type(fields, T_STRING);
    check_written(heddle_h2_send_head(carrier, code, RSTRING_PTR(fields), (size_t)RSTRING_LEN(fields), RTEST(ended)));
    heddle_last_use(heddle_h2_send(carrier->server));
    return Qnil;
}

/*
 * call-seq: hold(status, fields) -> nil
 *
 * Sends a head in the loop's next tick, unless it is withdrawn before. Content needs #release_head first.
 */
static VALUE exchange_hold(VALUE self, VALUE status, VALUE fields)
{
    int code = NUM2INT(status);
    heddle_h2_carrier *carrier = find_writable(heddle_exchange_handle_of(self));
    Check_Type(fields, T_STRING);
    check_written(heddle_h2_hold_head(carrier, code, RSTRING_PTR(fields), (size_t)RSTRING_LEN(fields)));
    RB_GC_GUARD(fields);
    return Qnil;
}

/* Sends the held head, if it has not left yet. Raises ClientGoneError. */
static VALUE exchange_release_head(VALUE self)
{
    heddle_h2_carrier *carrier = find_writable(heddle_exchange_handle_of(self));
    heddle_h2_release_head(carrier);
    heddle_last_use(heddle_h2_send(carrier->server));
    return Qnil;
}

/* call-seq: withdraw -> true or false; false: it has left, or there was none. */
static VALUE exchange_withdraw(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    return heddle_exchange_connection(handle) && heddle_h2_drop_head(heddle_h2_carrier_of(handle->exchange)) ? Qtrue
                                                                                                          : Qfalse;
}

/*
 * call-seq: write(string) -> self
 *
 * Sends content. Waits while the client is slower than the application. Raises ClientGoneError.
 */
static VALUE exchange_write(VALUE self, VALUE string)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    StringValue(string);
    string = rb_str_new_frozen(string);
    for (size_t at = 0; at < (size_t)RSTRING_LEN(string);) {
        heddle_h2_carrier *carrier = find_writable(handle);
        size_t taken = heddle_h2_write(carrier->server->session, carrier->stream, RSTRING_PTR(string) + at,
                                       (size_t)RSTRING_LEN(string) - at);
        at += taken;
        if (taken > 0) /* credit may make room at once */
            heddle_last_use(heddle_h2_send(carrier->server));
        else if (heddle_h2_is_stuck(carrier->server))
            heddle_h2_reset_exchange(carrier);
        else if (heddle_h2_may_write(carrier->stream))
            wait_for(carrier, HEDDLE_WRITING, -1); /* the session has the time limit for a client that takes nothing */
        else if (find_writable(handle)) /* the wait would never end if the stream has ended within this write */
            rb_raise(rb_eIOError, "a response takes content between its head and its end alone");
    }
    RB_GC_GUARD(string);
    return self;
}

/* Has the client reset the stream or ended its side of the connection, or has the exchange ended? */
static VALUE exchange_gone_p(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    if (!heddle_exchange_connection(handle))
        return Qtrue;
    const heddle_h2_carrier *carrier = heddle_h2_carrier_of(handle->exchange);
    return carrier->gone || carrier->server->ended ? Qtrue : Qfalse;
}

static void complete_exchange(heddle_exchange_handle *handle, heddle_h2_carrier *carrier, int status)
{
    heddle_h2_server *server = carrier->server;
    heddle_engine_count_response(handle->engine, carrier->exchange, status);
    heddle_h2_drop_carrier(carrier);
    heddle_last_use(heddle_h2_send(server));
}

/*
 * call-seq: finish(keep_alive, status) -> nil
 *
 * The response is complete: the session sends the rest. +status+ is counted. The connection lives on in any case.
 */
static VALUE exchange_finish(VALUE self, VALUE keep_alive, VALUE status)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_h2_carrier *carrier = find_writable(handle);
    if (heddle_h2_finish(carrier->server->session, carrier->stream, NULL, 0) != HEDDLE_H2_WRITTEN)
        heddle_h2_reset(carrier->server->session, carrier->stream, HEDDLE_H2_INTERNAL_ERROR);
    complete_exchange(handle, carrier, NUM2INT(status));
    return Qnil;
}

static bool reject_running(heddle_exchange_handle *handle, const heddle_rejection *rejection, bool content)
{
    if (heddle_h2_carrier_of(handle->exchange)->gone)
        return false;
    heddle_h2_carrier *carrier = carrier_of(handle);
    heddle_h2_send_rejection(carrier->server, carrier->stream, rejection, content, NULL);
    complete_exchange(handle, carrier, rejection->status);
    return true;
}

/* Resets the stream, so that the client sees an incomplete response. */
static void reset_stream(heddle_exchange *exchange)
{
    heddle_h2_carrier *carrier = heddle_h2_carrier_of(exchange);
    heddle_h2_server *server = carrier->server;
    heddle_h2_set_now(server->session, heddle_clock_coarse());
    heddle_h2_reset(server->session, carrier->stream, HEDDLE_H2_INTERNAL_ERROR);
    heddle_h2_drop_carrier(carrier);
    heddle_last_use(heddle_h2_send(server));
}

/* -- as the operations of an exchange ------------------------------------------------------------------------------ */

static VALUE object_class(void)
{
    return exchange_class;
}

static bool respond_plain(heddle_exchange_handle *handle, VALUE status_value, VALUE headers, VALUE body, int64_t size,
                    bool wait)
{
    heddle_engine *engine = handle->engine;
    const heddle_request_head *request = &heddle_exchange_of(handle)->head;
    if (wait || request->method_id == HEDDLE_CONNECT)
        return false;
    int status = heddle_response_status(status_value); /* may run the application's code */
    find_writable(handle);
    heddle_head_writer head = {
        .request = request->method_id, .form = HEDDLE_AS_FIELDS, .minor = 1, .status = status, .keep_alive = true,
        .length = heddle_content_length_of(request, size),
    };
    heddle_buffer *out = &engine->out;
    size_t start = out->used;
    heddle_response_head_write(&head, out, headers, Qnil, heddle_engine_date(engine), HEDDLE_DATE_LINE);
    size_t head_size = out->used - start;
    out->used = start;
    /* Application code may have run. */
    if (!heddle_exchange_connection(handle) || heddle_h2_carrier_of(handle->exchange)->gone || head.has_internal ||
        head.declared_chunked || head.framing > HEDDLE_CONTENT_BY_LENGTH || heddle_content_size(body) != size)
        return false;
    heddle_h2_carrier *carrier = handle->exchange->carrier;
    bool content = head.framing == HEDDLE_CONTENT_BY_LENGTH && size > 0;
    check_written(heddle_h2_send_head(carrier, head.status, out->bytes + start, head_size, !content));
    handle->status = head.status;
    if (content) {
        heddle_h2_session *session = carrier->server->session;
        long i = 0;
        while (i < RARRAY_LEN(body) && heddle_h2_send_string(carrier, RARRAY_AREF(body, i)))
            i++;
        if (i < RARRAY_LEN(body))
            heddle_h2_reset(session, carrier->stream, HEDDLE_H2_INTERNAL_ERROR);
        handle->sent = (uint64_t)size;
        heddle_h2_finish(session, carrier->stream, NULL, 0);
    }
    complete_exchange(handle, carrier, head.status);
    return true;
}

static bool write_piece(heddle_exchange_handle *handle, VALUE string)
{
    return false;
}

static void reject_exchange(heddle_exchange *exchange, const heddle_rejection *rejection, const char *retry_after)
{
    heddle_h2_carrier *carrier = heddle_h2_carrier_of(exchange);
    heddle_h2_server *server = carrier->server;
    heddle_h2_send_rejection(server, carrier->stream, rejection, exchange->head.method_id != HEDDLE_HEAD, retry_after);
    heddle_h2_drop_carrier(carrier);
    if (heddle_engine_count_rejection(server->connection, rejection))
        heddle_last_use(heddle_h2_send(server));
}

static bool watch_disconnect(heddle_exchange *exchange)
{
    const heddle_h2_carrier *carrier = heddle_h2_carrier_of(exchange);
    return carrier->gone || carrier->server->ended;
}

const heddle_exchange_operations heddle_h2_exchange_operations = {
    .version = "HTTP/2",
    .object_class = object_class,
    .respond = respond_plain,
    .write_piece = write_piece,
    .watch_disconnect = watch_disconnect,
    .taken = heddle_h2_note_taken,
    .reject = reject_exchange,
    .reject_running = reject_running,
    .abandon = reset_stream,
};

static const heddle_exchange_methods methods = {
    .is_received = exchange_received_p,
    .is_expecting = exchange_expects_p,
    .end_expectation = exchange_end_expectation,
    .is_buffered = exchange_buffered_p,
    .decode = exchange_decode,
    .fill = exchange_fill,
    .write = exchange_write,
    .finish = exchange_finish,
};

void Init_heddle_h2_exchange(VALUE h2)
{
    exchange_class = heddle_exchange_define(h2, &methods);
    rb_define_method(exchange_class, "take_body", exchange_take_body, 0);
    rb_define_method(exchange_class, "write_head", exchange_write_head, 3);
    rb_define_method(exchange_class, "hold", exchange_hold, 2);
    rb_define_method(exchange_class, "release_head", exchange_release_head, 0);
    rb_define_method(exchange_class, "withdraw", exchange_withdraw, 0);
    rb_define_method(exchange_class, "gone?", exchange_gone_p, 0);
}
