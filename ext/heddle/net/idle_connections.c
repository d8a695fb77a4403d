/*
 * Closes idle connections: when the server drains, and to make room for new ones. If no connection is idle, others are
 * closed to make room.
 */

#include "net/sockets.h"

#include <sys/socket.h>

static bool is_idle(const heddle_connection *connection)
{
    return connection->protocol ? connection->protocol->is_idle(connection) : heddle_handshake_is_idle(connection);
}

static int64_t find_handshake_since(const heddle_connection *connection)
{
    return heddle_connection_limited_since(connection, connection->sockets->handshake_queue.timeout);
}

/* Returns when the connection began to wait for a request, or INT64_MAX if it does not wait or this is unknown. */
static int64_t find_idle_since(const heddle_connection *connection)
{
    const heddle_protocol *protocol = connection->protocol;
    if (!is_idle(connection) || (protocol && !protocol->idle_since))
        return INT64_MAX;
    return protocol ? protocol->idle_since(connection) : find_handshake_since(connection);
}

/*
 * Returns when the client last sent or received something; in the handshake stage, when the stage began. Returns
 * INT64_MAX if the connection must not be closed now.
 */
static int64_t find_heard_at(const heddle_connection *connection)
{
    const heddle_protocol *protocol = connection->protocol;
    if (!protocol)
        return find_handshake_since(connection);
    bool stays = connection->running || !protocol->heard_at || heddle_turns_waits(connection, HEDDLE_TURN_SENDS);
    return stays ? INT64_MAX : protocol->heard_at(connection);
}

/*
 * Returns the same time as find_heard_at for a client in the handshake stage, and for a client whose request is
 * incomplete or whose response is not fully sent. Returns INT64_MAX for all other clients.
 */
static int64_t find_transit_heard_at(const heddle_connection *connection)
{
    const heddle_protocol *protocol = connection->protocol;
    bool stays = protocol && !(protocol->is_in_transit && protocol->is_in_transit(connection));
    return stays ? INT64_MAX : find_heard_at(connection);
}

void heddle_sockets_shutdown_idle(heddle_sockets *sockets, int64_t age)
{
    sockets->draining = age == 0 && !sockets->listeners;
    for (uint32_t i = 0; i < sockets->slot_count; i++) {
        heddle_connection *connection = sockets->slots[i].connection;
        if (!connection || !is_idle(connection))
            continue;
        const heddle_protocol *protocol = connection->protocol;
        /* end_idle notifies the client before the connection is closed, so no request is lost */
        bool loses_nothing = age == 0 || (protocol && protocol->end_idle);
        if (!loses_nothing && (!protocol || find_idle_since(connection) >= heddle_clock_coarse() - age))
            continue;
        if (protocol && protocol->end_idle)
            protocol->end_idle(connection);
        else
            heddle_sockets_close_idle(connection);
    }
}

/*
 * Returns whether the kernel has input of this connection that was not read yet. If so, closing the connection could
 * lose a request.
 */
static bool has_unread_input(const heddle_connection *connection)
{
    char byte;
    return recv(connection->transport.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void close_for_others(heddle_sockets *sockets, heddle_connection *connection)
{
    bool was_at_rest = heddle_transport_owner(&connection->transport) == HEDDLE_OWNER_AT_REST;
    if (!heddle_connection_acquire(connection))
        return;
    if (has_unread_input(connection)) {
        if (was_at_rest)
            heddle_connection_release(connection);
        return;
    }
    sockets->closed_for_others++;
    if (connection->protocol && connection->protocol->yield_room)
        connection->protocol->yield_room(connection);
    else
        heddle_sockets_close_idle(connection);
}

/*
 * Finds some of the connections that have waited longest according to `find_since`, and closes those without unread
 * input. If none is found, busy ones have to make room (room_wanted). Returns how many were found.
 */
static size_t close_longest(heddle_sockets *sockets, int64_t (*find_since)(const heddle_connection *))
{
    struct {
        int64_t since;
        uint64_t identity;
    } longest[HEDDLE_CLOSES_A_TURN];
    size_t most = sockets->max_connections / HEDDLE_CLOSES_A_TURN + 1, count = 0;
    if (most > HEDDLE_CLOSES_A_TURN)
        most = HEDDLE_CLOSES_A_TURN;
    int64_t latest = heddle_clock_coarse() - HEDDLE_LEAST_IDLE;
    for (uint32_t i = 0; i < sockets->slot_count; i++) {
        heddle_connection *connection = sockets->slots[i].connection;
        int64_t since = connection ? find_since(connection) : INT64_MAX;
        if (since > latest || (count == most && since >= longest[count - 1].since))
            continue;
        size_t at = count < most ? count++ : count - 1;
        for (; at > 0 && longest[at - 1].since > since; at--)
            longest[at] = longest[at - 1];
        longest[at].since = since;
        longest[at].identity = heddle_sockets_identity(sockets, connection);
    }
    if (count == 0)
        sockets->room_wanted = most;
    for (size_t i = 0; i < count; i++) {
        heddle_connection *connection = heddle_sockets_at(sockets, longest[i].identity);
        if (connection)
            close_for_others(sockets, connection);
    }
    return count;
}

void heddle_sockets_close_longest_idle(heddle_sockets *sockets)
{
    if (close_longest(sockets, find_idle_since) == 0 && close_longest(sockets, find_transit_heard_at) == 0)
        close_longest(sockets, find_heard_at);
}
