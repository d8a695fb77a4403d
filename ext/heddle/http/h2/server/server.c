/* HTTP/2 as the protocol of a connection: moves bytes between the connection and its session. */

#include "http/h2/server/server.h"

enum {
    READS = 4, /* reads of HEDDLE_SCRATCH bytes before other connections get their turn */
};

/* -- input and output ---------------------------------------------------------------------------------------------- */

static void free_server(heddle_h2_server *server)
{
    heddle_h2_session_free(server->session);
    free(server);
}

/* Frees carriers that have ended; functions on the stack may have used them until now. */
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

/* Queues frames for the kernel, up to a limit. False: no memory. */
static bool pull_frames(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    while (connection->output.size < HEDDLE_H2_AT_ONCE && heddle_h2_has_output(server->session)) {
        /* By the scratch buffer: a buffer of the connection's own would stay while it is idle. */
        char *scratch = heddle_sockets_scratch(connection->sockets);
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

/* Sends as much as the kernel takes. Each time it takes something, the client's time limit starts anew. */
static int flush_output(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    int64_t timeout = heddle_engine_of_connection(connection)->write_timeout;
    size_t before = connection->output.size;
    int result = heddle_connection_flush(connection);
    if (result == 0)
        server->write_deadline = INT64_MAX;
    else if (connection->output.size < before || server->write_deadline == INT64_MAX)
        server->write_deadline = add_time(timeout);
    return result;
}

static void request_input(heddle_connection *connection)
{
    connection->sockets->set.operations->want(&connection->sockets->set, connection, HEDDLE_READING);
}

/*
 * Sends the last frame, which has the reason. A socket that is closed with unread input resets the connection, and the
 * reset can overtake that frame.
 */
static HEDDLE_FATE end_output(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_transport *transport = &connection->transport;
    heddle_transport_lock_wire(transport); /* never opened again */
    if (server->ended || engine->linger_timeout == 0 || transport->operations->shutdown(transport) < 0) {
        heddle_sockets_close_connection(connection);
        return HEDDLE_GONE;
    }
    server->lingers = true;
    heddle_connection_drop_input(connection);
    heddle_connection_set_deadline(connection, heddle_add_duration(heddle_clock_coarse(), engine->linger_timeout));
    request_input(connection);
    return HEDDLE_ALIVE;
}

static void discard_input(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    uint64_t limit = heddle_engine_of_connection(connection)->linger_limit;
    ssize_t bytes;
    unsigned reads = 0;
    do {
        bytes = heddle_connection_receive(connection, heddle_sockets_scratch(connection->sockets), HEDDLE_SCRATCH);
        server->lingered += bytes > 0 ? (uint64_t)bytes : 0;
    } while (bytes > 0 && server->lingered < limit && ++reads < READS);
    if (bytes == -EAGAIN)
        request_input(connection);
    else if (bytes > 0 && server->lingered < limit)
        heddle_turns_wait(connection, HEDDLE_TURN_READS);
    else
        heddle_sockets_close_connection(connection);
}

bool heddle_h2_is_stuck(const heddle_h2_server *server)
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

static HEDDLE_FATE cut_off_writers(heddle_h2_server *server)
{
    server->depth++;
    for (heddle_h2_carrier *carrier = heddle_h2_first_carrier(server); carrier;
         carrier = heddle_h2_next_carrier(carrier)) {
        if (is_waiting_writer(carrier))
            heddle_h2_reset_exchange(carrier);
    }
    return heddle_h2_leave_session(server) ? heddle_h2_send(server) : HEDDLE_GONE;
}

/* Decides the next step when nothing more can be done now. */
static HEDDLE_FATE decide_next_step(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    if (server->lingers)
        return HEDDLE_ALIVE;
    if (heddle_h2_is_stuck(server) && has_waiting_writer(server))
        return cut_off_writers(server);
    if (!connection->output.size && !heddle_h2_has_output(server->session) &&
        (!heddle_h2_is_open(server->session) ||
         (server->ended && !heddle_h2_first_carrier(server) && !heddle_h2_first_tunnel(server))))
        return end_output(server); /* the windows of a client that has ended its side never open again */
    if (heddle_h2_may_queue(server) || server->held_count) /* a lent string was sent; a head waits for the next tick */
        heddle_connection_flush_later(connection);
    int64_t deadline = heddle_h2_deadline(server->session);
    if (connection->output.size && server->write_deadline == INT64_MAX)
        server->write_deadline = add_time(heddle_engine_of_connection(connection)->write_timeout);
    if (connection->output.size && server->write_deadline < deadline)
        deadline = server->write_deadline;
    heddle_connection_set_deadline(connection, deadline == INT64_MAX ? -1 : deadline);
    return HEDDLE_ALIVE;
}

/* Sends what was pulled. The rest that the session has is sent in the connection's turns: -EAGAIN. */
static int send_part(heddle_h2_server *server)
{
    int result = flush_output(server);
    if (result != 0 || !heddle_h2_has_output(server->session))
        return result;
    heddle_turns_wait(server->connection, HEDDLE_TURN_SENDS);
    return -EAGAIN;
}

/*
 * Sends one part, as large as the queue for the kernel; the connection sends the rest in its turns. Without `now` small
 * output is sent later in this tick, together with the output of other streams.
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
    if (!connection->output.size) /* it was sent at the beginning of the tick */
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

int heddle_h2_flush(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    if (server->depth > 0 || heddle_turns_waits(connection, HEDDLE_TURN_SENDS))
        return -EAGAIN;
    int result = pull_frames(server) ? send_part(server) : -ENOMEM;
    if (result == 0 || result == -EAGAIN)
        heddle_connection_flush_later(connection); /* the next step is decided then */
    return result;
}

/* Keeps the bytes that the session does not take yet. */
static HEDDLE_FATE feed_session(heddle_h2_server *server, const char *bytes, size_t size)
{
    heddle_connection *connection = server->connection;
    server->depth++;
    size_t used = heddle_h2_feed(server->session, heddle_clock_coarse(), bytes, size);
    if (!heddle_h2_leave_session(server))
        return HEDDLE_GONE;
    bool buffered = heddle_connection_buffered(connection) > 0;
    if (buffered) {
        heddle_connection_use_input(connection, used);
    } else if (used < size) {
        char *room = heddle_connection_make_room(connection, size - used);
        if (!room) {
            heddle_sockets_close_connection(connection);
            return HEDDLE_GONE;
        }
        memcpy(room, bytes + used, size - used);
        connection->input_end += (uint32_t)(size - used);
    }
    return HEDDLE_ALIVE;
}

static heddle_h2_carrier *find_incomplete(const heddle_h2_server *server)
{
    heddle_h2_carrier *carrier = heddle_h2_first_carrier(server);
    while (carrier && (carrier->received || carrier->gone))
        carrier = heddle_h2_next_carrier(carrier);
    return carrier;
}

/* The client has ended its output: incomplete requests will never be complete. */
static HEDDLE_FATE end_input(heddle_h2_server *server)
{
    heddle_h2_carrier *carrier;
    server->ended = true;
    server->depth++;
    heddle_h2_tunnels_end_input(server);
    while (server->connection && (carrier = find_incomplete(server))) {
        heddle_h2_reset(server->session, carrier->stream, HEDDLE_H2_CANCEL);
        if (!heddle_h2_is_open(server->session)) /* those were too many resets, and all streams have ended */
            return heddle_h2_leave_session(server);
        heddle_h2_end_carrier(carrier);
    }
    for (carrier = heddle_h2_first_carrier(server); carrier; carrier = heddle_h2_next_carrier(carrier))
        heddle_exchange_disconnected(carrier->exchange);
    return heddle_h2_leave_session(server);
}

/*
 * Reads until no bytes are here, its turn has ended, or the session takes no more before its output is sent. Then sends
 * a part of the output.
 */
static void read_and_send(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    for (unsigned reads = 0;;) {
        size_t buffered = heddle_connection_buffered(connection);
        if (buffered) {
            if (!feed_session(server, connection->input + connection->input_start, buffered) || !heddle_h2_send(server))
                return;
            if (heddle_connection_buffered(connection) == buffered && heddle_h2_has_output(server->session))
                return; /* it continues when there is room for output */
            if (heddle_connection_buffered(connection) && heddle_h2_fed_enough(server->session)) {
                heddle_turns_wait(connection, HEDDLE_TURN_READS);
                return;
            }
            continue;
        }
        if (server->ended || !heddle_h2_is_open(server->session)) {
            if (!server->lingers)
                heddle_last_use(heddle_h2_send(server));
            return;
        }
        if (reads++ == READS) {
            if (heddle_h2_send(server))
                heddle_turns_wait(connection, HEDDLE_TURN_READS);
            return;
        }
        char *scratch = heddle_sockets_scratch(connection->sockets);
        ssize_t bytes = heddle_connection_receive(connection, scratch, HEDDLE_SCRATCH);
        if (bytes == -EAGAIN) {
            if (heddle_h2_send(server))
                request_input(connection);
            return;
        }
        if (bytes < 0) {
            heddle_sockets_close_connection(connection);
            return;
        }
        if (!(bytes == 0 ? end_input(server) : feed_session(server, scratch, (size_t)bytes)))
            return;
        if (bytes > 0 && heddle_h2_fed_enough(server->session))
            reads = READS;
    }
}

/* -- as a protocol ------------------------------------------------------------------------------------------------- */

static void take_turn(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    if (server->lingers) {
        discard_input(server);
        return;
    }
    if (connection->output.size && heddle_transport_has(&connection->transport, HEDDLE_HAS_ROOM)) {
        int result = flush_output(server);
        if (result != 0 && result != -EAGAIN) {
            heddle_sockets_close_connection(connection);
            return;
        }
    }
    read_and_send(server);
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
        heddle_link_remove(&connection->turn_link); /* others with much input don't delay its output */
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
    server->depth++;
    heddle_h2_expire(server->session, heddle_clock_coarse());
    heddle_h2_end_call(server);
}

/*
 * If the connection waits for its turn, it gets the turn first: bytes that the client has sent or taken meanwhile
 * count.
 */
static void handle_deadline(heddle_connection *connection)
{
    if (heddle_turns_end_wait(connection))
        judge_deadline(connection);
}

/* A tick begins. Tunnels may have written output, which is only in the session. */
static void handle_flushed(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    if (server->held_count) {
        server->depth++;
        server->session->now = heddle_clock_coarse();
        heddle_h2_release_heads(server);
        if (!heddle_h2_leave_session(server))
            return;
    }
    if (server->lingers || !(heddle_h2_first_tunnel(server) || heddle_h2_has_output(server->session) ||
                             !heddle_h2_is_open(server->session) || heddle_h2_may_queue(server)))
        return;
    if (!send_output(server, true))
        return;
    server->depth++;
    heddle_h2_tunnels_handle_flushed(server);
    heddle_last_use(heddle_h2_leave_session(server));
}

static bool is_idle(const heddle_connection *connection)
{
    const heddle_h2_server *server = heddle_h2_server_of(connection);
    /* GOAWAY concerns only later requests, so running ones don't delay it. */
    if (connection->sockets->draining)
        return true;
    if (heddle_engine_of_connection(connection)->draining && heddle_h2_tunnels_have_to_retire(server))
        return true;
    return server->session->stream_count == 0 && !connection->output.size &&
           !heddle_connection_buffered(connection);
}

static size_t count_waiting(const heddle_connection *connection)
{
    return connection->output.size + heddle_h2_server_of(connection)->session->queued;
}

static int64_t idle_since(const heddle_connection *connection)
{
    return heddle_h2_server_of(connection)->session->idle_since;
}

/* GOAWAY tells which requests were served, so the client sends a request again that was on its way. */
static void yield_room(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    if (!server->lingers) {
        heddle_h2_abort(server->session, heddle_clock_coarse(), HEDDLE_H2_NO_ERROR);
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
    /* An open tunnel, which may be silent for hours, has no carrier. */
    const heddle_h2_carrier *carrier = heddle_h2_first_carrier(heddle_h2_server_of(connection));
    while (carrier && waits_for_runner(carrier))
        carrier = heddle_h2_next_carrier(carrier);
    return carrier || connection->output.size;
}

/* INT64_MAX: a request of it waits for a runner. */
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

/* Sends GOAWAY; the connection closes when the client has had time to read it (RFC 9113, section 6.8). */
static void end_idle(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    if (server->lingers)
        return;
    server->depth++;
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
        heddle_h2_abort(server->session, heddle_clock_coarse(), HEDDLE_H2_NO_ERROR); /* without an error code */
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
 * GOAWAY with the largest stream: no request is rejected, and later ones are sent on another connection (RFC 9113,
 * 6.8).
 */
static const char farewell[] = {0, 0, 8, HEDDLE_H2_GOAWAY, 0, 0, 0, 0, 0, 0x7F, -1, -1, -1, 0, 0, 0, 0};

const heddle_protocol heddle_h2_protocol = {
    .name = "HTTP/2",
    .stays = true, /* HPACK's tables can't be handed off */
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
