#include "net/outbound.h"

#include "scheduler/io_wait.h"
#include "scheduler/wait_in_place.h"

#include <errno.h>
#include <fcntl.h>
#include <ruby/fiber/scheduler.h>
#include <ruby/io.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LEAST_ROOM = 4096,
    RECEIVED_SHUTDOWN = 2, /* SSL_RECEIVED_SHUTDOWN of openssl/ssl.h */
};

/* -- input --------------------------------------------------------------------------------------------------------- */

void heddle_outbound_use_input(heddle_outbound *connection, size_t size)
{
    connection->input_start += size;
    if (connection->input_start < connection->input_end)
        return;
    free(connection->input); /* an idle connection holds no buffer */
    connection->input = NULL;
    connection->input_start = connection->input_end = connection->input_room = 0;
}

/* Room for so many bytes behind what is buffered; NULL without memory. */
static char *make_room(heddle_outbound *connection, size_t size)
{
    size_t buffered = heddle_outbound_buffered(connection);
    if (connection->input_room - connection->input_end < size && connection->input_start) {
        memmove(connection->input, heddle_outbound_input(connection), buffered);
        connection->input_start = 0;
        connection->input_end = buffered;
    }
    if (connection->input_room - connection->input_end < size) {
        size_t room = connection->input_room ? connection->input_room : LEAST_ROOM;
        while (room - buffered < size)
            room *= 2;
        char *input = realloc(connection->input, room);
        if (!input)
            return NULL;
        connection->input = input;
        connection->input_room = room;
    }
    return connection->input + connection->input_end;
}

ssize_t heddle_outbound_receive(heddle_outbound *connection, void *memory, size_t size)
{
    ssize_t result = connection->transport.operations->recv(&connection->transport, memory, size);
    if (result > 0)
        connection->received += (size_t)result;
    return result;
}

ssize_t heddle_outbound_fill(heddle_outbound *connection, size_t size)
{
    char *room = make_room(connection, size);
    if (!room)
        return -ENOMEM;
    ssize_t result = heddle_outbound_receive(connection, room, size);
    if (result > 0)
        connection->input_end += (size_t)result;
    else
        heddle_outbound_use_input(connection, 0);
    return result;
}

bool heddle_outbound_ended_properly(const heddle_outbound *connection)
{
    if (!connection->transport.tls)
        return true;
    int (*get_shutdown)(const void *) = NULL;
    void *found = heddle_tls_function("SSL_get_shutdown");
    memcpy(&get_shutdown, &found, sizeof(found));
    return get_shutdown && (get_shutdown(connection->transport.tls->ssl) & RECEIVED_SHUTDOWN);
}

bool heddle_outbound_stale(heddle_outbound *connection)
{
    char byte;
    if (heddle_outbound_buffered(connection))
        return true;
    if (connection->transport.tls) /* a new session's ticket is input, but none of the application's */
        return heddle_tls_look(&connection->transport) != -EAGAIN;
    ssize_t result;
    do {
        result = recv(connection->transport.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    } while (result < 0 && errno == EINTR);
    return result >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void heddle_outbound_fail(heddle_outbound *connection, ssize_t error, const char *doing)
{
    if (connection->transport.tls && error == -EPROTO)
        rb_raise(rb_eIOError, "%s: TLS has failed, or the peer has left without saying so", doing);
    if (error == -ENOMEM)
        rb_memerror();
    rb_syserr_fail((int)-error, doing);
}

/* -- waiting ------------------------------------------------------------------------------------------------------- */

/* Until the connection is ready for one of these events, or the deadline: the events, or 0. */
static int wait_until(VALUE io, int events, int64_t deadline)
{
    int64_t left = -1;
    if (deadline >= 0) {
        left = deadline - heddle_clock_now();
        if (left <= 0)
            return 0;
    }
    VALUE scheduler = rb_fiber_scheduler_current();
    if (!NIL_P(scheduler) && heddle_loop_if(scheduler)) {
        heddle_loop *loop = heddle_loop_get(scheduler);
        return heddle_must_wait_in_place(loop) ? heddle_io_wait_ready_in_place(loop, io, events, left)
                                               : heddle_io_wait_ready(loop, io, events, left);
    }
    VALUE ready = rb_io_wait(io, INT2FIX(events), left < 0 ? Qnil : DBL2NUM((double)left / 1e9));
    return RTEST(ready) ? NUM2INT(ready) : 0;
}

/* `phase`: of this step, CLOCK_MONOTONIC ns, < 0: none. The events, of which one at least has come. */
static int await(VALUE object, int events, int64_t phase, const char *timed_out)
{
    heddle_outbound *connection = heddle_outbound_of(object);
    int64_t deadline = connection->deadline;
    if (phase >= 0 && (deadline < 0 || phase < deadline))
        deadline = phase;
    int ready = wait_until(connection->io, events, deadline);
    heddle_outbound_of(object); /* raises when somebody has closed it meanwhile */
    if (!ready)
        rb_raise(rb_eIOTimeoutError, "%s", timed_out);
    RB_GC_GUARD(object);
    return ready;
}

void heddle_outbound_await_input(VALUE object, int64_t timeout, const char *timed_out)
{
    const heddle_tls *tls = heddle_outbound_of(object)->transport.tls;
    int events = tls && tls->read_wants_room ? HEDDLE_WRITABLE : HEDDLE_READABLE;
    await(object, events, timeout < 0 ? -1 : heddle_deadline_after(timeout), timed_out);
}

/* -- the object ---------------------------------------------------------------------------------------------------- */

static void outbound_mark(void *data)
{
    heddle_outbound *connection = data;
    rb_gc_mark_movable(connection->io);
    heddle_tls_mark(connection->tls_list);
}

static void outbound_compact(void *data)
{
    heddle_outbound *connection = data;
    connection->io = rb_gc_location(connection->io);
}

static void release(heddle_outbound *connection)
{
    heddle_fork_guard_remove(&connection->guard);
    if (connection->transport.tls)
        heddle_tls_free(connection->transport.tls);
    connection->transport.tls = NULL;
    connection->transport.fd = -1;
    free(connection->input);
    connection->input = NULL;
    connection->input_start = connection->input_end = connection->input_room = 0;
    connection->io = Qnil;
}

static void outbound_free(void *data)
{
    release(data);
    xfree(data);
}

static size_t outbound_size(const void *data)
{
    const heddle_outbound *connection = data;
    return sizeof(*connection) + connection->input_room + (connection->transport.tls ? sizeof(heddle_tls) : 0);
}

static const rb_data_type_t outbound_type = {
    .wrap_struct_name = "Heddle::Net::OutboundConnection",
    .function = {.dmark = outbound_mark, .dfree = outbound_free, .dsize = outbound_size, .dcompact = outbound_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static heddle_outbound *outbound_data(VALUE self)
{
    heddle_outbound *connection;
    TypedData_Get_Struct(self, heddle_outbound, &outbound_type, connection);
    return connection;
}

heddle_outbound *heddle_outbound_of(VALUE self)
{
    heddle_outbound *connection = outbound_data(self);
    if (connection->abandoned)
        rb_raise(rb_eIOError, "this connection belongs to the process that has opened it, and this is a child of it");
    if (NIL_P(connection->io))
        rb_raise(rb_eIOError, "this connection is closed");
    return connection;
}

/* Its descriptor's number stays taken, for Ruby's IO closes it once more; what it stood for is the parent's alone. */
static void in_child(heddle_fork_guard *guard)
{
    heddle_outbound *connection = (heddle_outbound *)((char *)guard - offsetof(heddle_outbound, guard));
    connection->abandoned = true;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return;
    if (dup2(null, connection->transport.fd) >= 0)
        fcntl(connection->transport.fd, F_SETFD, FD_CLOEXEC);
    close(null);
}

static heddle_address remote_of(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    if (getpeername(fd, (struct sockaddr *)&address, &size) != 0)
        return (heddle_address){0};
    return heddle_address_of((struct sockaddr *)&address);
}

/*
 * call-seq: adopt(socket, ssl_socket = nil) -> OutboundConnection
 *
 * Of a connected BasicSocket, which it owns from now on, and the SSLSocket over it whose handshake is complete. The
 * functions of TLS must have been loaded.
 */
static VALUE outbound_adopt(int argc, VALUE *argv, VALUE class)
{
    rb_check_arity(argc, 1, 2);
    heddle_outbound *connection;
    VALUE self = TypedData_Make_Struct(class, heddle_outbound, &outbound_type, connection);
    connection->io = Qnil;
    connection->deadline = -1;
    connection->guard.in_child = in_child;
    connection->transport.operations = &heddle_plain_transport;
    connection->transport.fd = rb_io_descriptor(argv[0]);
    connection->remote = remote_of(connection->transport.fd);
    if (argc == 2 && !NIL_P(argv[1])) {
        heddle_tls *tls = heddle_tls_new(&connection->tls_list, 0);
        if (!tls)
            rb_memerror();
        connection->transport.tls = tls;
        tls->socket = argv[1];
        heddle_tls_begin(&connection->transport);
    }
    connection->io = argv[0];
    heddle_fork_guard_add(&connection->guard);
    return self;
}

/*
 * call-seq: close -> nil
 *
 * Idempotent. A fiber or thread that waits for the connection gets IOError.
 */
static VALUE outbound_close(VALUE self)
{
    heddle_outbound *connection = outbound_data(self);
    VALUE io = connection->io;
    if (NIL_P(io))
        return Qnil;
    if (connection->transport.tls && !connection->abandoned)
        heddle_tls_goodbye(&connection->transport);
    release(connection);
    rb_io_close(io);
    return Qnil;
}

/*
 * call-seq: closed? -> true or false
 *
 * Also in a child of the process that has opened it.
 */
static VALUE outbound_closed_p(VALUE self)
{
    heddle_outbound *connection = outbound_data(self);
    return NIL_P(connection->io) || connection->abandoned ? Qtrue : Qfalse;
}

/*
 * call-seq: stale? -> true or false
 *
 * Asked of an idle connection: has the peer closed it, or sent what nobody has asked for?
 */
static VALUE outbound_stale_p(VALUE self)
{
    heddle_outbound *connection = outbound_data(self);
    return NIL_P(connection->io) || connection->abandoned || heddle_outbound_stale(connection) ? Qtrue : Qfalse;
}

/*
 * call-seq: detach -> Socket or OpenSSL::SSL::SSLSocket
 *
 * As an ordinary socket. Raises IOError when bytes were received that nobody has read.
 */
static VALUE outbound_detach(VALUE self)
{
    heddle_outbound *connection = heddle_outbound_of(self);
    if (heddle_outbound_buffered(connection))
        rb_raise(rb_eIOError, "%zu bytes were received and not read", heddle_outbound_buffered(connection));
    VALUE socket = connection->transport.tls ? connection->transport.tls->socket : connection->io;
    release(connection);
    return socket;
}

/* -- reading and writing ------------------------------------------------------------------------------------------- */

/*
 * call-seq: read_partial(max, timeout = nil) -> String or nil
 *
 * Reads what is there, at most +max+ bytes; waits only when nothing is. nil at the end of input. +timeout+ in seconds:
 * IO::TimeoutError when nothing came.
 */
static VALUE outbound_read_partial(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 1, 2);
    long max = NUM2LONG(argv[0]);
    int64_t timeout = argc == 2 ? heddle_parse_duration(argv[1]) : -1;
    if (max <= 0)
        rb_raise(rb_eArgError, "the size to read is %ld, and must be 1 at least", max);
    for (;;) {
        heddle_outbound *connection = heddle_outbound_of(self);
        size_t buffered = heddle_outbound_buffered(connection);
        if (buffered) {
            size_t size = buffered < (size_t)max ? buffered : (size_t)max;
            VALUE bytes = rb_str_new(heddle_outbound_input(connection), (long)size);
            heddle_outbound_use_input(connection, size);
            return bytes;
        }
        ssize_t result = heddle_outbound_fill(connection, max < 16384 ? (size_t)max : 16384);
        if (result == 0)
            return Qnil;
        if (result == -EAGAIN)
            heddle_outbound_await_input(self, timeout, "the peer sent nothing in time");
        else if (result < 0)
            heddle_outbound_fail(connection, result, "reading from the connection");
    }
}

enum { PIECES = 16 };

/* What is left after the first `sent` bytes of a String or of an Array of Strings. */
static int gather(VALUE data, size_t sent, struct iovec *pieces)
{
    long count = RB_TYPE_P(data, T_ARRAY) ? RARRAY_LEN(data) : 1;
    int used = 0;
    for (long i = 0; i < count && used < PIECES; i++) {
        VALUE string = RB_TYPE_P(data, T_ARRAY) ? RARRAY_AREF(data, i) : data;
        Check_Type(string, T_STRING);
        size_t size = (size_t)RSTRING_LEN(string);
        if (sent >= size) {
            sent -= size;
            continue;
        }
        pieces[used++] = (struct iovec){RSTRING_PTR(string) + sent, size - sent};
        sent = 0;
    }
    return used;
}

/* Others run while we wait: what is left must not change. */
static VALUE frozen_copy(VALUE data)
{
    if (!RB_TYPE_P(data, T_ARRAY))
        return rb_str_new_frozen(data);
    VALUE copy = rb_ary_new_capa(RARRAY_LEN(data));
    for (long i = 0; i < RARRAY_LEN(data); i++)
        rb_ary_push(copy, rb_str_new_frozen(RARRAY_AREF(data, i)));
    return copy;
}

/* How much was written: less than all when the peer has sent something, and takes no more. */
static size_t send_all(VALUE self, VALUE data, int64_t timeout, bool stop_at_input)
{
    size_t sent = 0;
    bool held = false;
    for (;;) {
        heddle_outbound *connection = heddle_outbound_of(self);
        struct iovec pieces[PIECES];
        int count = gather(data, sent, pieces);
        if (count == 0)
            return sent;
        ssize_t result = connection->transport.operations->send(&connection->transport, pieces, count);
        if (result > 0) {
            sent += (size_t)result;
            connection->sent += (size_t)result;
            continue;
        }
        if (result < 0 && result != -EAGAIN)
            heddle_outbound_fail(connection, result, "writing to the connection");
        if (!held)
            data = frozen_copy(data);
        held = true;
        bool wants_input = connection->transport.tls && connection->transport.tls->write_wants_input;
        int events = wants_input ? HEDDLE_READABLE : HEDDLE_WRITABLE | (stop_at_input ? HEDDLE_READABLE : 0);
        int64_t deadline = timeout < 0 ? -1 : heddle_deadline_after(timeout);
        int ready = await(self, events, deadline, "the peer took nothing in time");
        if (stop_at_input && !wants_input && (ready & HEDDLE_READABLE) && !(ready & HEDDLE_WRITABLE) &&
            heddle_outbound_stale(heddle_outbound_of(self)))
            return sent;
    }
}

/*
 * call-seq: write(data, timeout = nil) -> nil
 *
 * Writes a String, or an Array of Strings, whole. +timeout+: seconds in which the peer must take some of it.
 */
static VALUE outbound_write(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 1, 2);
    send_all(self, argv[0], argc == 2 ? heddle_parse_duration(argv[1]) : -1, false);
    return Qnil;
}

/*
 * call-seq: write_unless_answered(data, timeout = nil) -> Integer
 *
 * The same, but ends early when the peer takes no more and has sent something, its answer perhaps: how many bytes of the
 * data were written.
 */
static VALUE outbound_write_unless_answered(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 1, 2);
    return SIZET2NUM(send_all(self, argv[0], argc == 2 ? heddle_parse_duration(argv[1]) : -1, true));
}

/*
 * call-seq: bytes_sent -> Integer
 *
 * That the kernel has taken.
 */
static VALUE outbound_bytes_sent(VALUE self)
{
    return ULL2NUM(outbound_data(self)->sent);
}

/*
 * call-seq: bytes_received -> Integer
 */
static VALUE outbound_bytes_received(VALUE self)
{
    return ULL2NUM(outbound_data(self)->received);
}

/*
 * call-seq: deadline = nanoseconds
 *
 * By CLOCK_MONOTONIC, for every wait from now on; nil: none.
 */
static VALUE outbound_set_deadline(VALUE self, VALUE deadline)
{
    outbound_data(self)->deadline = NIL_P(deadline) ? -1 : NUM2LL(deadline);
    return deadline;
}

/*
 * call-seq: remote_address -> String
 *
 * The peer's IP address, or "unix".
 */
static VALUE outbound_remote_address(VALUE self)
{
    char room[HEDDLE_ADDRESS_ROOM];
    const char *text = heddle_address_text(&outbound_data(self)->remote, room);
    return text ? rb_usascii_str_new_cstr(text) : Qnil;
}

/*
 * call-seq: remote_port -> Integer
 */
static VALUE outbound_remote_port(VALUE self)
{
    return INT2FIX(outbound_data(self)->remote.port);
}

/*
 * call-seq: secure? -> true or false
 *
 * Over TLS?
 */
static VALUE outbound_secure_p(VALUE self)
{
    return outbound_data(self)->transport.tls ? Qtrue : Qfalse;
}

/* call-seq: load_tls(path) -> String or nil: what is missing */
static VALUE load_tls(VALUE class, VALUE path)
{
    const char *missing = heddle_tls_load(NIL_P(path) ? NULL : StringValueCStr(path));
    return missing ? rb_usascii_str_new_cstr(missing) : Qnil;
}

void Init_heddle_outbound(VALUE net)
{
    VALUE class = rb_define_class_under(net, "OutboundConnection", rb_cObject);
    rb_undef_alloc_func(class);
    rb_define_singleton_method(class, "adopt", outbound_adopt, -1);
    rb_define_singleton_method(class, "load_tls", load_tls, 1);
    rb_define_method(class, "close", outbound_close, 0);
    rb_define_method(class, "closed?", outbound_closed_p, 0);
    rb_define_method(class, "stale?", outbound_stale_p, 0);
    rb_define_method(class, "detach", outbound_detach, 0);
    rb_define_method(class, "read_partial", outbound_read_partial, -1);
    rb_define_method(class, "write", outbound_write, -1);
    rb_define_method(class, "write_unless_answered", outbound_write_unless_answered, -1);
    rb_define_method(class, "bytes_sent", outbound_bytes_sent, 0);
    rb_define_method(class, "bytes_received", outbound_bytes_received, 0);
    rb_define_method(class, "deadline=", outbound_set_deadline, 1);
    rb_define_method(class, "remote_address", outbound_remote_address, 0);
    rb_define_method(class, "remote_port", outbound_remote_port, 0);
    rb_define_method(class, "secure?", outbound_secure_p, 0);
}
