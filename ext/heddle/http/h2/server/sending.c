/* Sends the output of a session over its connection, and ends the connection when the session has ended. */

#include "http/h2/server/server.h"

/* Moves frames from the session to the connection's output, up to a limit. Returns false when out of memory. */
static bool pull_frames(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    while (connection->output.size < HEDDLE_H2_AT_ONCE && heddle_h2_has_output(server->session)) {
        /* Uses the scratch buffer, because a separate buffer would occupy memory while the connection is idle. */
        char *scratch = connection->sockets->scratch;
        size_t size = heddle_h2_pull(server->session, heddle_clock_coarse(), scratch, HEDDLE_SCRATCH);
        if (size == 0)
            break;
        if (!heddle_output_add_bytes(&connection->output, scratch, size))
            return false;
    }
    return true;
}

static int64_t add_time(int64_t duration)
{
    return duration < 0 ? INT64_MAX : heddle_add_duration(heddle_clock_coarse(), duration);
}

int heddle_h2_flush_queue(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    int64_t timeout = heddle_engine_of_connection(connection)->write_timeout;
    size_t before = connection->output.size;
    int result = heddle_connection_flush(connection);
    if (result == 0 && server->session->stream_count == 0)
        heddle_output_clear(&connection->output); /* an idle connection keeps no output buffer */
    if (result == 0)
        server->write_deadline = INT64_MAX;
    else if (connection->output.size < before || server->write_deadline == INT64_MAX)
        server->write_deadline = add_time(timeout);
    return result;
}

/*
 * Called when all output was sent. If the client has already ended its side, or lingering fails, closes the connection.
 * Otherwise lets the connection linger (net/linger.c).
 */
static HEDDLE_FATE end_output(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_transport_lock_wire(&connection->transport); /* never unlocked, so that nothing is sent afterwards */
    if (server->ended || !heddle_linger_begin(connection, engine->linger_timeout)) {
        heddle_sockets_close_connection(connection);
        return HEDDLE_GONE;
    }
    server->lingers = true;
    heddle_connection_want(connection, HEDDLE_READING);
    return HEDDLE_ALIVE;
}

/* Does the remaining output wait forever, because the client has closed its windows and ended its side? */
static bool is_stuck(const heddle_h2_server *server)
{
    return server->ended && !server->connection->output.size && !heddle_h2_has_output(server->session);
}

static bool is_waiting_writer(const heddle_h2_carrier *carrier)
{
    return carrier->waits[HEDDLE_WRITING] && !carrier->gone;
}

static bool has_waiting_writer(const heddle_h2_server *server)
{
    const heddle_h2_carrier *carrier = heddle_h2_first_carrier(server);
    while (carrier && !is_waiting_writer(carrier))
        carrier = heddle_h2_next_carrier(carrier);
    return carrier != NULL;
}

/* Resets the streams whose fibers wait to write. */
static HEDDLE_FATE cut_off_writers(heddle_h2_server *server)
{
    heddle_h2_enter_session(server);
    for (heddle_h2_carrier *carrier = heddle_h2_first_carrier(server); carrier;
         carrier = heddle_h2_next_carrier(carrier)) {
        if (is_waiting_writer(carrier))
            heddle_h2_reset_exchange(carrier);
    }
    return heddle_h2_leave_session(server) ? heddle_h2_send(server) : HEDDLE_GONE;
}

/* Called when nothing more can be sent now: ends the connection, or sets its time limit. */
static HEDDLE_FATE decide_next_step(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    if (server->lingers)
        return HEDDLE_ALIVE;
    if (is_stuck(server) && has_waiting_writer(server))
        return cut_off_writers(server);
    if (!connection->output.size && !heddle_h2_has_output(server->session) &&
        (!heddle_h2_is_open(server->session) ||
         (server->ended && !heddle_h2_first_carrier(server) && !heddle_h2_first_tunnel(server))))
        return end_output(server);
    /* In the next tick, the next waiting request joins the ready list, or held response heads are sent. */
    if (heddle_h2_may_queue(server) || server->held_count)
        heddle_connection_flush_later(connection);
    if (server->session->queued)
        heddle_connection_has_output(connection); /* also if the client's windows are closed: see net/slow_readers.c */
    int64_t deadline = heddle_h2_deadline(server->session);
    if (connection->output.size && server->write_deadline == INT64_MAX)
        server->write_deadline = add_time(heddle_engine_of_connection(connection)->write_timeout);
    if (connection->output.size && server->write_deadline < deadline)
        deadline = server->write_deadline;
    heddle_connection_set_deadline(connection, deadline == INT64_MAX ? -1 : deadline);
    return HEDDLE_ALIVE;
}

/*
 * Sends the connection's output. Returns 0 if nothing is left to send, -EAGAIN if output is left, or another -errno.
 * Output that the session still has is sent in the connection's next turns.
 */
static int send_part(heddle_h2_server *server)
{
    int result = heddle_h2_flush_queue(server);
    if (result != 0 || !heddle_h2_has_output(server->session))
        return result;
    heddle_turns_wait(server->connection, HEDDLE_TURN_SENDS);
    return -EAGAIN;
}

/*
 * Moves frames to the connection's output until it has HEDDLE_H2_AT_ONCE bytes or more, and sends this output. The
 * connection sends the rest in its next turns. If `now` is false, output below HEDDLE_H2_AT_ONCE bytes is sent at the
 * beginning of the next tick, together with the output of other streams.
 */
static HEDDLE_FATE send_output(heddle_h2_server *server, bool now)
{
    heddle_connection *connection = server->connection;
    if (!connection)
        return HEDDLE_GONE;
    if (server->depth > 0) /* the outermost caller sends */
        return HEDDLE_ALIVE;
    if (heddle_h2_may_queue(server) && !heddle_h2_queue_next(server))
        return HEDDLE_GONE;
    if (!server->lingers && (connection->sockets->draining || heddle_engine_of_connection(connection)->draining ||
                             atomic_load(&connection->transport.farewell_sent)))
        heddle_h2_drain(server->session, heddle_clock_coarse());
    if (!connection->output.size) /* earlier output was sent completely, at the beginning of the tick */
        server->write_deadline = INT64_MAX;
    if (heddle_turns_waits(connection, HEDDLE_TURN_SENDS))
        return decide_next_step(server);
    bool pulled = pull_frames(server);
    if (!now && pulled && connection->output.size < HEDDLE_H2_AT_ONCE && heddle_h2_is_open(server->session) &&
        !server->ended) {
        if (connection->output.size)
            heddle_connection_flush_later(connection);
        return decide_next_step(server);
    }
    int result = pulled ? send_part(server) : -ENOMEM;
    if (result == 0 || result == -EAGAIN)
        return decide_next_step(server);
    heddle_sockets_close_connection(connection);
    return HEDDLE_GONE;
}

heddle_fate heddle_h2_send(heddle_h2_server *server)
{
    return send_output(server, false);
}

heddle_fate heddle_h2_send_now(heddle_h2_server *server)
{
    return send_output(server, true);
}

int heddle_h2_flush(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    if (server->depth > 0 || heddle_turns_waits(connection, HEDDLE_TURN_SENDS))
        return -EAGAIN;
    int result = pull_frames(server) ? send_part(server) : -ENOMEM;
    if (result == 0 || result == -EAGAIN)
        heddle_connection_flush_later(connection); /* handle_flushed then decides the next step */
    return result;
}
