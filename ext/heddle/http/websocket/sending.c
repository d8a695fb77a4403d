/* Frames of a WebSocket into its connection's output. */

#include "http/websocket/session.h"

#include <errno.h>
#include <string.h>

size_t heddle_websocket_pending(const heddle_websocket *socket)
{
    return socket->work.connection ? socket->work.connection->output.size : 0;
}

bool heddle_websocket_send_control(heddle_websocket *socket, heddle_websocket_opcode opcode, const char *payload,
                                   size_t size)
{
    heddle_connection *connection = socket->work.connection;
    char *room = heddle_output_reserve(&connection->output, HEDDLE_WEBSOCKET_HEAD + HEDDLE_WEBSOCKET_CONTROL);
    if (!room)
        return false;
    size_t used = heddle_websocket_write_head(room, opcode, false, size, NULL);
    if (size)
        memcpy(room + used, payload, size);
    heddle_output_added(&connection->output, used + size);
    socket->unsent += used + size;
    heddle_connection_flush_later(connection);
    return true;
}

static bool is_own_thread(const heddle_connection *connection)
{
    return connection->sockets->loop->thread == rb_thread_current();
}

bool heddle_websocket_check_pace(heddle_websocket *socket)
{
    heddle_connection *connection = socket->work.connection;
    uint64_t limit = socket->engine->websockets.output_limit;
    if (connection->output.size <= limit)
        return true;
    if (!is_own_thread(connection)) {
        /* Only the loop can ask the kernel. A thread that is far ahead of it ends the socket: what is refused is lost. */
        bool far_ahead = connection->output.size / 4 > limit;
        socket->overflowed = true;
        socket->overrun |= far_ahead;
        heddle_connection_flush_later(connection);
        return !far_ahead;
    }
    int result = heddle_connection_flush(connection); /* the kernel may not have been asked yet */
    if (result != 0 && result != -EAGAIN)
        heddle_websocket_break_off(socket);
    if (connection->output.size <= limit)
        return socket->state == HEDDLE_WEBSOCKET_OPEN;
    heddle_websocket_end_slow(socket);
    return false;
}

void heddle_websocket_end_slow(heddle_websocket *socket)
{
    if (socket->state != HEDDLE_WEBSOCKET_OPEN)
        return;
    socket->engine->websockets.too_slow++;
    heddle_websocket_fail(socket, HEDDLE_WEBSOCKET_POLICY, "the client reads too slowly");
}

bool heddle_websocket_send_frame(heddle_websocket *socket, VALUE frame)
{
    heddle_connection *connection = socket->work.connection;
    if (!heddle_output_add_string(&connection->output, frame, 0))
        return false;
    heddle_websocket_count_sent(socket, (uint64_t)RSTRING_LEN(frame));
    socket->unsent += (size_t)RSTRING_LEN(frame);
    heddle_connection_flush_later(connection);
    return true;
}

bool heddle_websocket_send(heddle_websocket *socket, heddle_websocket_opcode opcode, VALUE string)
{
    heddle_connection *connection = socket->work.connection;
    char head[HEDDLE_WEBSOCKET_HEAD];
    size_t size = (size_t)RSTRING_LEN(string);
    if (socket->state != HEDDLE_WEBSOCKET_OPEN || !heddle_websocket_check_pace(socket))
        return false;
    size_t used = heddle_websocket_write_head(head, opcode, false, size, NULL);
    if (!heddle_output_add_bytes(&connection->output, head, used) ||
        (size && !heddle_output_add_string(&connection->output, string, 0))) {
        heddle_websocket_break_off(socket); /* no memory, and half a frame is none */
        return false;
    }
    heddle_websocket_count_sent(socket, size);
    socket->unsent += used + size;
    heddle_connection_flush_later(connection);
    return true;
}
