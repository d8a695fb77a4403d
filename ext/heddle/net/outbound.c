#include "net/outbound.h"

#include "net/io_await.h"
#include "selector/retry.h"

#include <ruby/io.h>
#include <sys/socket.h>

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
    free(connection->input); /* an idle connection has no buffer */
    connection->input = NULL;
    connection->input_start = connection->input_end = connection->input_capacity = 0;
}

/* Makes room for `size` bytes behind the unused input; NULL without memory. */
static char *make_room(heddle_outbound *connection, size_t size)
{
    size_t buffered = heddle_outbound_buffered(connection);
    if (connection->input_capacity - connection->input_end < size && connection->input_start) {
        memmove(connection->input, heddle_outbound_input(connection), buffered);
        connection->input_start = 0;
        connection->input_end = buffered;
    }
    if (connection->input_capacity - connection->input_end < size) {
        size_t room = connection->input_capacity ? connection->input_capacity : LEAST_ROOM;
        while (room - buffered < size)
            room *= 2;
        char *input = realloc(connection->input, room);
        if (!input)
            return NULL;
        connection->input = input;
        connection->input_capacity = room;
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

bool heddle_outbound_is_stale(heddle_outbound *connection)
{
    char byte;
    if (heddle_outbound_buffered(connection))
        return true;
    /* with TLS, bytes on the socket may be a session ticket, which is no input for the application */
    if (connection->transport.tls)
        return heddle_tls_peek(&connection->transport) != -EAGAIN;
    ssize_t result;
    HEDDLE_RETRY(result, recv(connection->transport.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT));
    return result >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void heddle_outbound_fail(heddle_outbound *connection, ssize_t error, const char *doing)
{
    if (connection->transport.tls && error == -EPROTO)
        rb_raise(rb_eIOError, "%s: TLS failed, or the peer closed the connection without close_notify", doing);
    if (error == -ENOMEM)
        rb_memerror();
    rb_syserr_fail((int)-error, doing);
}

/* -- waiting ------------------------------------------------------------------------------------------------------- */

int heddle_outbound_await(VALUE object, int events, int64_t phase, const char *timeout_message)
{
    heddle_outbound *connection = heddle_outbound_of(object);
    int64_t deadline = connection->deadline;
    if (phase >= 0 && (deadline < 0 || phase < deadline))
        deadline = phase;
    int ready = heddle_await_io(connection->owned.io, events, deadline);
    heddle_outbound_of(object); /* raises if it was closed meanwhile */
    if (!ready)
        rb_raise(rb_eIOTimeoutError, "%s", timeout_message);
    RB_GC_GUARD(object);
    return ready;
}

void heddle_outbound_await_input(VALUE object, int64_t timeout, const char *timeout_message)
{
    const heddle_tls *tls = heddle_outbound_of(object)->transport.tls;
    int events = tls && tls->read_wants_room ? HEDDLE_WRITABLE : HEDDLE_READABLE;
    heddle_outbound_await(object, events, timeout < 0 ? -1 : heddle_deadline_after(timeout), timeout_message);
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

enum { PIECES = 16 };

/* Collects what follows the first `sent` bytes of a String or of an Array of Strings. */
static int gather_pieces(VALUE data, size_t sent, struct iovec *pieces)
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

/* Other fibers run during the wait: a copy can't change. */
static VALUE copy_frozen(VALUE data)
{
    if (!RB_TYPE_P(data, T_ARRAY))
        return rb_str_new_frozen(data);
    VALUE copy = rb_ary_new_capa(RARRAY_LEN(data));
    for (long i = 0; i < RARRAY_LEN(data); i++)
        rb_ary_push(copy, rb_str_new_frozen(RARRAY_AREF(data, i)));
    return copy;
}

size_t heddle_outbound_send_all(VALUE self, VALUE data, int64_t timeout, bool stop_at_input)
{
    size_t sent = 0;
    bool locked = false;
    for (;;) {
        heddle_outbound *connection = heddle_outbound_of(self);
        struct iovec pieces[PIECES];
        int count = gather_pieces(data, sent, pieces);
        if (count == 0)
            return sent;
        ssize_t result = connection->transport.operations->send(&connection->transport, pieces, count);
        if (result > 0)
            sent += (size_t)result;
        if (connection->transport.tls)
            connection->sent = connection->transport.tls->written;
        else if (result > 0)
            connection->sent += (size_t)result;
        if (result > 0)
            continue;
        if (result < 0 && result != -EAGAIN)
            heddle_outbound_fail(connection, result, "writing to the connection");
        if (!locked)
            data = copy_frozen(data);
        locked = true;
        bool wants_input = connection->transport.tls && connection->transport.tls->write_wants_input;
        int events = wants_input ? HEDDLE_READABLE : HEDDLE_WRITABLE | (stop_at_input ? HEDDLE_READABLE : 0);
        int64_t deadline = timeout < 0 ? -1 : heddle_deadline_after(timeout);
        int ready = heddle_outbound_await(self, events, deadline, "the peer took nothing in time");
        if (stop_at_input && !wants_input && (ready & HEDDLE_READABLE) && !(ready & HEDDLE_WRITABLE) &&
            heddle_outbound_is_stale(heddle_outbound_of(self)))
            return sent;
    }
}
