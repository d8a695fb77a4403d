/* The time limits of a push session, and its end when the server stops. */

#include "http/push/session.h"

void heddle_push_set_time_limit(heddle_push_session *session, int64_t duration)
{
    session->carrier->set_deadline(session, heddle_add_duration(heddle_clock_coarse(), duration));
}

int64_t heddle_push_closing_time(const heddle_push_session *session)
{
    const heddle_engine *engine = session->engine;
    bool stops = session->retires && engine->linger_timeout < engine->websockets.timeout;
    return stops ? engine->linger_timeout : engine->websockets.timeout;
}

void heddle_push_set_deadline(heddle_push_session *session)
{
    int64_t deadline = session->framing->next_check(session);
    if (session->retires && (deadline < 0 || session->retires_at < deadline))
        deadline = session->retires_at;
    session->carrier->set_deadline(session, deadline);
}

bool heddle_push_has_output_moved(heddle_push_session *session, size_t pending)
{
    uint64_t sent = session->written - pending;
    bool moved = sent != session->sent_at_check;
    session->sent_at_check = sent;
    return moved;
}

/* Is the client still reading output that precedes our close frame? Then it can't have answered that frame yet. */
static bool reads_before_end(heddle_push_session *session)
{
    size_t pending = heddle_push_pending(session);
    bool was_full = session->stalls;
    session->stalls = pending > 0;
    return heddle_push_has_output_moved(session, pending) && (pending || was_full);
}

static void handle_time_when_open(heddle_push_session *session)
{
    const heddle_websockets *all = &session->engine->websockets;
    int64_t now = heddle_clock_coarse();
    bool on_shutdown_returned = !((session->due_callbacks | session->calling) & HEDDLE_PUSH_ON_SHUTDOWN);
    if (session->retires && session->retires_at <= now && !on_shutdown_returned && now < all->retire_end) {
        /* waits for on_shutdown, because messages that it writes must come before the close frame */
        session->retires_at = heddle_add_duration(now, HEDDLE_DUE_INTERVAL);
    } else if (session->retires && session->retires_at <= now) {
        if (session->handle && !NIL_P(session->handle->farewell) &&
            !heddle_push_send_frame(session, session->handle->farewell, false))
            heddle_push_stop_carrier(session);
        heddle_push_begin_close(session, all->retire_code, NULL, 0);
        return;
    }
    session->framing->check(session, now);
    if (session->state == HEDDLE_PUSH_OPEN)
        heddle_push_set_deadline(session);
}

void heddle_push_handle_deadline(heddle_push_session *session)
{
    heddle_push_hold(session);
    if (session->defers_reading) {
        session->defers_reading = false;
        heddle_push_set_time_limit(session, heddle_push_closing_time(session));
        heddle_push_resume_reading(session);
    } else if (session->state == HEDDLE_PUSH_OPEN) {
        handle_time_when_open(session);
    } else if (!session->framing->reads_frames && session->state == HEDDLE_PUSH_CLOSING) {
        heddle_push_finish_output(session, session->code);
    } else if (session->lingers) {
        heddle_push_stop_carrier(session);
    } else if (session->state != HEDDLE_PUSH_OVER && reads_before_end(session)) {
        heddle_push_set_time_limit(session, heddle_push_closing_time(session));
    } else { /* the client takes too long to close */
        heddle_push_reset_carrier(session);
    }
    heddle_push_release_hold(session);
}

/* -- draining ------------------------------------------------------------------------------------------------------ */

bool heddle_push_has_to_retire(const heddle_push_session *session)
{
    bool ends = session->engine->draining || !heddle_push_has_client(session);
    return ends && session->state == HEDDLE_PUSH_OPEN && !session->retires;
}

/* Clients reconnect at once, so the sockets are closed one after another over some time. */
void heddle_push_retire(heddle_push_session *session)
{
    heddle_websockets *all = &session->engine->websockets;
    heddle_push_hold(session);
    session->retires = true;
    if (!heddle_push_has_client(session)) {
        heddle_push_begin_close(session, all->retire_code, NULL, 0);
        if (session->state == HEDDLE_PUSH_CLOSING)
            heddle_push_finish_output(session, session->code);
        heddle_push_release_hold(session);
        return;
    }
    /* spreads the sockets evenly over retire_time, in a pseudorandom order */
    uint64_t share = (uint64_t)(all->retired++) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    int64_t wait = (int64_t)((double)share / 4294967296.0 * (double)all->retire_time);
    session->retires_at = heddle_add_duration(heddle_clock_coarse(), wait);
    heddle_push_queue_callback(session, HEDDLE_PUSH_ON_SHUTDOWN);
    heddle_push_set_deadline(session);
    heddle_push_release_hold(session);
}
