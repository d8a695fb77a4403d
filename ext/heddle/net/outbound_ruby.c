#include "net/outbound.h"

#include "binding.h"
#include "net/connection.h"

#include <ruby/io.h>
#include <sys/socket.h>

/* Heddle::Net::OutboundConnection: the object, and its methods. */

/* -- the object ---------------------------------------------------------------------------------------------------- */

static void outbound_mark(void *data)
{
    heddle_outbound *connection = data;
    rb_gc_mark_movable(connection->owned.io);
    heddle_tls_mark(connection->tls_list);
}

static void outbound_compact(void *data)
{
    heddle_outbound *connection = data;
    connection->owned.io = rb_gc_location(connection->owned.io);
}

static void release_resources(heddle_outbound *connection)
{
    heddle_owned_socket_release(&connection->owned);
    heddle_tls_free(connection->transport.tls);
    connection->transport.tls = NULL;
    connection->transport.fd = -1;
    heddle_bytes_reset(&connection->input, 0);
}

static void outbound_free(void *data)
{
    release_resources(data);
    xfree(data);
}

static const rb_data_type_t outbound_type =
    HEDDLE_TYPE("Heddle::Net::OutboundConnection", 0, .dmark = outbound_mark, .dfree = outbound_free,
                .dcompact = outbound_compact);

HEDDLE_RECORD_OF(outbound_data, heddle_outbound, outbound_type)

heddle_outbound *heddle_outbound_of(VALUE self)
{
    heddle_outbound *connection = outbound_data(self);
    heddle_owned_socket_check(&connection->owned, "connection");
    return connection;
}

static VALUE outbound_class;

/*
 * call-seq: Heddle::Native.adopt_outbound(socket, ssl_socket = nil) -> OutboundConnection
 *
 * Makes a connection from a connected BasicSocket and, for TLS, the SSLSocket over it, whose handshake is complete.
 * Takes ownership of both. With TLS, Heddle::Native.load_tls must have been called.
 */
static VALUE outbound_adopt(int argc, VALUE *argv, VALUE native)
{
    rb_check_arity(argc, 1, 2);
    heddle_outbound *connection;
    VALUE self = TypedData_Make_Struct(outbound_class, heddle_outbound, &outbound_type, connection);
    connection->deadline = -1;
    connection->transport.operations = &heddle_plain_transport;
    connection->transport.fd = rb_io_descriptor(argv[0]);
    connection->remote = heddle_address_of_peer(connection->transport.fd);
    if (argc == 2 && !NIL_P(argv[1])) {
        heddle_tls *tls = heddle_tls_new(&connection->tls_list, 0);
        if (!tls)
            rb_memerror();
        connection->transport.tls = tls;
        tls->socket = argv[1];
        heddle_tls_begin(&connection->transport);
    }
    heddle_owned_socket_adopt(&connection->owned, argv[0]);
    return self;
}

/*
 * call-seq: close -> nil
 *
 * Closes the connection. Does nothing if it is closed already. A fiber or thread that waits for the connection gets
 * IOError.
 */
static VALUE outbound_close(VALUE self)
{
    heddle_outbound *connection = outbound_data(self);
    VALUE io = connection->owned.io;
    if (NIL_P(io))
        return Qnil;
    if (connection->transport.tls && !connection->owned.abandoned)
        heddle_tls_send_close_notify(&connection->transport);
    release_resources(connection);
    rb_io_close(io);
    return Qnil;
}

/*
 * call-seq: detach -> Socket or OpenSSL::SSL::SSLSocket
 *
 * Returns the connection's socket, which stays open, and closes this object. Raises IOError if received bytes were not
 * read.
 */
static VALUE outbound_detach(VALUE self)
{
    heddle_outbound *connection = heddle_outbound_of(self);
    if (heddle_bytes_left(&connection->input))
        rb_raise(rb_eIOError, "can't detach the socket: %zu received bytes were not read",
                 heddle_bytes_left(&connection->input));
    VALUE socket = connection->owned.io;
    if (connection->transport.tls)
        socket = connection->transport.tls->socket;
    release_resources(connection);
    return socket;
}

/* -- reading and writing ------------------------------------------------------------------------------------------- */

/*
 * call-seq: readpartial(max, timeout: nil) -> String or nil
 *
 * Reads the available input, at most +max+ bytes. Waits only if there is no input. Returns nil at the end of the input.
 * Raises IO::TimeoutError if no input has come within +timeout+ seconds.
 */
static VALUE outbound_readpartial(int argc, VALUE *argv, VALUE self)
{
    int64_t timeout = heddle_parse_timeout(argc, argv, 1);
    long max = NUM2LONG(argv[0]);
    if (max <= 0)
        rb_raise(rb_eArgError, "can't read %ld bytes: the size must be at least 1", max);
    for (;;) {
        heddle_outbound *connection = heddle_outbound_of(self);
        size_t buffered = heddle_bytes_left(&connection->input);
        if (buffered) {
            size_t size = buffered < (size_t)max ? buffered : (size_t)max;
            VALUE bytes = rb_str_new(heddle_bytes_first(&connection->input), (long)size);
            heddle_bytes_use(&connection->input, size);
            return bytes;
        }
        ssize_t result = heddle_outbound_fill(connection, max < 16384 ? (size_t)max : 16384);
        if (result == 0)
            return Qnil;
        if (result == -EAGAIN)
            heddle_outbound_await_input(self, timeout, "the peer sent nothing before the timeout");
        else if (result < 0)
            heddle_outbound_fail(connection, result, "reading from the connection");
    }
}

/*
 * call-seq: write(data, timeout: nil) -> nil
 *
 * Writes a String or an Array of Strings completely. Raises IO::TimeoutError if the peer reads nothing for +timeout+
 * seconds.
 */
static VALUE outbound_write(int argc, VALUE *argv, VALUE self)
{
    int64_t timeout = heddle_parse_timeout(argc, argv, 1);
    heddle_outbound_send_all(self, argv[0], timeout, false);
    return Qnil;
}

/*
 * call-seq: write_unless_answered(data, timeout: nil) -> Integer
 *
 * Writes like #write. Stops early if the kernel accepts no more output and the peer has sent something (perhaps its
 * response) or has ended its output. Returns the number of bytes that were written.
 */
static VALUE outbound_write_unless_answered(int argc, VALUE *argv, VALUE self)
{
    int64_t timeout = heddle_parse_timeout(argc, argv, 1);
    return SIZET2NUM(heddle_outbound_send_all(self, argv[0], timeout, true));
}

/*
 * call-seq: deadline = seconds
 *
 * Sets the deadline of all later waits: a time of CLOCK_MONOTONIC in seconds, or nil for none.
 */
static VALUE outbound_set_deadline(VALUE self, VALUE deadline)
{
    outbound_data(self)->deadline = heddle_parse_duration(deadline);
    return deadline;
}

#define METHODS(X)                                                                                                     \
    /* Returns true in a forked child, too. */                                                                         \
    X(outbound_closed_p, "closed?", heddle_owned_socket_is_open(&outbound_data(self)->owned) ? Qfalse : Qtrue)         \
    /*                                                                                                                 \
     * Returns whether this idle connection can't be used any more: it is closed, or its peer has closed it or has     \
     * sent something unexpected.                                                                                      \
     */                                                                                                                \
    X(outbound_stale_p, "stale?",                                                                                      \
      heddle_owned_socket_is_open(&outbound_data(self)->owned) && !heddle_outbound_is_stale(outbound_data(self))       \
          ? Qfalse : Qtrue)                                                                                            \
    /* How many bytes of the application's data the kernel has accepted. */                                            \
    X(outbound_bytes_sent, "bytes_sent", ULL2NUM(outbound_data(self)->sent))                                           \
    X(outbound_bytes_received, "bytes_received", ULL2NUM(outbound_data(self)->received))                               \
    /* Returns the peer's IP address, or "unix". */                                                                    \
    X(outbound_remote_address, "remote_address", heddle_address_string(&outbound_data(self)->remote))                  \
    X(outbound_remote_port, "remote_port", INT2FIX(outbound_data(self)->remote.port))                                  \
    /* Returns whether the connection uses TLS. */                                                                     \
    X(outbound_secure_p, "secure?", outbound_data(self)->transport.tls ? Qtrue : Qfalse)
METHODS(HEDDLE_DEFINE_METHOD)

/*
 * call-seq: application_protocol -> String or nil
 *
 * Returns the protocol that ALPN has chosen in the TLS handshake (RFC 7301), such as "h2". Returns nil without TLS, or
 * if ALPN has chosen none.
 */
static VALUE outbound_application_protocol(VALUE self)
{
    const heddle_tls *tls = heddle_outbound_of(self)->transport.tls;
    return tls ? rb_funcall(tls->socket, rb_intern("alpn_protocol"), 0) : Qnil;
}

void Init_heddle_outbound(VALUE net)
{
    VALUE class = heddle_define_class(net, "OutboundConnection", NULL);
    outbound_class = class;
    rb_define_singleton_method(rb_path2class("Heddle::Native"), "adopt_outbound", outbound_adopt, -1);
    rb_define_method(class, "close", outbound_close, 0);
    METHODS(HEDDLE_REGISTER_METHOD)
    rb_define_method(class, "detach", outbound_detach, 0);
    rb_define_method(class, "readpartial", outbound_readpartial, -1);
    rb_define_method(class, "write", outbound_write, -1);
    rb_define_method(class, "write_unless_answered", outbound_write_unless_answered, -1);
    rb_define_method(class, "deadline=", outbound_set_deadline, 1);
    rb_define_method(class, "application_protocol", outbound_application_protocol, 0);
}
