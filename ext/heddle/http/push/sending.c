/* Writes messages into the output of a session's carrier. */

#include "http/push/session.h"
#include "pubsub/fanout.h"

size_t heddle_push_pending(const heddle_push_session *session)
{
    return session->work.connection ? session->carrier->pending(session) : 0;
}

bool heddle_push_exceeds_output(const heddle_push_session *session)
{
    uint64_t limit = heddle_push_has_client(session) ? session->engine->websockets.output_limit
                                                         : HEDDLE_PENDING_LIMIT;
    return session->work.connection && session->carrier->is_full(session, limit);
}

void heddle_push_end_slow(heddle_push_session *session)
{
    if (session->state == HEDDLE_PUSH_OPEN)
        session->framing->end_slow(session);
}

int heddle_push_flush(heddle_push_session *session)
{
    int result = session->carrier->flush(session);
    if (result == 0)
        heddle_push_handle_drained(session);
    else if (result == -EAGAIN)
        heddle_push_update_pong(session);
    else
        heddle_push_stop_carrier(session);
    return result;
}

bool heddle_push_check_pace(heddle_push_session *session)
{
    if (!heddle_push_exceeds_output(session))
        return true;
    if (!heddle_push_is_in_loop(session)) {
        /*
         * Only the loop can flush the output. If other threads have queued far too much, this message is dropped, and
         * the loop ends the socket.
         */
        bool far_ahead = heddle_push_pending(session) / 4 > session->engine->websockets.output_limit;
        session->overflowed = true;
        session->overrun |= far_ahead;
        heddle_connection_flush_later(session->work.connection);
        return !far_ahead;
    }
    int result = session->carrier->flush(session); /* the kernel may accept more output now */
    if (result != 0 && result != -EAGAIN)
        heddle_push_stop_carrier(session);
    if (!heddle_push_exceeds_output(session))
        return session->state == HEDDLE_PUSH_OPEN;
    heddle_push_end_slow(session);
    return false;
}

void heddle_push_check_overflow(heddle_push_session *session)
{
    if (session->overrun)
        heddle_push_end_slow(session);
    else if (session->overflowed && heddle_push_pending(session))
        heddle_push_check_pace(session);
    session->overflowed = false;
}

bool heddle_push_send_frame(heddle_push_session *session, VALUE frame, bool at_once)
{
    if (!(at_once ? session->carrier->send(session, frame) : session->carrier->write(session, NULL, 0, frame)))
        return false;
    heddle_push_count_sent(session, (uint64_t)RSTRING_LEN(frame));
    session->written += (uint64_t)RSTRING_LEN(frame);
    return true;
}

bool heddle_push_send(heddle_push_session *session, heddle_websocket_opcode opcode, VALUE message)
{
    if (session->state != HEDDLE_PUSH_OPEN || !heddle_push_check_pace(session))
        return false;
    if (!session->framing->send(session, opcode, message)) {
        heddle_push_stop_carrier(session); /* the output may end within a message */
        return false;
    }
    heddle_push_count_sent(session, (uint64_t)RSTRING_LEN(message));
    return true;
}
