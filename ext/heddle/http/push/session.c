/* The states of a push session. */

#include "http/push/session.h"

/* Frees a session without a connection. */
static void free_session(heddle_push_session *socket)
{
    heddle_push_drop_messages(socket);
    if (socket->framing->release)
        socket->framing->release(socket);
    free(socket->pong);
    free(socket);
}

heddle_push_session *heddle_push_session_new(heddle_engine *engine, const heddle_push_carrier *carrier,
                                             const heddle_push_framing *framing)
{
    heddle_push_session *socket = calloc(1, sizeof(*socket) + (framing->reads_frames ? sizeof(*socket->reader) : 0));
    if (!socket)
        return NULL;
    socket->work.operations = &heddle_push_work;
    socket->engine = engine;
    socket->carrier = carrier;
    socket->framing = framing;
    socket->slot = HEDDLE_PUSH_NO_CLIENT;
    socket->last = &socket->first;
    if (framing->reads_frames)
        heddle_websocket_reader_start(socket->reader, true);
    if (!carrier->prepare || carrier->prepare(socket))
        return socket;
    free_session(socket);
    return NULL;
}

/* -- states -------------------------------------------------------------------------------------------------------- */

static void enter_state(heddle_push_session *socket, heddle_push_state state)
{
    HEDDLE_ASSERT(heddle_push_may_enter(socket->state, state));
    socket->state = state;
}

void heddle_push_count_sent(heddle_push_session *socket, uint64_t bytes)
{
    if (!heddle_push_has_client(socket))
        return;
    socket->engine->websockets.sent++;
    socket->engine->websockets.sent_bytes += bytes;
    socket->traffic.sent++;
    socket->traffic.sent_bytes += bytes;
}

static void count_end(heddle_push_session *socket)
{
    if (!heddle_push_has_client(socket))
        return;
    socket->engine->websockets.open--;
    socket->engine->websockets.closes[heddle_websocket_code_slot(socket->code)]++;
}

/* Ends sending and receiving of frames. on_close is called after the messages that came before. */
static void end_frames(heddle_push_session *socket, heddle_push_state state, unsigned code)
{
    if (socket->state <= HEDDLE_PUSH_CLOSING) {
        if (!socket->code)
            socket->code = (uint16_t)code;
        count_end(socket);
        heddle_push_queue_callback(socket, HEDDLE_PUSH_ON_CLOSE);
        heddle_wait_wake(socket->wait);
        heddle_push_end_subscriptions(socket);
    }
    enter_state(socket, state);
    socket->carrier->wake_writer(socket);
}

static void stop_transport(heddle_push_session *socket, bool abrupt)
{
    if (socket->state == HEDDLE_PUSH_OVER)
        return;
    end_frames(socket, HEDDLE_PUSH_OVER, HEDDLE_WEBSOCKET_ABNORMAL);
    socket->carrier->stop(socket, abrupt);
}

void heddle_push_stop_carrier(heddle_push_session *socket)
{
    stop_transport(socket, false);
}

void heddle_push_reset_carrier(heddle_push_session *socket)
{
    stop_transport(socket, true);
}

void heddle_push_finish_handoff(heddle_push_session *socket)
{
    socket->engine->websockets.open--;
    heddle_push_end_subscriptions(socket);
    enter_state(socket, HEDDLE_PUSH_OVER);
}

void heddle_push_begin_close(heddle_push_session *socket, unsigned code, const char *reason, size_t size)
{
    if (socket->state != HEDDLE_PUSH_OPEN)
        return;
    socket->code = (uint16_t)code;
    if (!socket->framing->send_close(socket, code, reason, size)) {
        heddle_push_stop_carrier(socket);
        return;
    }
    enter_state(socket, HEDDLE_PUSH_CLOSING);
    size_t pending = heddle_push_pending(socket);
    socket->left = socket->written - pending;
    socket->stalls = pending >= HEDDLE_OUTPUT_AT_ONCE;
    /*
     * A paused socket must read again, to find the client's close frame behind messages that the handler no longer
     * gets.
     */
    socket->defers_reading = socket->paused;
    socket->paused = false;
    /* If there is no close handshake, the loop ends the output at once. */
    bool at_once = socket->defers_reading || !socket->framing->reads_frames;
    heddle_push_set_time_limit(socket, at_once ? 0 : heddle_push_closing_time(socket));
}

void heddle_push_finish_output(heddle_push_session *socket, unsigned code)
{
    end_frames(socket, HEDDLE_PUSH_FINISHING, code);
    socket->defers_reading = false;
    heddle_push_set_time_limit(socket, socket->engine->websockets.timeout);
    socket->carrier->end(socket);
}

void heddle_push_fail_session(heddle_push_session *socket, unsigned code, const char *reason)
{
    if (socket->state >= HEDDLE_PUSH_FINISHING)
        return;
    if (socket->state == HEDDLE_PUSH_OPEN &&
        !socket->framing->send_close(socket, code, reason, strlen(reason)))
        heddle_push_stop_carrier(socket);
    else
        heddle_push_finish_output(socket, code);
}

/* -- input --------------------------------------------------------------------------------------------------------- */

/* A closing socket does not pause: its input is discarded. */
bool heddle_push_must_pause(const heddle_push_session *socket)
{
    return socket->state == HEDDLE_PUSH_OPEN && heddle_push_is_full(socket);
}

void heddle_push_resume_reading(heddle_push_session *socket)
{
    socket->paused = false;
    socket->carrier->read(socket);
}

void heddle_push_handle_drained(heddle_push_session *socket)
{
    heddle_push_update_pong(socket);
    heddle_push_queue_callback(socket, HEDDLE_PUSH_ON_DRAINED);
    heddle_push_catch_up(socket);
}

/* -- life ---------------------------------------------------------------------------------------------------------- */

void heddle_push_begin_session(heddle_push_session *socket, heddle_connection *connection)
{
    socket->work.connection = connection;
    socket->heard = socket->pinged_at = socket->traffic.since = heddle_clock_coarse();
    if (heddle_push_has_client(socket)) {
        socket->engine->websockets.open++;
        socket->engine->websockets.opened++;
    }
    heddle_push_hold(socket);
    heddle_push_set_deadline(socket);
    heddle_push_queue_callback(socket, HEDDLE_PUSH_ON_OPEN);
    heddle_push_resume_reading(socket);
    heddle_push_release_hold(socket);
}

void heddle_push_release_hold(heddle_push_session *socket)
{
    heddle_connection *connection = socket->work.connection;
    if (--socket->depth > 0 || socket->running)
        return;
    if (connection && !heddle_push_is_in_loop(socket))
        return; /* on another thread: the queued output wakes the loop, which does the rest */
    if (!connection)
        free_session(socket);
    else if (heddle_push_has_work(socket) && !socket->work.list)
        /* on_close is queued before all other items, however many wait. */
        heddle_sockets_queue(connection->sockets, &socket->work, socket->due_callbacks & HEDDLE_PUSH_ON_CLOSE);
    else if (socket->state == HEDDLE_PUSH_OVER && !socket->work.list)
        socket->carrier->close(socket);
}

void heddle_push_drop_carrier(heddle_push_session *socket)
{
    bool abandoned = socket->work.connection->sockets->abandoned;
    if (socket->state <= HEDDLE_PUSH_CLOSING) {
        socket->code = HEDDLE_WEBSOCKET_ABNORMAL;
        count_end(socket);
    }
    if (socket->state != HEDDLE_PUSH_OVER)
        enter_state(socket, HEDDLE_PUSH_OVER);
    heddle_ready_list_remove(&socket->work);
    socket->work.connection = NULL;
    if (!abandoned)
        heddle_wait_drop(&socket->wait);
    socket->wait = NULL;
    heddle_push_free_subscriptions(socket);
    heddle_push_drop_client(socket, abandoned);
    if (!socket->running && socket->depth == 0)
        free_session(socket); /* otherwise the last function that holds the session frees it */
}

void heddle_push_abandon(heddle_push_session *socket)
{
    socket->work.connection = NULL;
    socket->wait = NULL;
    heddle_push_abandon_subscriptions(socket);
    heddle_push_drop_client(socket, true);
}
