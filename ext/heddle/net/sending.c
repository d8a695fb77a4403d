/* Sends the queued output of connections. */

#include "net/sockets.h"

enum {
    PIECES = 64,
};

void heddle_connection_has_output(heddle_connection *connection)
{
    if (!heddle_link_is_listed(&connection->unsent_link))
        heddle_link_push_first(&connection->sockets->unsent, &connection->unsent_link);
}

static void cancel_scheduled_flush(heddle_connection *connection)
{
    if (connection->flush_scheduled)
        connection->sockets->scheduled_flushes--;
    connection->flush_scheduled = false;
}

void heddle_connection_drop_output(heddle_connection *connection)
{
    cancel_scheduled_flush(connection);
    heddle_link_remove(&connection->unsent_link);
    heddle_output_clear(&connection->output);
}

static void note_broken(heddle_connection *connection, int error)
{
    if (!connection->error && !connection->running)
        connection->sockets->clients_gone++;
    connection->error = error;
    heddle_transport_note(&connection->transport, HEDDLE_BROKEN);
    heddle_connection_drop_output(connection);
}

ssize_t heddle_connection_send_now(heddle_connection *connection, const char *bytes, size_t size)
{
    heddle_transport *transport = &connection->transport;
    const struct iovec piece = {.iov_base = (char *)bytes, .iov_len = size};
    if (connection->output.size || transport->has_farewell)
        return 0;
    heddle_transport_forget(transport, HEDDLE_HAS_ROOM);
    ssize_t sent = transport->operations->send(transport, &piece, 1);
    if (sent < 0 && sent != -EAGAIN)
        note_broken(connection, (int)-sent);
    connection->output.sent += sent > 0 ? (uint64_t)sent : 0;
    return sent == -EAGAIN ? 0 : sent;
}

/* Shortens the pieces to `most` bytes in all. Returns how many bytes are left in them. */
static size_t limit_pieces(struct iovec *pieces, int *count, size_t most)
{
    size_t size = 0;
    int i = 0;
    for (; i < *count && size < most; i++) {
        if (pieces[i].iov_len > most - size)
            pieces[i].iov_len = most - size;
        size += pieces[i].iov_len;
    }
    *count = i;
    return size;
}

int heddle_connection_flush(heddle_connection *connection)
{
    heddle_transport *transport = &connection->transport;
    heddle_output *output = &connection->output;
    bool takes_turns = connection->protocol && connection->protocol->take_turn;
    size_t most = takes_turns ? HEDDLE_OUTPUT_PART : SIZE_MAX;
    cancel_scheduled_flush(connection);
    if (takes_turns && heddle_turns_waits(connection, HEDDLE_TURN_SENDS))
        return -EAGAIN;
    heddle_transport_lock_wire(transport);
    while (output->size && most) {
        struct iovec pieces[PIECES];
        int count = heddle_output_gather(output, pieces, PIECES);
        size_t offered = limit_pieces(pieces, &count, most);
        /* cleared before the call, so that events that are noted during the call are kept */
        heddle_transport_forget(transport, HEDDLE_HAS_ROOM);
        ssize_t sent = transport->operations->send(transport, pieces, count);
        if (sent < 0 && sent != -EAGAIN) {
            note_broken(connection, (int)-sent);
            return (int)sent;
        }
        if (sent > 0)
            heddle_output_advance(output, (size_t)sent);
        if (sent < 0 || (size_t)sent < offered) {
            heddle_connection_want(connection, HEDDLE_WRITING);
            return -EAGAIN;
        }
        most -= offered;
    }
    if (output->size) {
        heddle_transport_note(transport, HEDDLE_HAS_ROOM);
        heddle_turns_wait(connection, HEDDLE_TURN_SENDS);
        return -EAGAIN;
    }
    heddle_transport_unlock_wire(transport);
    heddle_link_remove(&connection->unsent_link);
    return 0;
}

void heddle_connection_flush_later(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    if (connection->flush_scheduled)
        return;
    /*
     * The connection moves to the front of the list. Otherwise it might wait behind many connections with slow clients.
     */
    heddle_link_remove(&connection->unsent_link);
    heddle_connection_has_output(connection);
    connection->flush_scheduled = true;
    sockets->scheduled_flushes++;
    heddle_sockets_schedule_resume(sockets);
}

void heddle_sockets_flush(heddle_sockets *sockets)
{
    heddle_link *head = &sockets->unsent;
    for (heddle_link *link = heddle_link_first(head), *next; link && sockets->scheduled_flushes; link = next) {
        heddle_connection *connection = HEDDLE_CONTAINER_OF(link, heddle_connection, unsent_link);
        next = heddle_link_after(head, link);
        bool scheduled = connection->flush_scheduled;
        int result = scheduled ? heddle_connection_flush(connection) : 0;
        if (result != 0 && result != -EAGAIN)
            /* Without this event, a fiber that reads from the connection might wait forever. */
            heddle_sockets_deliver_event(sockets, connection, HEDDLE_BROKEN);
        else if (scheduled && connection->protocol && connection->protocol->flushed)
            connection->protocol->flushed(connection);
    }
}
