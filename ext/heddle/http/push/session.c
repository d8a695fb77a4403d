/* The states of a push session. */

#include "http/push/session.h"

/* Frees a session that has no connection. */
static void free_session(heddle_push_session *session)
{
    if (session->framing->release)
        session->framing->release(session);
    free(session->pong);
    free(session);
}

heddle_push_session *heddle_push_session_new(heddle_engine *engine, const heddle_push_carrier *carrier,
                                             const heddle_push_framing *framing)
{
    heddle_push_session *session = calloc(1, sizeof(*session) + (framing->reads_frames ? sizeof(*session->reader) : 0));
    if (!session)
        return NULL;
    session->work.operations = &heddle_push_work;
    session->engine = engine;
    session->carrier = carrier;
    session->framing = framing;
    session->slot = HEDDLE_PUSH_NO_CLIENT;
    session->last = &session->first;
    if (framing->reads_frames)
        heddle_websocket_reader_start(session->reader, true);
    if (!carrier->prepare || carrier->prepare(session))
        return session;
    free_session(session);
    return NULL;
}

/* -- states -------------------------------------------------------------------------------------------------------- */

static void enter_state(heddle_push_session *session, heddle_push_state state)
{
    HEDDLE_ASSERT(heddle_push_may_enter(session->state, state));
    session->state = state;
}

void heddle_push_count_sent(heddle_push_session *session, uint64_t bytes)
{
    if (!heddle_push_has_client(session))
        return;
    session->engine->websockets.sent++;
    session->engine->websockets.sent_bytes += bytes;
    session->traffic.sent++;
    session->traffic.sent_bytes += bytes;
}

static void count_end(heddle_push_session *session)
{
    if (!heddle_push_has_client(session))
        return;
    session->engine->websockets.open--;
    session->engine->websockets.closes[heddle_websocket_code_slot(session->code)]++;
}

/* Ends sending and receiving of frames. on_close is called after the callbacks for earlier messages. */
static void end_frames(heddle_push_session *session, heddle_push_state state, unsigned code)
{
    if (session->state <= HEDDLE_PUSH_CLOSING) {
        if (!session->code)
            session->code = (uint16_t)code;
        count_end(session);
        heddle_push_queue_callback(session, HEDDLE_PUSH_ON_CLOSE);
        heddle_wait_wake(session->wait);
        heddle_push_end_subscriptions(session);
    }
    enter_state(session, state);
    session->carrier->wake_writer(session);
}

static void stop_transport(heddle_push_session *session, bool abrupt)
{
    if (session->state == HEDDLE_PUSH_OVER)
        return;
    end_frames(session, HEDDLE_PUSH_OVER, HEDDLE_WEBSOCKET_ABNORMAL);
    session->carrier->stop(session, abrupt);
}

void heddle_push_stop_carrier(heddle_push_session *session)
{
    stop_transport(session, false);
}

void heddle_push_reset_carrier(heddle_push_session *session)
{
    stop_transport(session, true);
}

void heddle_push_finish_handoff(heddle_push_session *session)
{
    session->engine->websockets.open--;
    heddle_push_end_subscriptions(session);
    enter_state(session, HEDDLE_PUSH_OVER);
}

void heddle_push_begin_close(heddle_push_session *session, unsigned code, const char *reason, size_t size)
{
    if (session->state != HEDDLE_PUSH_OPEN)
        return;
    session->code = (uint16_t)code;
    if (!session->framing->send_close(session, code, reason, size)) {
        heddle_push_stop_carrier(session);
        return;
    }
    enter_state(session, HEDDLE_PUSH_CLOSING);
    size_t pending = heddle_push_pending(session);
    session->sent_at_check = session->written - pending;
    session->stalls = pending >= HEDDLE_OUTPUT_AT_ONCE;
    /* A paused socket must read again: the client's close frame comes after messages, which are discarded. */
    session->defers_reading = session->paused;
    session->paused = false;
    /* With a time limit of 0, the loop reads again at once, or ends the output if there is no close handshake. */
    bool at_once = session->defers_reading || !session->framing->reads_frames;
    heddle_push_set_time_limit(session, at_once ? 0 : heddle_push_closing_time(session));
}

void heddle_push_finish_output(heddle_push_session *session, unsigned code)
{
    end_frames(session, HEDDLE_PUSH_FINISHING, code);
    session->defers_reading = false;
    heddle_push_set_time_limit(session, session->engine->websockets.timeout);
    session->carrier->end(session);
}

void heddle_push_fail_session(heddle_push_session *session, unsigned code, const char *reason)
{
    if (session->state >= HEDDLE_PUSH_FINISHING)
        return;
    if (session->state == HEDDLE_PUSH_OPEN &&
        !session->framing->send_close(session, code, reason, strlen(reason)))
        heddle_push_stop_carrier(session);
    else
        heddle_push_finish_output(session, code);
}

/* -- input --------------------------------------------------------------------------------------------------------- */

/*
 * A closing socket never pauses, because its messages are discarded. The limit for the waiting messages of all sockets
 * does not apply while a fiber waits for a message, because that fiber takes the message at once. An address may use
 * bytes of this limit only while more bytes are free than the address uses. So one address gets at most half of them,
 * the next one a quarter, and so on.
 */
bool heddle_push_must_pause(const heddle_push_session *session)
{
    const heddle_websockets *all = &session->engine->websockets;
    const heddle_address_share *share = heddle_address_share_of(session->work.connection);
    bool exhausts = session->framing->reads_frames && !session->wait &&
                    all->waiting + (share ? share->messages : 0) >= all->messages_limit;
    return session->state == HEDDLE_PUSH_OPEN && (exhausts || heddle_push_is_full(session));
}

void heddle_push_resume_reading(heddle_push_session *session)
{
    session->paused = false;
    session->carrier->read(session);
    if (session->paused)
        heddle_push_set_deadline(session);
}

void heddle_push_handle_drained(heddle_push_session *session)
{
    heddle_push_update_pong(session);
    heddle_push_queue_callback(session, HEDDLE_PUSH_ON_DRAINED);
    heddle_push_catch_up(session);
}

/* -- life ---------------------------------------------------------------------------------------------------------- */

void heddle_push_begin_session(heddle_push_session *session, heddle_connection *connection)
{
    session->work.connection = connection;
    session->heard = session->keepalive_sent_at = session->traffic.since = heddle_clock_coarse();
    if (heddle_push_has_client(session)) {
        session->engine->websockets.open++;
        session->engine->websockets.opened++;
    }
    heddle_push_hold(session);
    heddle_push_set_deadline(session);
    heddle_push_queue_callback(session, HEDDLE_PUSH_ON_OPEN);
    heddle_push_resume_reading(session);
    heddle_push_release_hold(session);
}

void heddle_push_release_hold(heddle_push_session *session)
{
    heddle_connection *connection = session->work.connection;
    if (--session->depth > 0 || session->running)
        return;
    if (connection && !heddle_push_is_in_loop(session))
        return; /* on another thread: the queued output wakes the loop, which then takes the steps below */
    if (!connection)
        free_session(session);
    else if (heddle_push_has_work(session) && !session->work.list)
        /* on_close comes before all other work items: it must not wait in a long queue. */
        heddle_sockets_queue(connection->sockets, &session->work, session->due_callbacks & HEDDLE_PUSH_ON_CLOSE);
    else if (session->state == HEDDLE_PUSH_OVER && !session->work.list)
        session->carrier->close(session);
}

void heddle_push_drop_carrier(heddle_push_session *session)
{
    bool abandoned = session->work.connection->sockets->abandoned;
    if (session->state <= HEDDLE_PUSH_CLOSING) {
        session->code = HEDDLE_WEBSOCKET_ABNORMAL;
        count_end(session);
    }
    if (session->state != HEDDLE_PUSH_OVER)
        enter_state(session, HEDDLE_PUSH_OVER);
    heddle_ready_list_remove(&session->work);
    heddle_push_drop_messages(session);
    session->work.connection = NULL;
    if (!abandoned)
        heddle_wait_drop(&session->wait);
    session->wait = NULL;
    heddle_push_free_subscriptions(session);
    heddle_push_drop_client(session, abandoned);
    if (!session->running && session->depth == 0)
        free_session(session); /* otherwise the last function that holds the session frees it */
}

void heddle_push_abandon(heddle_push_session *session)
{
    session->work.connection = NULL;
    session->wait = NULL;
    heddle_push_abandon_subscriptions(session);
    heddle_push_drop_client(session, true);
}
