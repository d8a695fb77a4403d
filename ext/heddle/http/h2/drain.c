#include "http/h2/session_state.h"

/* Ends a session without an error and without losing a request, when the server stops or the client is idle. */

void heddle_h2_send_goaway(heddle_h2_session *session, uint32_t last_stream, const char *reason)
{
    heddle_h2_note_output(session);
    if (!heddle_h2_write_goaway(&session->output, last_stream, HEDDLE_H2_NO_ERROR, reason))
        heddle_h2_fail_without_memory(session);
}

void heddle_h2_drain(heddle_h2_session *session, int64_t now)
{
    if (!heddle_h2_is_open(session) || session->drain_stage != HEDDLE_H2_NOT_DRAINING)
        return;
    session->now = now;
    heddle_h2_enter(session);
    heddle_h2_enter_drain(session, HEDDLE_H2_DRAIN_ANNOUNCED);
    session->drain_at = now + session->limits->drain_delay;
    heddle_h2_send_goaway(session, HEDDLE_H2_LARGEST_STREAM, "");
    heddle_h2_leave(session);
}

void heddle_h2_finish_drain(heddle_h2_session *session)
{
    if (!heddle_h2_is_open(session))
        return;
    if (session->drain_stage == HEDDLE_H2_DRAIN_ANNOUNCED && session->now >= session->drain_at) {
        heddle_h2_enter_drain(session, HEDDLE_H2_DRAINING);
        heddle_h2_send_goaway(session, session->last_processed, "");
    }
    if (session->drain_stage == HEDDLE_H2_DRAINING && session->stream_count == 0)
        heddle_h2_enter_stage(session, HEDDLE_H2_AT_END);
}
