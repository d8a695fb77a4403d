/*
 * Keepalives: pings of WebSockets and comments of event streams. Both keep proxies from closing a silent connection,
 * and show which clients are gone.
 */

#include "http/push/session.h"

/* The time between two comments, in ns. Heddle::EventStream uses the same time for streams that a fiber writes. */
static const int64_t COMMENT_INTERVAL = INT64_C(15000000000);

/* -- pings --------------------------------------------------------------------------------------------------------- */

int64_t heddle_push_next_ping(const heddle_push_session *session)
{
    const heddle_websockets *all = &session->engine->websockets;
    if (session->pinged)
        return heddle_add_duration(session->keepalive_sent_at, all->timeout);
    return all->ping > 0 ? heddle_add_duration(session->heard, all->ping) : -1;
}

void heddle_push_check_pings(heddle_push_session *session, int64_t now)
{
    size_t pending = heddle_push_pending(session);
    bool full = pending >= HEDDLE_OUTPUT_AT_ONCE;
    bool moved = heddle_push_has_output_moved(session, pending) && (full || session->stalls);
    /*
     * a paused socket reads no input, so silence does not show that the client is gone; progress of the output shows
     * that the client reads
     */
    if (session->paused || moved)
        session->heard = now;
    if (session->pinged && session->heard >= session->keepalive_sent_at)
        session->pinged = session->stalls = false;
    int64_t due = heddle_push_next_ping(session);
    if (due < 0 || due > now)
        return;
    if (session->pinged) {
        session->engine->websockets.vanished++;
        heddle_push_reset_carrier(session);
        return;
    }
    session->pinged = true;
    session->keepalive_sent_at = now;
    session->stalls = full; /* a ping would wait behind the output, so progress of the output is checked instead */
    if (!full && !heddle_push_send_control(session, HEDDLE_WEBSOCKET_PING, NULL, 0))
        heddle_push_stop_carrier(session);
}

/* -- comments ------------------------------------------------------------------------------------------------------ */

int64_t heddle_push_next_comment(const heddle_push_session *session)
{
    return heddle_add_duration(session->keepalive_sent_at, COMMENT_INTERVAL);
}

void heddle_push_check_comments(heddle_push_session *session, int64_t now)
{
    int64_t timeout = session->engine->write_timeout;
    size_t pending = heddle_push_pending(session);
    if (heddle_push_has_output_moved(session, pending) || !pending) {
        session->heard = now;
    } else if (timeout >= 0 && heddle_add_duration(session->heard, timeout) <= now) {
        heddle_push_reset_carrier(session);
        return;
    }
    if (heddle_push_next_comment(session) > now)
        return;
    session->keepalive_sent_at = now;
    if (!pending && !heddle_push_send_comment(session))
        heddle_push_stop_carrier(session);
}
