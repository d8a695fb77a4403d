/* HTTP/2 as the protocol of a connection: handles its events, turns and time limits, and decides when it is idle. */

#include "http/h2/server/server.h"

static void free_server(heddle_h2_server *server)
{
    heddle_h2_session_free(server->session);
    free(server);
}

/*
 * Frees the carriers (records that join an exchange to its stream) whose streams have ended early, except those of
 * running requests. This is done only at the end of the outermost call, because functions on the call stack may use the
 * carriers.
 */
static void drop_gone_carriers(heddle_h2_server *server)
{
    while (server->connection && !server->swept) {
        heddle_h2_carrier *carrier = heddle_h2_first_carrier(server);
        while (carrier && (!carrier->gone || heddle_exchange_is_running(carrier->exchange)))
            carrier = heddle_h2_next_carrier(carrier);
        if (carrier) {
            heddle_h2_drop_carrier(carrier);
            heddle_last_use(heddle_h2_queue_next(server));
        }
        server->swept = !carrier;
    }
}

heddle_fate heddle_h2_leave_session(heddle_h2_server *server)
{
    if (server->depth == 1)
        drop_gone_carriers(server);
    if (--server->depth > 0 || server->connection)
        return server->connection ? HEDDLE_ALIVE : HEDDLE_GONE;
    free_server(server);
    return HEDDLE_GONE;
}

static void take_turn(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    if (server->lingers) {
        heddle_h2_discard_input(server);
        return;
    }
    if (connection->output.size && heddle_transport_has(&connection->transport, HEDDLE_HAS_ROOM)) {
        int result = heddle_h2_flush_queue(server);
        if (result != 0 && result != -EAGAIN) {
            heddle_sockets_close_connection(connection);
            return;
        }
    }
    heddle_h2_read_and_send(server);
}

static void begin_reading(heddle_connection *connection)
{
    heddle_turns_take(connection, HEDDLE_TURN_READS);
}

static void handle_event(heddle_connection *connection, uint8_t ready)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    if ((ready & (HEDDLE_BROKEN | HEDDLE_HUNG_UP)) || connection->error) {
        heddle_sockets_close_connection(connection);
        return;
    }
    bool sends = !server->lingers && (ready & HEDDLE_HAS_ROOM) && connection->output.size;
    if (sends && heddle_turns_waits(connection, HEDDLE_TURN_READS))
        heddle_link_remove(&connection->turn_link); /* its output must not wait behind other connections' input */
    heddle_turns_take(connection, sends ? HEDDLE_TURN_SENDS : HEDDLE_TURN_READS);
}

static void judge_deadline(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    if (server->lingers) {
        heddle_sockets_close_connection(connection);
        return;
    }
    if (connection->output.size && server->write_deadline <= heddle_clock_coarse()) {
        heddle_transport_will_reset(&connection->transport);
        heddle_sockets_close_connection(connection);
        return;
    }
    heddle_h2_enter_session(server);
    heddle_h2_expire(server->session, heddle_clock_coarse());
    heddle_h2_end_call(server);
}

/*
 * A connection that waits for its turn gets the turn before its deadline is checked, because bytes that the client has
 * sent or read meanwhile may move the deadline.
 */
static void handle_deadline(heddle_connection *connection)
{
    if (heddle_turns_end_wait(connection))
        judge_deadline(connection);
}

/* Called when a tick begins. Tunnels (see tunnel.h) may have written output that is still in the session. */
static void handle_flushed(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    if (server->session->stream_count == 0 && !connection->output.size)
        heddle_output_clear(&connection->output);
    if (server->held_count) {
        heddle_h2_enter_session(server);
        heddle_h2_release_heads(server);
        if (!heddle_h2_leave_session(server))
            return;
    }
    if (server->lingers || !(heddle_h2_first_tunnel(server) || server->session->queued ||
                             heddle_h2_has_output(server->session) || !heddle_h2_is_open(server->session) ||
                             heddle_h2_may_queue(server)))
        return;
    if (!heddle_h2_send_now(server))
        return;
    heddle_h2_enter_session(server);
    heddle_h2_tunnels_handle_flushed(server);
    heddle_last_use(heddle_h2_leave_session(server));
}

static bool is_idle(const heddle_connection *connection)
{
    const heddle_h2_server *server = heddle_h2_server_of(connection);
    /* When the server stops, running requests don't delay GOAWAY, because it concerns only later requests. */
    if (connection->sockets->draining)
        return true;
    if (heddle_engine_of_connection(connection)->draining && heddle_h2_tunnels_have_to_retire(server))
        return true;
    return server->session->stream_count == 0 && !connection->output.size &&
           !heddle_bytes_left(&connection->input);
}

static size_t count_waiting(const heddle_connection *connection)
{
    return connection->output.size + heddle_h2_server_of(connection)->session->queued;
}

static int64_t idle_since(const heddle_connection *connection)
{
    return heddle_h2_server_of(connection)->session->idle_since;
}

/* GOAWAY tells the client which requests were served. So the client can repeat a request that has not arrived yet. */
static void yield_room(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    if (!server->lingers) {
        heddle_h2_enter_session(server);
        heddle_h2_abort(server->session, heddle_clock_coarse(), HEDDLE_H2_NO_ERROR);
        if (!heddle_h2_leave_session(server))
            return;
        heddle_h2_flush(server);
    }
    heddle_sockets_close_connection(connection);
}

static bool waits_for_runner(const heddle_h2_carrier *carrier)
{
    return carrier->exchange->work.list || heddle_link_is_listed(&carrier->turn);
}

static bool is_in_transit(const heddle_connection *connection)
{
    /* An open tunnel has no carrier, so it does not count as in transit: it may be silent for hours. */
    const heddle_h2_carrier *carrier = heddle_h2_first_carrier(heddle_h2_server_of(connection));
    while (carrier && waits_for_runner(carrier))
        carrier = heddle_h2_next_carrier(carrier);
    return carrier || connection->output.size;
}

/*
 * Returns the time of the last call into the session, or INT64_MAX if a request of the connection waits for a runner.
 */
static int64_t heard_at(const heddle_connection *connection)
{
    const heddle_h2_server *server = heddle_h2_server_of(connection);
    for (const heddle_h2_carrier *carrier = heddle_h2_first_carrier(server); carrier;
         carrier = heddle_h2_next_carrier(carrier)) {
        if (waits_for_runner(carrier))
            return INT64_MAX;
    }
    return server->session->now;
}

/*
 * Begins to drain the connection: sends GOAWAY now, and a second GOAWAY when the client has had time to read the first
 * one (RFC 9113, 6.8). After that, the connection is closed when no stream is left.
 */
static void end_idle(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    if (server->lingers)
        return;
    heddle_h2_enter_session(server);
    heddle_h2_tunnels_retire(server);
    if (!heddle_h2_leave_session(server))
        return;
    heddle_h2_drain(server->session, heddle_clock_coarse());
    heddle_last_use(heddle_h2_send(server));
}

static void release_server(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    heddle_h2_carrier *carrier;
    heddle_h2_tunnels_release(server);
    while ((carrier = heddle_h2_first_carrier(server))) {
        heddle_exchange *exchange = carrier->exchange;
        carrier->stream->owner = NULL;
        heddle_h2_free_carrier(carrier);
        if (!connection->sockets->abandoned)
            heddle_exchange_disconnected(exchange);
        heddle_exchange_leave_session(exchange);
    }
    server->connection = NULL;
    if (server->depth == 0)
        free_server(server);
    else
        heddle_h2_abort(server->session, heddle_clock_coarse(), HEDDLE_H2_NO_ERROR);
}

static void abandon_server(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    for (heddle_h2_carrier *carrier = heddle_h2_first_carrier(server); carrier;
         carrier = heddle_h2_next_carrier(carrier))
        carrier->exchange->work.connection = NULL;
    heddle_h2_tunnels_abandon(server);
}

/*
 * The bytes that the watch thread sends when it wants the client to open another connection: GOAWAY with the largest
 * stream id, which rejects no request (RFC 9113, 6.8).
 */
static const char farewell[] = {0, 0, 8, HEDDLE_H2_GOAWAY, 0, 0, 0, 0, 0, 0x7F, -1, -1, -1, 0, 0, 0, 0};

const heddle_protocol heddle_h2_protocol = {
    .stays = true, /* can't be handed off to another process, because of HPACK's tables */
    .farewell = farewell,
    .farewell_size = sizeof(farewell),
    .begin = begin_reading,
    .take_turn = take_turn,
    .handle_event = handle_event,
    .handle_deadline = handle_deadline,
    .flushed = handle_flushed,
    .is_idle = is_idle,
    .idle_since = idle_since,
    .heard_at = heard_at,
    .count_waiting = count_waiting,
    .yield_room = yield_room,
    .is_in_transit = is_in_transit,
    .end_idle = end_idle,
    .release = release_server,
    .abandon = abandon_server,
};
