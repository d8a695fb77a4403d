#include "binding.h"
#include "http/h1/exchange.h"
#include "http/h1/states.h"

#include <errno.h>

static VALUE exchange_class;

static heddle_h1 *h1_of(VALUE self)
{
    return heddle_h1_of(heddle_exchange_open_connection(heddle_exchange_handle_of(self)));
}

/* -- the body ---------------------------------------------------------------------------------------------------- */

/* Was the body received completely? */
HEDDLE_DEFINE_METHOD(exchange_received_p, "received?", h1_of(self)->received ? Qtrue : Qfalse)

/* Does the client wait for 100 Continue? */
HEDDLE_DEFINE_METHOD(exchange_expects_p, "expects?", h1_of(self)->expects ? Qtrue : Qfalse)

/* 100 Continue was sent, or the client no longer needs it. */
static VALUE exchange_end_expectation(VALUE self)
{
    h1_of(self)->expects = false;
    return Qnil;
}

/* Are there received bytes that were not used yet? */
static VALUE exchange_buffered_p(VALUE self)
{
    return heddle_connection_buffered(heddle_exchange_open_connection(heddle_exchange_handle_of(self))) ? Qtrue
                                                                                                        : Qfalse;
}

/* May the connection be kept open after the response that is sent now? */
static VALUE exchange_persistent_p(VALUE self)
{
    return heddle_h1_may_persist(heddle_exchange_open_connection(heddle_exchange_handle_of(self))) ? Qtrue : Qfalse;
}

static VALUE take_sized(heddle_connection *connection, heddle_h1 *h1)
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
    heddle_rejection rejection;
    size_t size = heddle_connection_buffered(connection), length;
    if (size == 0)
        return Qnil;
    VALUE bytes = rb_str_buf_new((long)size);
    int64_t used = heddle_chunked_decode(&h1->chunked, connection->input + connection->input_start, size,
                                         RSTRING_PTR(bytes), &length, &handle->engine->limits, &rejection);
    if (used < 0)
        heddle_exchange_raise_bad_request(&rejection);
    rb_str_set_len(bytes, (long)length);
    heddle_connection_use_input(connection, (size_t)used);
    h1->received = h1->chunked.done;
    return length ? bytes : Qnil;
}

/*
 * call-seq: decode -> String or nil
 *
 * The received bytes of the body; nil if there are none now. Raises BadRequestError when they are malformed or too
 * large.
 */
static VALUE exchange_decode(VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_connection *connection = heddle_exchange_open_connection(handle);
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (h1->received)
        return Qnil;
    return h1->left < 0 ? take_chunks(handle, connection, h1) : take_sized(connection, h1);
}

/*
 * call-seq: fill(timeout) -> Integer or nil
 *
 * Receives more of the body; waits if there is none. Returns the number of bytes; nil at the end of input. Raises
 * IO::TimeoutError, and ClientGoneError when the connection broke.
 */
static VALUE exchange_fill(VALUE self, VALUE seconds)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    int64_t timeout = heddle_parse_duration(seconds), deadline = -1;
    if (heddle_exchange_open_connection(handle)->waits[HEDDLE_READING])
        rb_raise(rb_eIOError, "another fiber is reading this request's body already");
    for (;;) {
        heddle_connection *connection = heddle_exchange_open_connection(handle);
        heddle_h1 *h1 = heddle_h1_of(connection);
        if (h1->ended)
            return Qnil;
        char *room = heddle_connection_make_room(connection, HEDDLE_SCRATCH);
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
            heddle_exchange_raise_gone("the connection broke", (int)-bytes);
        if (deadline < 0 && timeout >= 0)
            deadline = heddle_deadline_after(timeout);
        heddle_connection_wait_or_raise(connection, HEDDLE_READING, deadline, "the client sent nothing in time");
    }
}

/* -- ending ------------------------------------------------------------------------------------------------------ */

/*
 * call-seq: finish(reusable, status) -> nil
 *
 * The response is complete: the loop sends the rest. With +reusable+ the connection may serve another request. This
 * object can't be used afterwards. +status+ is counted.
 */
static VALUE exchange_finish(VALUE self, VALUE reusable, VALUE status)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_connection *connection = heddle_exchange_writable_connection(handle);
    /* Sent at once, while a failure can be raised in the caller; responses to pipelined requests are sent together. */
    if (!heddle_connection_buffered(connection))
        heddle_h1_flush(connection);
    heddle_h1_complete_response(connection, RTEST(reusable), NUM2INT(status));
    return Qnil;
}

static bool reject_running(heddle_exchange_handle *handle, const heddle_rejection *rejection, bool content)
{
    heddle_connection *connection = heddle_exchange_connection(handle);
    bool added = heddle_h1_add_rejection(connection, rejection, content, NULL);
    if (added)
        heddle_h1_complete_rejection(connection, rejection->status);
    else
        heddle_sockets_close_connection(connection);
    return added;
}

/* -- the connection itself ----------------------------------------------------------------------------------------- */

/*
 * call-seq: readpartial(max) -> String or nil
 *
 * After an upgrade: the bytes that the client has sent, at most +max+; waits if there are none. nil at the end of
 * input.
 */
static VALUE exchange_readpartial(VALUE self, VALUE max)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_exchange_open_connection(handle);
    VALUE bytes = heddle_connection_readpartial(&handle->exchange->work.connection, NUM2LONG(max), -1);
    RB_GC_GUARD(self);
    return bytes;
}

/*
 * call-seq: detach_socket -> TCPSocket, UNIXSocket, Socket or OpenSSL::SSL::SSLSocket
 *
 * Takes the connection over as a socket, whose first reads return the unused input.
 */
HEDDLE_DEFINE_METHOD(exchange_detach_socket, "detach_socket",
                     heddle_connection_detach(heddle_exchange_open_connection(heddle_exchange_handle_of(self))))

/* -- as the operations of an exchange ------------------------------------------------------------------------------ */

static VALUE object_class(void)
{
    return exchange_class;
}

static void reject_exchange(heddle_exchange *exchange, const heddle_rejection *rejection, const char *retry_after)
{
    heddle_h1_reject(exchange->work.connection, rejection, retry_after);
}

static void abandon_exchange(heddle_exchange *exchange)
{
    heddle_connection_flush(exchange->work.connection);
    heddle_sockets_close_connection(exchange->work.connection);
}

const heddle_exchange_operations heddle_h1_exchange_operations = {
    .takes_over = true,
    .object_class = object_class,
    .respond = heddle_h1_respond,
    .write_piece = heddle_h1_write_piece,
    .watch_disconnect = heddle_h1_watch_disconnect,
    .reject = reject_exchange,
    .reject_running = reject_running,
    .abandon = abandon_exchange,
};

static const heddle_exchange_methods methods = {
    .is_received = exchange_received_p,
    .is_expecting = exchange_expects_p,
    .end_expectation = exchange_end_expectation,
    .is_buffered = exchange_buffered_p,
    .decode = exchange_decode,
    .fill = exchange_fill,
    .write = heddle_h1_exchange_write,
    .finish = exchange_finish,
};

void Init_heddle_h1_exchange(VALUE h1)
{
    exchange_class = heddle_exchange_define(h1, &methods);
    rb_define_method(exchange_class, "persistent?", exchange_persistent_p, 0);
    rb_define_method(exchange_class, "readpartial", exchange_readpartial, 1);
    rb_define_private_method(exchange_class, "detach_socket", exchange_detach_socket, 0);
    Init_heddle_h1_sending(exchange_class);
}
