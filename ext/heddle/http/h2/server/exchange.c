/* Heddle::HTTP::H2::Exchange: a request and its response over a stream of HTTP/2. */

#include "http/exchange_ruby.h"
#include "http/h2/server/server.h"

#include <ruby/io.h>

static VALUE exchange_class;

/* Returns the carrier, which joins an exchange to its stream. Raises the errors of heddle_exchange_open_connection. */
static heddle_h2_carrier *carrier_of(heddle_exchange_handle *handle)
{
    heddle_exchange_open_connection(handle);
    heddle_h2_carrier *carrier = handle->exchange->carrier;
    carrier->server->session->now = heddle_clock_coarse();
    return carrier;
}

/* The same as carrier_of, but raises ClientGoneError if no response can be sent any more. */
static heddle_h2_carrier *find_writable(heddle_exchange_handle *handle)
{
    heddle_exchange_writable_connection(handle);
    heddle_h2_carrier *carrier = handle->exchange->carrier;
    if (carrier->gone)
        heddle_exchange_raise_gone("the stream ended before the client had the response", 0);
    carrier->server->session->now = heddle_clock_coarse();
    return carrier;
}

/* -- waiting ------------------------------------------------------------------------------------------------------- */

/* Waits until the fiber is woken. Returns false if the deadline has passed. The carrier may be freed meanwhile. */
static bool wait_for(heddle_h2_carrier *carrier, heddle_direction direction, int64_t deadline)
{
    bool reads = direction == HEDDLE_READING;
    heddle_wait wait = {.slot = &carrier->waits[direction], .deadline = deadline, .part = HEDDLE_SPENT_CLIENT};
    return heddle_wait_in_slot(carrier->server->connection->sockets->loop, wait,
                               reads ? "another fiber is reading this request's body already"
                                     : "another fiber is writing this response already") != HEDDLE_WAIT_TIMED_OUT;
}

/* -- the body ------------------------------------------------------------------------------------------------------ */

static bool is_received(heddle_exchange_handle *handle)
{
    return carrier_of(handle)->received;
}

static bool *expectation(heddle_exchange_handle *handle)
{
    return &carrier_of(handle)->expects;
}

static bool is_buffered(heddle_exchange_handle *handle)
{
    carrier_of(handle);
    return handle->exchange->body_size > 0;
}

/* Returns the received bytes of the body, and credits them to the client's windows, so that the client sends more. */
static VALUE decode_body(heddle_exchange_handle *handle)
{
    heddle_h2_carrier *carrier = carrier_of(handle);
    size_t size = handle->exchange->body_size;
    VALUE bytes = heddle_exchange_take_body(handle->exchange);
    heddle_h2_count_body(carrier, -(ssize_t)carrier->body_memory);
    if (size > 0 && !carrier->gone) {
        heddle_h2_consume(carrier->server->session, carrier->stream, size);
        heddle_last_use(heddle_h2_send(carrier->server));
    }
    return bytes;
}

/*
 * Returns the body. Credits the bytes of a streamed body to the client's windows. The bytes of other bodies have
 * already been credited.
 */
static VALUE take_body(heddle_exchange *exchange)
{
    bool streamed = exchange->carrier && heddle_h2_carrier_of(exchange)->streams_body;
    return streamed ? decode_body(exchange->handle) : heddle_exchange_body_object(exchange);
}

static VALUE fill_body(heddle_exchange_handle *handle, int64_t timeout)
{
    int64_t deadline = timeout < 0 ? -1 : heddle_deadline_after(timeout);
    for (;;) {
        heddle_h2_carrier *carrier = carrier_of(handle);
        if (handle->exchange->body_size > 0)
            return SIZET2NUM(handle->exchange->body_size);
        if (carrier->gone)
            heddle_exchange_raise_gone("the client reset the stream before the request's body was complete", 0);
        if (carrier->received)
            return INT2FIX(0);
        if (!wait_for(carrier, HEDDLE_READING, deadline))
            rb_raise(rb_eIOTimeoutError, "timed out waiting for the request's body");
    }
}

/* -- the response -------------------------------------------------------------------------------------------------- */

static void check_written(heddle_h2_write_result result)
{
    if (result == HEDDLE_H2_GONE)
        heddle_exchange_raise_gone("the stream ended before the client had the response", 0);
    if (result != HEDDLE_H2_WRITTEN)
        rb_raise(rb_path2class("Heddle::HTTP::InvalidResponseError"),
                 result == HEDDLE_H2_MISPLACED
                     ? "the response has a head already, more than 1024 headers, or a status that HTTP/2 does not allow"
                     : "a header of the response has a name or value that HTTP/2 does not allow");
}

/*
 * call-seq: write_head(status, fields, ended) -> nil
 *
 * Sends a head with fields from H2::ResponseWriter. If +ended+ is true, no content follows. Raises ClientGoneError if
 * the stream has ended. Raises InvalidResponseError if HTTP/2 does not allow a field, or does not allow a head now.
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
 * Keeps a head, which is sent in the loop's next tick unless it is withdrawn first. Call #release_head before writing
 * content. Raises the same exceptions as #write_head.
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

/* Sends the held head now, unless it was sent already. Raises ClientGoneError if the stream has ended. */
static VALUE exchange_release_head(VALUE self)
{
    heddle_h2_carrier *carrier = find_writable(heddle_exchange_handle_of(self));
    heddle_h2_server *server = carrier->server;
    heddle_h2_enter_session(server);
    heddle_h2_release_head(carrier);
    heddle_h2_end_call(server);
    return Qnil;
}

/*
 * call-seq: withdraw -> true or false
 *
 * Discards the held head. Returns false if it was sent already, or if no head was held.
 */
static VALUE exchange_withdraw(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    return heddle_exchange_connection(handle) && heddle_h2_drop_head(heddle_h2_carrier_of(handle->exchange)) ? Qtrue
                                                                                                          : Qfalse;
}

static void write_content(heddle_exchange_handle *handle, VALUE string)
{
    StringValue(string);
    string = rb_str_new_frozen(string);
    for (size_t at = 0; at < (size_t)RSTRING_LEN(string);) {
        heddle_h2_carrier *carrier = find_writable(handle);
        size_t taken = heddle_h2_write(carrier->server->session, carrier->stream, RSTRING_PTR(string) + at,
                                       (size_t)RSTRING_LEN(string) - at);
        at += taken;
        heddle_h2_set_blocked(carrier, taken == 0);
        if (taken > 0) { /* sending may make room for the next bytes */
            heddle_last_use(heddle_h2_send(carrier->server));
        } else if (heddle_h2_may_write(carrier->stream)) {
            /* the next tick resets the stream if nothing can be sent any more */
            heddle_connection_flush_later(carrier->server->connection);
            /* without a deadline, because the session resets a stream whose client reads nothing for too long */
            wait_for(carrier, HEDDLE_WRITING, -1);
        } else if (find_writable(handle)) { /* raises if the exchange has ended or failed */
            /* Nothing will make room, so this must not wait. */
            rb_raise(rb_eIOError, "content can be written only after a response's head and before its end");
        }
    }
    RB_GC_GUARD(string);
}

/* Has the client reset the stream or ended its side of the connection, or has the connection failed? */
static bool has_client_left(heddle_exchange *exchange)
{
    const heddle_h2_carrier *carrier = heddle_h2_carrier_of(exchange);
    return carrier->gone || carrier->server->ended;
}

/* Also returns true if the exchange has ended. */
static VALUE exchange_gone_p(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    return !heddle_exchange_connection(handle) || has_client_left(handle->exchange) ? Qtrue : Qfalse;
}

static void complete_exchange(heddle_exchange_handle *handle, heddle_h2_carrier *carrier, int status)
{
    heddle_h2_server *server = carrier->server;
    heddle_engine_count_response(handle->engine, carrier->exchange, status);
    heddle_h2_drop_carrier(carrier);
    heddle_h2_end_call(server);
}

/* Ignores `reusable`, because an HTTP/2 connection stays open after a response. */
static void finish_response(heddle_exchange_handle *handle, bool reusable, int status)
{
    heddle_h2_carrier *carrier = find_writable(handle);
    heddle_h2_enter_session(carrier->server);
    if (heddle_h2_finish(carrier->server->session, carrier->stream) != HEDDLE_H2_WRITTEN)
        heddle_h2_reset(carrier->server->session, carrier->stream, HEDDLE_H2_INTERNAL_ERROR);
    complete_exchange(handle, carrier, status);
}

static bool reject_running(heddle_exchange_handle *handle, const heddle_rejection *rejection, bool content)
{
    if (heddle_h2_carrier_of(handle->exchange)->gone)
        return false;
    heddle_h2_carrier *carrier = carrier_of(handle);
    heddle_h2_enter_session(carrier->server);
    heddle_h2_send_rejection(carrier->server, carrier->stream, rejection, content, NULL);
    complete_exchange(handle, carrier, rejection->status);
    return true;
}

/* Resets the stream, so that the client sees an incomplete response. */
static void reset_stream(heddle_exchange *exchange)
{
    heddle_h2_carrier *carrier = heddle_h2_carrier_of(exchange);
    heddle_h2_server *server = carrier->server;
    heddle_h2_enter_session(server);
    heddle_h2_reset(server->session, carrier->stream, HEDDLE_H2_INTERNAL_ERROR);
    heddle_h2_drop_carrier(carrier);
    heddle_h2_end_call(server);
}

/* -- the operations of an exchange --------------------------------------------------------------------------------- */

static void begin_head(heddle_exchange_handle *handle, heddle_head_writer *head)
{
    find_writable(handle);
    head->form = HEDDLE_AS_FIELDS;
    head->minor = 1;
    head->keep_alive = true;
}

static bool send_response(heddle_exchange_handle *handle, const heddle_head_writer *head, heddle_buffer *out,
                          size_t start, VALUE body, size_t size, bool wait)
{
    heddle_h2_carrier *carrier = handle->exchange->carrier;
    size_t head_size = out->used - start;
    out->used = start;
    if (carrier->gone)
        return false;
    check_written(heddle_h2_send_head(carrier, head->status, out->bytes + start, head_size, size == 0));
    handle->status = head->status;
    heddle_h2_session *session = carrier->server->session;
    long i = 0, count = size > 0 ? RARRAY_LEN(body) : 0;
    while (i < count && heddle_h2_send_string(carrier, RARRAY_AREF(body, i)))
        i++;
    heddle_h2_enter_session(carrier->server); /* only now, because the calls above may raise */
    if (i < count)
        heddle_h2_reset(session, carrier->stream, HEDDLE_H2_INTERNAL_ERROR);
    handle->sent = size;
    heddle_h2_finish(session, carrier->stream);
    complete_exchange(handle, carrier, head->status);
    return true;
}

static void reject_exchange(heddle_exchange *exchange, const heddle_rejection *rejection, const char *retry_after)
{
    heddle_h2_carrier *carrier = heddle_h2_carrier_of(exchange);
    heddle_h2_server *server = carrier->server;
    heddle_h2_enter_session(server);
    heddle_h2_send_rejection(server, carrier->stream, rejection, exchange->head.method_id != HEDDLE_HEAD, retry_after);
    heddle_h2_drop_carrier(carrier);
    heddle_last_use(heddle_engine_count_rejection(server->connection, rejection));
    heddle_h2_end_call(server);
}

const heddle_exchange_operations heddle_h2_exchange_operations = {
    .version = "HTTP/2",
    .object_class = &exchange_class,
    .is_received = is_received,
    .expectation = expectation,
    .is_buffered = is_buffered,
    .take_body = take_body,
    .decode = decode_body,
    .fill = fill_body,
    .begin_head = begin_head,
    .send = send_response,
    .write = write_content,
    .finish = finish_response,
    .watch_disconnect = has_client_left,
    .taken = heddle_h2_note_taken,
    .reject = reject_exchange,
    .reject_running = reject_running,
    .abandon = reset_stream,
};

void Init_heddle_h2_exchange(VALUE h2)
{
    exchange_class = rb_define_class_under(h2, "Exchange", rb_path2class("Heddle::HTTP::Exchange"));
    rb_gc_register_mark_object(exchange_class);
    rb_define_method(exchange_class, "write_head", exchange_write_head, 3);
    rb_define_method(exchange_class, "hold", exchange_hold, 2);
    rb_define_method(exchange_class, "release_head", exchange_release_head, 0);
    rb_define_method(exchange_class, "withdraw", exchange_withdraw, 0);
    rb_define_method(exchange_class, "gone?", exchange_gone_p, 0);
}
