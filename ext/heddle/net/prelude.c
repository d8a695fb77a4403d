#include "net/prelude.h"

#include "net/proxy_header.h"
#include "net/sockets.h"
#include "net/ticket_keys.h"
#include "scheduler/drop_error.h"

#include <errno.h>
#include <sys/socket.h>

/* How long the handshakes of one turn take: one costs from 0.1 to 2 ms, by its key, and a thousand may come at once. */
static const int64_t SHARE = 2000000;

static ID id_socket, id_handshake;
static VALUE wait_readable, wait_writable;

void heddle_prelude_start(heddle_prelude_queue *queue)
{
    heddle_ready_list_start(&queue->due);
}

static void want(heddle_connection *connection, heddle_direction direction)
{
    heddle_socket_set *set = &connection->sockets->set;
    set->operations->want(set, connection, direction);
}

/* Its protocol begins. */
static void over(heddle_connection *connection)
{
    connection->prelude = HEDDLE_PRELUDE_OVER;
    /* What came behind the prelude has been told of already. */
    heddle_transport_note(&connection->transport, HEDDLE_HAS_INPUT);
    heddle_sockets_rest(connection);
}

static void misplaced(heddle_connection *connection, const char *reason)
{
    heddle_transport *transport = &connection->transport;
    if (transport->tls)
        heddle_tls_free(transport->tls);
    transport->tls = NULL;
    connection->prelude = HEDDLE_PRELUDE_OVER;
    heddle_connection_drop_input(connection);
    heddle_transport_note(transport, HEDDLE_HAS_INPUT);
    connection->sockets->protocol->operations->misplaced(connection, reason);
}

static void handshake_due(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    heddle_ready_list_put(&sockets->preludes.due, connection, false);
    heddle_sockets_come_back(sockets);
}

/* -- the header of a proxy --------------------------------------------------------------------------------------- */

static void take_over_from(heddle_connection *connection, const heddle_proxy_header *header)
{
    heddle_connection_drop_input(connection);
    if (header->source.family) {
        connection->remote = header->source;
        connection->local = header->destination;
    }
    connection->secure = header->secure;
    if (!connection->transport.tls) {
        over(connection);
        return;
    }
    connection->prelude = HEDDLE_PRELUDE_HANDSHAKE;
    handshake_due(connection);
}

/*
 * Takes the header and no byte more: what follows may be a handshake, which reads the socket itself. So what is there is
 * looked at first, and taken as far as it belongs to the header.
 */
static void read_proxy_header(heddle_connection *connection)
{
    heddle_transport *transport = &connection->transport;
    heddle_transport_forget(transport, HEDDLE_HAS_INPUT);
    for (;;) {
        size_t had = heddle_connection_buffered(connection);
        char *room = heddle_connection_room(connection, 256);
        if (!room)
            break;
        ssize_t there = recv(transport->fd, room, connection->input_room - connection->input_end, MSG_PEEK | MSG_DONTWAIT);
        if (there < 0 && errno == EINTR)
            continue;
        if (there < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            want(connection, HEDDLE_READING);
            return;
        }
        if (there <= 0)
            break;
        heddle_proxy_header header;
        long size = heddle_proxy_header_parse(&header, connection->input + connection->input_start, had + (size_t)there);
        if (size < 0) {
            misplaced(connection, "what comes here has to begin with the header of the PROXY protocol");
            return;
        }
        size_t taken = size > 0 ? (size_t)size - had : (size_t)there;
        if (recv(transport->fd, room, taken, MSG_DONTWAIT) != (ssize_t)taken)
            break;
        connection->input_end += (uint32_t)taken;
        if (size > 0) {
            take_over_from(connection, &header);
            return;
        }
    }
    heddle_sockets_close_idle(connection);
}

/* -- a TLS handshake --------------------------------------------------------------------------------------------- */

typedef enum {
    NOTHING,
    LEFT,
    A_REQUEST, /* in plain HTTP: somebody has forgotten the s */
    A_HANDSHAKE,
} beginning;

static beginning look(const heddle_connection *connection)
{
    char byte;
    ssize_t result = recv(connection->transport.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (result < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? NOTHING : LEFT;
    if (result == 0)
        return LEFT;
    return byte >= 'A' && byte <= 'Z' ? A_REQUEST : A_HANDSHAKE;
}

static VALUE make_socket(VALUE data)
{
    heddle_connection *connection = (heddle_connection *)data;
    heddle_tls *tls = connection->transport.tls;
    tls->socket = rb_funcall(tls->acceptor, id_socket, 1, INT2NUM(connection->transport.fd));
    return Qnil;
}

/* Ruby's openssl does what can be done without waiting. What is still needed: a symbol; the socket: nothing; nil: it failed. */
static VALUE take_step(VALUE data)
{
    heddle_tls *tls = ((heddle_connection *)data)->transport.tls;
    return rb_funcall(tls->acceptor, id_handshake, 1, tls->socket);
}

static VALUE carefully(VALUE (*function)(VALUE), heddle_connection *connection)
{
    int state = 0;
    VALUE result = rb_protect(function, (VALUE)connection, &state);
    if (!state)
        return result;
    heddle_drop_error();
    return Qundef;
}

static void failed(heddle_connection *connection)
{
    connection->sockets->failed_handshakes++;
    connection->transport.tls->broken = true;
    heddle_sockets_close_idle(connection);
}

/* One step; the connection may be gone afterwards. */
static void shake_hands(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    heddle_tls *tls = connection->transport.tls;
    if (!tls->socket) {
        beginning first = look(connection);
        if (first == NOTHING) {
            want(connection, HEDDLE_READING);
            return;
        }
        if (first == LEFT) {
            heddle_sockets_close_idle(connection);
            return;
        }
        if (first == A_REQUEST) {
            misplaced(connection, "this port speaks TLS, and the request came without: say https:// in place of http://");
            return;
        }
    }
    uint64_t identity = heddle_sockets_identity(sockets, connection);
    VALUE result = tls->socket ? Qnil : carefully(make_socket, connection);
    if (result != Qundef)
        result = carefully(take_step, connection);
    if (heddle_sockets_at(sockets, identity) != connection)
        return;
    if (result == wait_readable) {
        want(connection, HEDDLE_READING);
    } else if (result == wait_writable) {
        want(connection, HEDDLE_WRITING);
    } else if (result != tls->socket) {
        failed(connection);
    } else {
        sockets->handshakes++;
        connection->secure = true;
        heddle_tls_begin(&connection->transport);
        over(connection);
    }
}

void heddle_prelude_go_on(heddle_sockets *sockets)
{
    heddle_ready_list *due = &sockets->preludes.due;
    if (!due->count)
        return;
    int64_t end = heddle_now() + SHARE;
    for (heddle_connection *connection; (connection = heddle_ready_list_take(due));) {
        shake_hands(connection);
        if (sockets->closed)
            return;
        if (heddle_now() >= end)
            break;
    }
    if (due->count)
        heddle_sockets_come_back(sockets);
}

/* -- all of it --------------------------------------------------------------------------------------------------- */

bool heddle_prelude_begin(heddle_connection *connection, const heddle_listener *listener)
{
    bool proxied = heddle_networks_trust(listener->proxies, &connection->remote);
    if (!proxied && NIL_P(listener->acceptor))
        return false;
    heddle_sockets *sockets = connection->sockets;
    connection->prelude = proxied ? HEDDLE_PRELUDE_PROXY_HEADER : HEDDLE_PRELUDE_HANDSHAKE;
    if (!NIL_P(listener->acceptor)) {
        connection->transport.tls = heddle_tls_new(&sockets->private, listener->acceptor);
        if (!connection->transport.tls) {
            heddle_sockets_close_idle(connection);
            return true;
        }
    }
    heddle_connection_due(connection,
                          sockets->preludes.timeout < 0 ? -1 : heddle_later(heddle_coarse_now(), sockets->preludes.timeout));
    want(connection, HEDDLE_READING);
    return true;
}

void heddle_prelude_event(heddle_connection *connection)
{
    if (connection->prelude == HEDDLE_PRELUDE_PROXY_HEADER)
        read_proxy_header(connection);
    else
        handshake_due(connection);
}

bool heddle_prelude_at_rest(const heddle_connection *connection)
{
    const heddle_tls *tls = connection->transport.tls;
    return !heddle_connection_buffered(connection) && !(tls && tls->socket);
}

/*
 * call-seq: Heddle::Net::TLS.load(path) -> nil or String
 *
 * Finds what is needed of the TLS library, in what the shared object at +path+ is linked with; nil: wherever it is. The
 * answer is what is missing.
 */
static VALUE tls_load(VALUE class, VALUE path)
{
    const char *missing = heddle_tls_load(NIL_P(path) ? NULL : StringValueCStr(path));
    return missing ? rb_str_new_cstr(missing) : Qnil;
}

void Init_heddle_prelude(VALUE net)
{
    id_socket = rb_intern("socket");
    id_handshake = rb_intern("handshake");
    wait_readable = ID2SYM(rb_intern("wait_readable"));
    wait_writable = ID2SYM(rb_intern("wait_writable"));
    VALUE tls = rb_define_class_under(net, "TLS", rb_cObject);
    rb_define_private_method(rb_singleton_class(tls), "load", tls_load, 1);
    Init_heddle_ticket_keys(tls);
}
