/* What connections have to send and the kernel has not taken yet. */

#include "net/sockets.h"

#include <errno.h>

enum {
    PIECES = 64,
};

void heddle_connection_has_output(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    if (connection->previous_unsent || sockets->unsent == connection)
        return;
    connection->next_unsent = sockets->unsent;
    if (sockets->unsent)
        sockets->unsent->previous_unsent = connection;
    sockets->unsent = connection;
}

static void unlink_unsent(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    if (connection->previous_unsent)
        connection->previous_unsent->next_unsent = connection->next_unsent;
    else if (sockets->unsent == connection)
        sockets->unsent = connection->next_unsent;
    else
        return;
    if (connection->next_unsent)
        connection->next_unsent->previous_unsent = connection->previous_unsent;
    connection->next_unsent = connection->previous_unsent = NULL;
}

static void not_put_off(heddle_connection *connection)
{
    if (connection->put_off)
        connection->sockets->put_off--;
    connection->put_off = false;
}

void heddle_connection_drop_output(heddle_connection *connection)
{
    not_put_off(connection);
    unlink_unsent(connection);
    heddle_output_clear(&connection->output);
}

int heddle_connection_flush(heddle_connection *connection)
{
    heddle_transport *transport = &connection->transport;
    heddle_output *output = &connection->output;
    not_put_off(connection);
    while (output->size) {
        struct iovec pieces[PIECES];
        int count = heddle_output_gather(output, pieces, PIECES);
        size_t offered = 0;
        for (int i = 0; i < count; i++)
            offered += pieces[i].iov_len;
        heddle_transport_forget(transport, HEDDLE_HAS_ROOM); /* before: what is noted meanwhile counts */
        ssize_t sent = transport->operations->send(transport, pieces, count);
        if (sent < 0 && sent != -EAGAIN) {
            connection->error = (int)-sent;
            heddle_transport_note(transport, HEDDLE_BROKEN);
            if (!connection->handle)
                connection->sockets->left_early++;
            heddle_connection_drop_output(connection);
            return (int)sent;
        }
        if (sent > 0)
            heddle_output_advance(output, (size_t)sent);
        if (sent < 0 || (size_t)sent < offered) {
            connection->sockets->set.operations->want(&connection->sockets->set, connection, HEDDLE_WRITING);
            return -EAGAIN;
        }
    }
    unlink_unsent(connection);
    return 0;
}

void heddle_connection_flush_later(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    if (connection->put_off)
        return;
    /* To the front, so that who is put off is found without a look at all those whose peers are slow. */
    unlink_unsent(connection);
    heddle_connection_has_output(connection);
    connection->put_off = true;
    sockets->put_off++;
    heddle_sockets_come_back(sockets);
}

void heddle_sockets_flush(heddle_sockets *sockets)
{
    for (heddle_connection *connection = sockets->unsent, *next; connection && sockets->put_off; connection = next) {
        next = connection->next_unsent;
        int result = connection->put_off ? heddle_connection_flush(connection) : 0;
        if (result != 0 && result != -EAGAIN)
            heddle_sockets_event(sockets, connection, HEDDLE_BROKEN); /* who reads it may wait for ever */
    }
}
