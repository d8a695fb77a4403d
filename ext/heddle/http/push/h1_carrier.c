/*
 * The HTTP/1.1 carrier of a push session (a WebSocket or an event stream): the connection. After the head of the
 * response, the connection changes from HTTP/1.1 to heddle_push_protocol (below).
 */

#include "http/h1/server/server.h"
#include "http/push/session.h"

enum {
    READS = 2, /* after this many reads into the scratch buffer, the socket waits for its next turn (io_turns.h) */
};

/* -- input --------------------------------------------------------------------------------------------------------- */

/* Passes received bytes to the framing, which does not use all of them if reading must pause. Keeps the rest. */
static void feed_scratch(heddle_push_session *session, char *bytes, size_t size)
{
    heddle_connection *connection = session->work.connection;
    size_t used = session->framing->feed(session, bytes, size);
    if (session->state <= HEDDLE_PUSH_CLOSING && !heddle_bytes_add(&connection->input, bytes + used, size - used))
        heddle_push_stop_carrier(session);
}

static void feed_buffered(heddle_push_session *session)
{
    heddle_connection *connection = session->work.connection;
    size_t used = session->framing->feed(session, heddle_bytes_first(&connection->input),
                                        heddle_bytes_left(&connection->input));
    if (session->state <= HEDDLE_PUSH_CLOSING)
        heddle_bytes_use(&connection->input, used);
}

static void read_input(heddle_push_session *session)
{
    heddle_connection *connection = session->work.connection;
    for (unsigned reads = 0; session->state <= HEDDLE_PUSH_CLOSING;) {
        if (heddle_push_must_pause(session)) {
            session->paused = true;
            return;
        }
        if (heddle_bytes_left(&connection->input)) {
            feed_buffered(session);
            continue;
        }
        if (reads++ == READS) {
            heddle_turns_continue(connection);
            return;
        }
        char *scratch = connection->sockets->scratch;
        ssize_t bytes = heddle_connection_receive(connection, scratch, HEDDLE_SCRATCH);
        if (bytes == -EAGAIN) {
            heddle_connection_want(connection, HEDDLE_READING);
            return;
        }
        if (bytes <= 0) { /* the client has ended the connection without a close frame, or the connection is broken */
            heddle_push_stop_carrier(session);
            return;
        }
        feed_scratch(session, scratch, (size_t)bytes);
    }
}

/* -- output -------------------------------------------------------------------------------------------------------- */

static bool write_output(heddle_push_session *session, const char *bytes, size_t size, VALUE string)
{
    heddle_connection *connection = session->work.connection;
    heddle_output *output = &connection->output;
    if ((size && !heddle_output_add_bytes(output, bytes, size)) ||
        (string && RSTRING_LEN(string) && !heddle_output_add_string(output, string, 0)))
        return false;
    heddle_connection_flush_later(connection);
    return true;
}

/* If the client reads fast enough, a broadcast is one system call for each socket: nothing is copied or queued. */
static bool send_frame(heddle_push_session *session, VALUE frame)
{
    heddle_connection *connection = session->work.connection;
    ssize_t size = RSTRING_LEN(frame), sent = heddle_connection_send_now(connection, RSTRING_PTR(frame), (size_t)size);
    if (sent < 0)
        return false;
    if (sent == size) {
        heddle_push_handle_drained(session);
        return true;
    }
    if (!heddle_output_add_string(&connection->output, frame, (size_t)sent))
        return false;
    heddle_connection_flush_later(connection);
    return true;
}

static size_t count_pending(const heddle_push_session *session)
{
    return session->work.connection->output.size;
}

static bool is_full(const heddle_push_session *session, uint64_t limit)
{
    return count_pending(session) > limit;
}

static int flush_output(heddle_push_session *session)
{
    heddle_connection *connection = session->work.connection;
    int result = heddle_connection_flush(connection);
    if (result == 0)
        heddle_output_clear(&connection->output); /* an idle socket keeps no output buffer */
    return result;
}

static bool wait_for_room(heddle_push_session *session)
{
    return heddle_connection_wait_for(session->work.connection, HEDDLE_WRITING, -1) != HEDDLE_WAIT_CLOSED;
}

static void wake_writer(heddle_push_session *session)
{
    heddle_connection_wake(session->work.connection, HEDDLE_BROKEN);
}

/* -- the end ------------------------------------------------------------------------------------------------------- */

/*
 * Called after the last frame. If this is a WebSocket, ends the output and discards input until the client closes the
 * connection, or a limit of net/linger.c is reached. An event stream is closed as soon as all output is sent.
 */
static void end_output(heddle_push_session *session)
{
    heddle_connection *connection = session->work.connection;
    if (!session->lingers) {
        int result = heddle_connection_flush(connection);
        if (result == -EAGAIN)
            return;
        if (result != 0 || !session->framing->reads_frames ||
            !heddle_linger_begin(connection, session->engine->linger_timeout)) {
            heddle_push_stop_carrier(session);
            return;
        }
        session->lingers = true;
    }
    if (heddle_linger_read(connection, &session->lingered, session->engine->linger_limit, UINT_MAX) != -EAGAIN)
        heddle_push_stop_carrier(session);
}

static void begin_end(heddle_push_session *session)
{
    heddle_bytes_reset(&session->work.connection->input, 0);
    end_output(session);
}

static void stop_connection(heddle_push_session *session, bool abrupt)
{
    heddle_connection *connection = session->work.connection;
    if (abrupt)
        heddle_transport_will_reset(&connection->transport);
    heddle_connection_drop_output(connection);
}

static void close_connection(heddle_push_session *session)
{
    heddle_sockets_close_connection(session->work.connection);
}

static void set_deadline(heddle_push_session *session, int64_t at)
{
    heddle_connection_set_deadline(session->work.connection, at);
}

static bool is_free(const heddle_exchange_handle *exchange)
{
    const heddle_connection *connection = exchange->exchange->work.connection;
    return heddle_h1_of(connection)->received && !heddle_bytes_left(&connection->input) &&
           !connection->waits[HEDDLE_WRITING];
}

static void begin_on_connection(heddle_push_session *session, heddle_exchange_handle *exchange, int status, VALUE early)
{
    heddle_h1_change_protocol(exchange->exchange->work.connection, &heddle_push_protocol, session, status);
}

const heddle_push_carrier heddle_push_h1_carrier = {
    .exchanges = &heddle_h1_exchange_operations,
    .is_free = is_free,
    .begin = begin_on_connection,
    .write = write_output,
    .send = send_frame,
    .pending = count_pending,
    .is_full = is_full,
    .flush = flush_output,
    .read = read_input,
    .end = begin_end,
    .stop = stop_connection,
    .close = close_connection,
    .set_deadline = set_deadline,
    .wait_for_room = wait_for_room,
    .wake_writer = wake_writer,
};

/* -- the protocol -------------------------------------------------------------------------------------------------- */

static void begin_socket(heddle_connection *connection)
{
    heddle_connection_flush_later(connection); /* sends the head of the response */
    heddle_push_begin_session(heddle_push_session_of(connection), connection);
}

static void handle_deadline(heddle_connection *connection)
{
    heddle_push_handle_deadline(heddle_push_session_of(connection));
}

static void handle_event(heddle_connection *connection, uint8_t ready)
{
    heddle_push_session *session = heddle_push_session_of(connection);
    heddle_push_hold(session);
    if ((ready & HEDDLE_BROKEN) || connection->error) {
        heddle_push_stop_carrier(session);
    } else if ((ready & HEDDLE_HAS_ROOM) && connection->output.size && session->state != HEDDLE_PUSH_FINISHING) {
        heddle_push_flush(session);
    }
    heddle_connection_wake(connection, ready);
    if (session->state == HEDDLE_PUSH_FINISHING)
        end_output(session);
    else if (session->state != HEDDLE_PUSH_OVER && !session->paused && !session->defers_reading)
        heddle_push_resume_reading(session);
    heddle_push_release_hold(session);
}

static void handle_flushed(heddle_connection *connection)
{
    heddle_push_session *session = heddle_push_session_of(connection);
    heddle_push_hold(session);
    heddle_push_check_overflow(session);
    if (!connection->output.size) {
        heddle_output_clear(&connection->output);
        heddle_push_handle_drained(session);
    } else {
        heddle_push_update_pong(session);
    }
    heddle_push_release_hold(session);
}

static bool is_idle(const heddle_connection *connection)
{
    return heddle_push_has_to_retire(heddle_push_session_of(connection));
}

static void end_idle(heddle_connection *connection)
{
    heddle_push_retire(heddle_push_session_of(connection));
}

static int64_t heard_at(const heddle_connection *connection)
{
    const heddle_push_session *session = heddle_push_session_of(connection);
    bool busy = session->state != HEDDLE_PUSH_OPEN || session->running || heddle_push_has_work(session);
    return busy ? INT64_MAX : session->heard;
}

/*
 * Asks the client to reconnect later: a WebSocket by the close code 1013, an event stream by a reconnection time
 * (send_farewell in event_framing.c).
 */
static void yield_room(heddle_connection *connection)
{
    heddle_push_session *session = heddle_push_session_of(connection);
    heddle_push_hold(session);
    session->retires = true;
    heddle_push_fail_session(session, HEDDLE_WEBSOCKET_TRY_AGAIN, "other clients need the connection");
    heddle_push_stop_carrier(session);
    heddle_push_release_hold(session);
}

static void release_socket(heddle_connection *connection)
{
    heddle_push_drop_carrier(heddle_push_session_of(connection));
}

static void abandon_socket(heddle_connection *connection)
{
    heddle_push_abandon(heddle_push_session_of(connection));
}

const heddle_protocol heddle_push_protocol = {
    .stays = true, /* the watch thread hands off no sockets, because their handlers are in this process */
    .waits_for_turns = true,
    .describe = heddle_events_describe,
    .begin = begin_socket,
    .handle_event = handle_event,
    .handle_deadline = handle_deadline,
    .flushed = handle_flushed,
    .is_idle = is_idle,
    .heard_at = heard_at,
    .yield_room = yield_room,
    .end_idle = end_idle,
    .release = release_socket,
    .abandon = abandon_socket,
};
