/* The Ruby methods of an exchange (a request and its response) over HTTP/1.1, and the operations of that version. */

#include "binding.h"
#include "http/h1/server/exchange.h"
#include "http/h1/server/states.h"

#include <ruby/io.h>
#include <sys/socket.h>

enum {
    READS = 4, /* after this many reads of a streamed body without a wait, other fibers run for a tick */
};

static VALUE exchange_class;

static heddle_h1 *h1_of(heddle_exchange_handle *handle)
{
    return heddle_h1_of(heddle_exchange_open_connection(handle));
}

/* -- the body ---------------------------------------------------------------------------------------------------- */

static bool is_received(heddle_exchange_handle *handle)
{
    return h1_of(handle)->received;
}

static bool *expectation(heddle_exchange_handle *handle)
{
    return &h1_of(handle)->expects;
}

static bool is_buffered(heddle_exchange_handle *handle)
{
    return heddle_bytes_left(&heddle_exchange_open_connection(handle)->input) > 0;
}

static VALUE take_sized(heddle_connection *connection, heddle_h1 *h1)
{
    size_t size = heddle_bytes_left(&connection->input);
    if ((int64_t)size > h1->left)
        size = (size_t)h1->left;
    if (size == 0)
        return Qnil;
    VALUE bytes = rb_str_new(heddle_bytes_first(&connection->input), (long)size);
    heddle_bytes_use(&connection->input, size);
    h1->left -= (int64_t)size;
    h1->received = h1->left == 0;
    return bytes;
}

static VALUE take_chunks(heddle_exchange_handle *handle, heddle_connection *connection, heddle_h1 *h1)
{
    heddle_rejection rejection;
    size_t size = heddle_bytes_left(&connection->input), length;
    if (size == 0)
        return Qnil;
    VALUE bytes = rb_str_buf_new((long)size);
    int64_t used = heddle_chunked_decode(&h1->chunked, heddle_bytes_first(&connection->input), size,
                                         RSTRING_PTR(bytes), &length, &handle->engine->limits, &rejection);
    if (used < 0)
        heddle_exchange_raise_bad_request(&rejection);
    rb_str_set_len(bytes, (long)length);
    heddle_bytes_use(&connection->input, (size_t)used);
    h1->received = h1->chunked.done;
    return length ? bytes : Qnil;
}

static VALUE decode_body(heddle_exchange_handle *handle)
{
    heddle_connection *connection = heddle_exchange_open_connection(handle);
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (h1->received)
        return Qnil;
    return h1->left < 0 ? take_chunks(handle, connection, h1) : take_sized(connection, h1);
}

static VALUE fill_body(heddle_exchange_handle *handle, int64_t timeout)
{
    int64_t deadline = -1;
    if (heddle_exchange_open_connection(handle)->waits[HEDDLE_READING])
        rb_raise(rb_eIOError, "another fiber is reading this request's body already");
    for (;;) {
        heddle_connection *connection = heddle_exchange_open_connection(handle);
        heddle_h1 *h1 = heddle_h1_of(connection);
        if (h1->ended)
            return Qnil;
        if (h1->reads == READS) { /* otherwise a fiber whose client is fast would never let other fibers run */
            h1->reads = 0;
            if (heddle_connection_wait_for(connection, HEDDLE_READING, 0) == HEDDLE_WAIT_CLOSED)
                heddle_exchange_raise_gone("the connection was closed while the request's body was read", 0);
            continue;
        }
        heddle_bytes *input = &connection->input;
        if (!heddle_bytes_reserve(input, HEDDLE_SCRATCH))
            rb_memerror();
        ssize_t bytes = heddle_connection_receive(connection, input->bytes + input->size, HEDDLE_SCRATCH);
        h1->reads = bytes > 0 ? h1->reads + 1 : 0;
        if (bytes > 0) {
            input->size += (size_t)bytes;
            return SSIZET2NUM(bytes);
        }
        heddle_bytes_use(input, 0);
        if (bytes == 0) {
            h1->ended = true;
            return Qnil;
        }
        if (bytes != -EAGAIN)
            heddle_exchange_raise_gone("the connection failed while the request's body was read", (int)-bytes);
        if (deadline < 0 && timeout >= 0)
            deadline = heddle_deadline_after(timeout);
        heddle_connection_wait_or_raise(connection, HEDDLE_READING, deadline,
                                        "timed out waiting for the request's body");
    }
}

/* -- ending ------------------------------------------------------------------------------------------------------ */

static void finish_response(heddle_exchange_handle *handle, bool reusable, int status)
{
    heddle_connection *connection = heddle_exchange_connection(handle);
    /*
     * Sends the output now, so that the caller gets an exception if that fails. But if further pipelined requests are
     * buffered, this response is sent later, together with theirs.
     */
    if (!heddle_bytes_left(&connection->input))
        heddle_h1_flush(connection);
    heddle_h1_complete_response(connection, reusable, status);
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

/* May the connection be kept open after the response that is sent now? */
HEDDLE_DEFINE_METHOD(exchange_persistent_p, "persistent?",
                     heddle_h1_may_persist(heddle_exchange_open_connection(heddle_exchange_handle_of(self))) ? Qtrue
                                                                                                            : Qfalse)

static VALUE take_input(heddle_connection *connection, size_t size)
{
    size_t buffered = heddle_bytes_left(&connection->input);
    VALUE result = rb_str_new(heddle_bytes_first(&connection->input), (long)(size < buffered ? size : buffered));
    heddle_bytes_use(&connection->input, (size_t)RSTRING_LEN(result));
    return result;
}

/*
 * call-seq: readpartial(max) -> String or nil
 *
 * After an upgrade, returns the bytes that the client has sent, at most +max+. Waits until there are some. Returns nil
 * at the end of the input. Raises SystemCallError if the connection has failed.
 */
static VALUE exchange_readpartial(VALUE self, VALUE max)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    size_t size = NUM2SIZET(max) < HEDDLE_SCRATCH ? NUM2SIZET(max) : HEDDLE_SCRATCH;
    if (heddle_exchange_open_connection(handle)->waits[HEDDLE_READING])
        rb_raise(rb_eIOError, "another fiber is reading this connection already");
    for (;;) {
        heddle_connection *connection = heddle_exchange_open_connection(handle);
        if (heddle_bytes_left(&connection->input))
            return take_input(connection, size);
        char *scratch = connection->sockets->scratch;
        ssize_t bytes = heddle_connection_receive(connection, scratch, size);
        if (bytes >= 0)
            return bytes ? rb_str_new(scratch, bytes) : Qnil;
        if (bytes != -EAGAIN)
            rb_syserr_fail((int)-bytes, "reading from the connection");
        heddle_connection_wait_or_raise(connection, HEDDLE_READING, -1, NULL);
    }
}

static VALUE detach_connection(heddle_connection *connection)
{
    uint8_t family = connection->remote.family ? connection->remote.family : connection->local.family;
    const char *name = family == AF_UNIX                         ? "UNIXSocket"
                       : family == AF_INET || family == AF_INET6 ? "TCPSocket"
                                                                 : "Socket";
    rb_require("socket");
    VALUE unread = heddle_bytes_left(&connection->input) ? take_input(connection, SIZE_MAX) : Qnil;
    if (connection->transport.tls) {
        VALUE arguments[] = {connection->transport.tls->socket, unread};
        heddle_sockets_detach(connection);
        return rb_funcallv(rb_path2class("Heddle::Net::TLS"), rb_intern("take_over"), 2, arguments);
    }
    VALUE socket_class = rb_path2class(name);
    int fd = heddle_sockets_detach(connection);
    VALUE socket = rb_funcall(socket_class, rb_intern("for_fd"), 1, INT2NUM(fd));
    if (!NIL_P(unread))
        rb_io_ungetbyte(socket, unread);
    return socket;
}

/*
 * call-seq: detach_socket -> TCPSocket, UNIXSocket, Socket or OpenSSL::SSL::SSLSocket
 *
 * Detaches the connection from the server, and returns its socket. The socket's first reads return the input that was
 * received but not used yet.
 */
HEDDLE_DEFINE_METHOD(exchange_detach_socket, "detach_socket",
                     detach_connection(heddle_exchange_open_connection(heddle_exchange_handle_of(self))))

/* The number of the client's address (net/listener.h); 0: the connections of this client are not limited. */
HEDDLE_DEFINE_METHOD(exchange_address_number, "address_number",
                     INT2FIX(heddle_exchange_open_connection(heddle_exchange_handle_of(self))->address_bucket))

/*
 * Has the client's address, which already has `held` hijacked connections, reached the limit of connections for one
 * address? If so, counts this connection as refused.
 */
static VALUE exchange_exhausts_share_p(VALUE self, VALUE held)
{
    heddle_sockets *sockets = heddle_exchange_open_connection(heddle_exchange_handle_of(self))->sockets;
    bool exhausts = NUM2SIZET(held) >= heddle_address_limit(sockets);
    sockets->refused += exhausts;
    return exhausts ? Qtrue : Qfalse;
}

/* -- the operations of an exchange --------------------------------------------------------------------------------- */

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
    .waits = true,
    .object_class = &exchange_class,
    .is_received = is_received,
    .expectation = expectation,
    .is_buffered = is_buffered,
    .take_body = heddle_exchange_body_object,
    .decode = decode_body,
    .fill = fill_body,
    .begin_head = heddle_h1_begin_head,
    .send = heddle_h1_send_response,
    .write = heddle_h1_write,
    .write_piece = heddle_h1_write_piece,
    .finish = finish_response,
    .watch_disconnect = heddle_h1_watch_disconnect,
    .reject = reject_exchange,
    .reject_running = reject_running,
    .abandon = abandon_exchange,
};

void Init_heddle_h1_exchange(VALUE h1)
{
    exchange_class = rb_define_class_under(h1, "Exchange", rb_path2class("Heddle::HTTP::Exchange"));
    rb_gc_register_mark_object(exchange_class);
    rb_define_method(exchange_class, "persistent?", exchange_persistent_p, 0);
    rb_define_method(exchange_class, "readpartial", exchange_readpartial, 1);
    rb_define_private_method(exchange_class, "detach_socket", exchange_detach_socket, 0);
    rb_define_private_method(exchange_class, "address_number", exchange_address_number, 0);
    rb_define_private_method(exchange_class, "exhausts_share?", exchange_exhausts_share_p, 1);
    Init_heddle_h1_sending(exchange_class);
}
