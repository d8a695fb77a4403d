/* Writes messages into the output of a session's carrier. */

#include "http/push/session.h"
#include "pubsub/fanout.h"

size_t heddle_push_pending(const heddle_push_session *socket)
{
    return socket->work.connection ? socket->carrier->pending(socket) : 0;
}

bool heddle_push_exceeds_output(const heddle_push_session *socket)
{
    uint64_t limit = heddle_push_has_client(socket) ? socket->engine->websockets.output_limit
                                                         : HEDDLE_PENDING_LIMIT;
    return socket->work.connection && socket->carrier->is_full(socket, limit);
}

void heddle_push_end_slow(heddle_push_session *socket)
{
    if (socket->state == HEDDLE_PUSH_OPEN)
        socket->framing->end_slow(socket);
}

bool heddle_push_check_pace(heddle_push_session *socket)
{
    if (!heddle_push_exceeds_output(socket))
        return true;
    if (!heddle_push_is_in_loop(socket)) {
        /*
         * Only the loop can flush. If another thread has queued far too much, its message is dropped and the socket
         * ends.
         */
        bool far_ahead = heddle_push_pending(socket) / 4 > socket->engine->websockets.output_limit;
        socket->overflowed = true;
        socket->overrun |= far_ahead;
        heddle_connection_flush_later(socket->work.connection);
        return !far_ahead;
    }
    int result = socket->carrier->flush(socket); /* the kernel may have room for the output */
    if (result != 0 && result != -EAGAIN)
        heddle_push_stop_carrier(socket);
    if (!heddle_push_exceeds_output(socket))
        return socket->state == HEDDLE_PUSH_OPEN;
    heddle_push_end_slow(socket);
    return false;
}

void heddle_push_check_overflow(heddle_push_session *socket)
{
    if (socket->overrun)
        heddle_push_end_slow(socket);
    else if (socket->overflowed && heddle_push_pending(socket))
        heddle_push_check_pace(socket);
    socket->overflowed = false;
}

bool heddle_push_send_frame(heddle_push_session *socket, VALUE frame, bool at_once)
{
    if (!(at_once ? socket->carrier->send(socket, frame) : socket->carrier->write(socket, NULL, 0, frame)))
        return false;
    heddle_push_count_sent(socket, (uint64_t)RSTRING_LEN(frame));
    socket->written += (uint64_t)RSTRING_LEN(frame);
    return true;
}

bool heddle_push_send(heddle_push_session *socket, heddle_websocket_opcode opcode, VALUE message)
{
    if (socket->state != HEDDLE_PUSH_OPEN || !heddle_push_check_pace(socket))
        return false;
    if (!socket->framing->send(socket, opcode, message)) {
        heddle_push_stop_carrier(socket); /* no memory, and the output ends within a message */
        return false;
    }
    heddle_push_count_sent(socket, (uint64_t)RSTRING_LEN(message));
    return true;
}
