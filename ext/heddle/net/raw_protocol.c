/* Bytes as they come: a connection that is readable is worth a runner, whatever comes. */

#include "net/sockets.h"

#include <errno.h>
#include <sys/socket.h>

typedef enum {
    NOTHING_YET,
    SOMETHING,
    THE_END, /* or an error */
} prospect;

/* What the next recv will find. */
static prospect look(heddle_connection *connection)
{
    char byte;
    ssize_t result;
    if (connection->transport.operations == &heddle_tls_transport) {
        result = heddle_tls_look(&connection->transport);
    } else {
        result = recv(connection->transport.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (result < 0)
            result = errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
    }
    return result > 0 ? SOMETHING : result == -EAGAIN ? NOTHING_YET : THE_END;
}

static void want_input(heddle_connection *connection)
{
    heddle_socket_set *set = &connection->sockets->set;
    set->operations->want(set, connection, HEDDLE_READING);
    heddle_connection_at_rest(connection);
}

static void event(heddle_connection *connection)
{
    heddle_transport *transport = &connection->transport;
    if (!heddle_transport_has(transport, HEDDLE_HAS_INPUT | HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP))
        return;
    /* The peer has ended its side, maybe. Only what it sent before is worth a runner. */
    bool ending = heddle_transport_has(transport, HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP) ||
                  heddle_sockets_untold_ends(connection->sockets);
    prospect next = ending ? look(connection) : SOMETHING;
    if (next == SOMETHING)
        heddle_sockets_call_runner(connection->sockets, connection, false);
    else if (next == THE_END)
        heddle_sockets_close_idle(connection);
    else
        want_input(connection);
}

static void expired(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    if (connection->queued)
        heddle_connection_due(connection, heddle_later(heddle_coarse_now(), sockets->idle_timeout));
    else
        heddle_sockets_close_idle(connection);
}

/* There is nothing that it could be told. */
static void overloaded(heddle_connection *connection, heddle_overload why)
{
    heddle_sockets_close_idle(connection);
}

/* Who has read as much as it asked for can't know whether that was all; a runner shall not come for nothing. */
static bool has_input(heddle_connection *connection)
{
    heddle_transport *transport = &connection->transport;
    if (heddle_connection_buffered(connection) || transport->operations->pending(transport))
        return true;
    if (!heddle_transport_has(transport, HEDDLE_HAS_INPUT))
        return false;
    heddle_transport_forget(transport, HEDDLE_HAS_INPUT); /* first: what is noted meanwhile stays */
    prospect next = look(connection);
    if (next == SOMETHING)
        heddle_transport_note(transport, HEDDLE_HAS_INPUT);
    else if (next == THE_END)
        heddle_transport_note(transport, HEDDLE_INPUT_ENDS);
    return next == SOMETHING;
}

static void rest(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    heddle_transport *transport = &connection->transport;
    heddle_connection_due(connection, sockets->idle_timeout < 0 ? -1 : heddle_later(heddle_coarse_now(), sockets->idle_timeout));
    if (has_input(connection))
        heddle_sockets_call_runner(sockets, connection, false);
    else if (sockets->draining || heddle_transport_has(transport, HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP | HEDDLE_BROKEN))
        heddle_sockets_close_idle(connection);
    else
        want_input(connection);
}

/* Nor can this one. */
static void misplaced(heddle_connection *connection, const char *reason)
{
    heddle_sockets_close_idle(connection);
}

static bool at_rest(heddle_connection *connection)
{
    return true;
}

static int read_so_far(const heddle_connection *connection, struct iovec *pieces)
{
    return heddle_connection_input_piece(connection, pieces);
}

static void release(heddle_connection *connection)
{
}

static void served(VALUE object)
{
}

static const heddle_protocol_operations operations = {
    .name = "raw",
    .event = event,
    .expired = expired,
    .overloaded = overloaded,
    .misplaced = misplaced,
    .rest = rest,
    .at_rest = at_rest,
    .read_so_far = read_so_far,
    .release = release,
    .object = heddle_connection_handle,
    .served = served,
};

heddle_protocol heddle_raw_protocol = {.operations = &operations};
