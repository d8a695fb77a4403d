/* Connections to other servers: see outbound.h. */

#include "net/outbound.h"

#include "net/io_await.h"

#include <ruby/io.h>
#include <sys/socket.h>

enum { RECEIVED_SHUTDOWN = 2 }; /* SSL_RECEIVED_SHUTDOWN of openssl/ssl.h */

/* -- input --------------------------------------------------------------------------------------------------------- */

ssize_t heddle_outbound_receive(heddle_outbound *connection, void *memory, size_t size)
{
    ssize_t result = connection->transport.operations->recv(&connection->transport, memory, size);
    if (result > 0)
        connection->received += (size_t)result;
    return result;
}

ssize_t heddle_outbound_fill(heddle_outbound *connection, size_t size)
{
    heddle_bytes *input = &connection->input;
    if (!heddle_bytes_reserve(input, size))
        return -ENOMEM;
    ssize_t result = heddle_outbound_receive(connection, input->bytes + input->size, size);
    if (result > 0)
        input->size += (size_t)result;
    else
        heddle_bytes_use(&connection->input, 0);
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
    if (heddle_bytes_left(&connection->input))
        return true;
    /* with TLS, bytes on the socket may be a session ticket, which is not input for the application */
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

int heddle_outbound_await(VALUE object, int events, int64_t call_deadline, const char *timeout_message)
{
    heddle_outbound *connection = heddle_outbound_of(object);
    int64_t deadline = connection->deadline;
    if (call_deadline >= 0 && (deadline < 0 || call_deadline < deadline))
        deadline = call_deadline;
    int ready = heddle_await_io(connection->owned.io, events, deadline);
    heddle_outbound_of(object); /* raises IOError if the connection was closed meanwhile */
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

enum { PIECES = 256 };

/* The data to send: a String or an Array of Strings. */
typedef struct {
    VALUE data;
    long first;  /* the index of the first String that is not fully sent */
    size_t sent; /* how many bytes were sent of that String and the following ones together */
    bool copied; /* `data` is a copy: see copy_strings */
} string_list;

static long count_strings(const string_list *list)
{
    return RB_TYPE_P(list->data, T_ARRAY) ? RARRAY_LEN(list->data) : 1;
}

static VALUE string_at(const string_list *list, long i)
{
    return RB_TYPE_P(list->data, T_ARRAY) ? RARRAY_AREF(list->data, i) : list->data;
}

/* Raises TypeError unless the data is a String or an Array of Strings. */
static string_list list_strings(VALUE data)
{
    string_list list = {.data = data};
    for (long i = 0; i < count_strings(&list); i++)
        Check_Type(string_at(&list, i), T_STRING);
    return list;
}

/* Sets the pieces to as much of the unsent data as fits. Returns the number of pieces: 0 if everything was sent. */
static int gather_strings(string_list *list, struct iovec pieces[PIECES])
{
    int used = 0;
    for (long i = list->first; i < count_strings(list) && used < PIECES; i++) {
        VALUE string = string_at(list, i);
        size_t size = (size_t)RSTRING_LEN(string), skipped = used ? 0 : list->sent;
        if (skipped < size) {
            pieces[used++] = (struct iovec){RSTRING_PTR(string) + skipped, size - skipped};
        } else if (!used) {
            list->first = i + 1;
            list->sent -= size;
        }
    }
    return used;
}

/* Replaces the strings with frozen copies, because other fibers could change them while the caller waits. */
static void copy_strings(string_list *list)
{
    if (list->copied)
        return;
    VALUE copy = rb_ary_new();
    for (long i = list->first; i < count_strings(list); i++)
        rb_ary_push(copy, rb_str_new_frozen(string_at(list, i)));
    list->data = copy;
    list->first = 0;
    list->copied = true;
}

size_t heddle_outbound_send_all(VALUE self, VALUE data, int64_t timeout, bool stop_at_input)
{
    string_list list = list_strings(data);
    struct iovec pieces[PIECES];
    size_t sent = 0;
    for (;;) {
        heddle_outbound *connection = heddle_outbound_of(self);
        int count = gather_strings(&list, pieces);
        if (count == 0)
            return sent;
        ssize_t result = connection->transport.operations->send(&connection->transport, pieces, count);
        if (connection->transport.tls)
            connection->sent = connection->transport.tls->written;
        else if (result > 0)
            connection->sent += (size_t)result;
        if (result > 0) {
            list.sent += (size_t)result;
            sent += (size_t)result;
            continue;
        }
        if (result < 0 && result != -EAGAIN)
            heddle_outbound_fail(connection, result, "writing to the connection");
        copy_strings(&list);
        bool wants_input = connection->transport.tls && connection->transport.tls->write_wants_input;
        int events = wants_input ? HEDDLE_READABLE : HEDDLE_WRITABLE | (stop_at_input ? HEDDLE_READABLE : 0);
        int64_t deadline = timeout < 0 ? -1 : heddle_deadline_after(timeout);
        int ready = heddle_outbound_await(self, events, deadline, "the peer read nothing before the timeout");
        if (stop_at_input && !wants_input && (ready & HEDDLE_READABLE) && !(ready & HEDDLE_WRITABLE) &&
            heddle_outbound_is_stale(heddle_outbound_of(self)))
            return sent;
    }
}
