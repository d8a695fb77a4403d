/* Heddle::Net::Connection: the Ruby object of a connection, for the code that serves it. */

#include "binding.h"
#include "net/connection.h"
#include "net/write_all.h"
#include "net/raw_protocol.h"
#include "net/sockets.h"

#include <ruby/encoding.h>
#include <ruby/io.h>
#include <sys/socket.h>

static VALUE connection_class;

/* Marks nothing: the strings of a write are on the stack of the fiber that writes. */
static void handle_free(void *data)
{
    heddle_handle *handle = data;
    if (handle->connection)
        handle->connection->handle = NULL;
    xfree(handle);
}

const rb_data_type_t heddle_handle_type =
    HEDDLE_TYPE("Heddle::Net::Connection", 0, .dfree = handle_free);

VALUE heddle_connection_object(heddle_connection *connection)
{
    heddle_handle *handle;
    VALUE object = TypedData_Make_Struct(connection_class, heddle_handle, &heddle_handle_type, handle);
    handle->connection = connection;
    connection->handle = handle;
    return object;
}

HEDDLE_RECORD_OF(handle_of, heddle_handle, heddle_handle_type)

/* Returns NULL when the object no longer has a connection. */
static heddle_connection *connection_of(VALUE self)
{
    return handle_of(self)->connection;
}

void heddle_connection_check_thread(const heddle_connection *connection)
{
    if (connection->sockets->loop->thread != rb_thread_current())
        rb_raise(rb_eThreadError, "this connection belongs to the loop of another thread, which alone may use it");
}

static heddle_connection *check_open(heddle_connection *connection)
{
    if (!connection)
        rb_raise(rb_eIOError, "this connection is closed, or `idle!` has released it");
    return connection;
}

static heddle_handle *open_handle(VALUE self)
{
    heddle_handle *handle = handle_of(self);
    heddle_connection_check_thread(check_open(handle->connection));
    return handle;
}

/* -- reading ----------------------------------------------------------------------------------------------------- */

static VALUE take_buffered(heddle_connection *connection, size_t size)
{
    size_t buffered = heddle_connection_buffered(connection);
    VALUE result = rb_str_new(connection->input + connection->input_start, (long)(size < buffered ? size : buffered));
    heddle_connection_use_input(connection, (size_t)RSTRING_LEN(result));
    return result;
}

/*
 * Returns the number of bytes, 0 at the end of input, or -EAGAIN if there is no input now. Raises the error of a broken
 * connection.
 */
static ssize_t receive_bytes(heddle_connection *connection, char *memory, size_t size)
{
    ssize_t result = heddle_connection_receive(connection, memory, size);
    if (result < 0 && result != -EAGAIN)
        rb_syserr_fail((int)-result, "reading from the connection");
    return result;
}

VALUE heddle_connection_readpartial(heddle_connection *const *place, long max, int64_t timeout)
{
    int64_t deadline = -1;
    if (max < 0)
        rb_raise(rb_eArgError, "a negative length: %ld", max);
    if (max == 0)
        return rb_str_new(NULL, 0);
    if (check_open(*place)->waits[HEDDLE_READING])
        rb_raise(rb_eIOError, "another fiber is reading this connection already");
    size_t size = max < HEDDLE_SCRATCH ? (size_t)max : HEDDLE_SCRATCH;
    for (;;) {
        heddle_connection *connection = check_open(*place);
        if (heddle_connection_buffered(connection))
            return take_buffered(connection, size);
        char *scratch = connection->sockets->scratch;
        ssize_t result = receive_bytes(connection, scratch, size);
        if (result >= 0)
            return result ? rb_str_new(scratch, result) : Qnil;
        if (deadline < 0 && timeout >= 0)
            deadline = heddle_deadline_after(timeout);
        heddle_connection_wait_or_raise(connection, HEDDLE_READING, deadline,
                                        "the connection's peer sent nothing in time");
    }
}

/*
 * call-seq: readpartial(max, timeout: nil) -> String or nil
 *
 * Reads the input that is there, at most +max+ bytes (and at most 64 KiB); waits only when there is none. Returns nil
 * at the end of input. Raises IO::TimeoutError when nothing has come within +timeout+ seconds, Errno::ECONNRESET and
 * the like when the peer is gone, and IOError when the connection is closed meanwhile or another fiber reads it.
 */
static VALUE connection_readpartial(int argc, VALUE *argv, VALUE self)
{
    int64_t timeout = heddle_parse_timeout(argc, argv, 1);
    heddle_handle *handle = open_handle(self);
    VALUE bytes = heddle_connection_readpartial(&handle->connection, NUM2LONG(argv[0]), timeout);
    RB_GC_GUARD(self);
    return bytes;
}

/*
 * call-seq: unread(string) -> nil
 *
 * Pushes bytes back: the next read returns them first.
 */
static VALUE connection_unread(VALUE self, VALUE string)
{
    Check_Type(string, T_STRING);
    heddle_connection *connection = open_handle(self)->connection;
    size_t size = (size_t)RSTRING_LEN(string);
    if (size)
        memcpy(heddle_connection_push_back(connection, size), RSTRING_PTR(string), size);
    return Qnil;
}

/* -- writing ----------------------------------------------------------------------------------------------------- */

/*
 * call-seq: write(string_or_strings, timeout: nil) -> Integer
 *
 * Writes everything, and returns the number of bytes. The Strings of an Array are sent with one system call where
 * possible. Raises IO::TimeoutError after +timeout+ seconds without progress. Raises Errno::EPIPE or ECONNRESET when
 * the peer is gone.
 */
static VALUE connection_write(int argc, VALUE *argv, VALUE self)
{
    int64_t timeout = heddle_parse_timeout(argc, argv, 1);
    size_t written = heddle_write_all(&open_handle(self)->connection, argv[0], timeout);
    RB_GC_GUARD(self);
    return SIZET2NUM(written);
}

/* -- ending ------------------------------------------------------------------------------------------------------ */

/*
 * call-seq: close -> nil
 *
 * Idempotent. Fibers that wait for the connection get IOError.
 */
static VALUE connection_close(VALUE self)
{
    heddle_connection *connection = connection_of(self);
    if (!connection)
        return Qnil;
    heddle_connection_check_thread(connection);
    if (connection->transport.tls && !connection->output.size)
        heddle_tls_send_close_notify(&connection->transport);
    heddle_sockets_close_connection(connection);
    return Qnil;
}

VALUE heddle_connection_detach(heddle_connection *connection)
{
    uint8_t family = connection->remote.family ? connection->remote.family : connection->local.family;
    const char *name = family == AF_UNIX                            ? "UNIXSocket"
                       : family == AF_INET || family == AF_INET6 ? "TCPSocket"
                                                                    : "Socket";
    rb_require("socket");
    VALUE unread = Qnil;
    if (heddle_connection_buffered(connection))
        unread = take_buffered(connection, SIZE_MAX);
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

/* -- addresses --------------------------------------------------------------------------------------------------- */

static VALUE intern_string(const char *text)
{
    return rb_enc_interned_str_cstr(text, rb_usascii_encoding());
}

VALUE heddle_address_string(const heddle_address *address)
{
    char room[HEDDLE_ADDRESS_ROOM];
    const char *text = heddle_address_text(address, room);
    return text ? intern_string(text) : Qnil;
}

static VALUE port_of(const heddle_address *address)
{
    return address->family == AF_INET || address->family == AF_INET6 ? INT2FIX(address->port) : Qnil;
}

/*
 * call-seq: local_address -> String
 *
 * The IP address that the peer has connected to, or "unix".
 */
HEDDLE_DEFINE_METHOD(connection_local_address, "local_address",
                     heddle_address_string(heddle_connection_local(open_handle(self)->connection)))

#define METHODS(X)                                                                                                     \
    /* True once the connection was closed, made idle or detached. */                                                  \
    X(connection_closed_p, "closed?", connection_of(self) ? Qfalse : Qtrue)                                            \
    /* Returns the connection as an ordinary socket, whose first reads return the unused input. Fibers that wait       \
     * for the connection get IOError. */                                                                              \
    X(connection_detach, "detach", heddle_connection_detach(open_handle(self)->connection))                            \
    /* The peer's IP address, or "unix". */                                                                            \
    X(connection_remote_address, "remote_address", heddle_address_string(&open_handle(self)->connection->remote))      \
    X(connection_remote_port, "remote_port", port_of(&open_handle(self)->connection->remote))                          \
    X(connection_local_port, "local_port", port_of(&open_handle(self)->connection->local))                             \
    /* Makes the connection idle: it waits for its next input without a fiber. This object can't be used               \
     * afterwards. */                                                                                                  \
    X(connection_idle, "idle!", (heddle_raw_make_idle(open_handle(self)->connection), Qnil))
METHODS(HEDDLE_DEFINE_METHOD)

void Init_heddle_connection(VALUE net)
{
    VALUE class = connection_class = heddle_define_class(net, "Connection", NULL);
    rb_define_method(class, "readpartial", connection_readpartial, -1);
    rb_define_method(class, "unread", connection_unread, 1);
    rb_define_method(class, "write", connection_write, -1);
    rb_define_method(class, "close", connection_close, 0);
    METHODS(HEDDLE_REGISTER_METHOD)
    rb_define_method(class, "local_address", connection_local_address, 0);
}
