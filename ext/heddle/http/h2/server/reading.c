/* Receives the bytes of a connection and feeds them to its session. */

#include "http/h2/server/server.h"

enum {
    READS = 4, /* the number of reads, of HEDDLE_SCRATCH bytes each, before other connections get their turn */
};

void heddle_h2_discard_input(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    uint64_t limit = heddle_engine_of_connection(connection)->linger_limit;
    ssize_t bytes = heddle_linger_read(connection, &server->lingered, limit, READS);
    if (bytes > 0)
        heddle_turns_wait(connection, HEDDLE_TURN_READS);
    else if (bytes != -EAGAIN)
        heddle_sockets_close_connection(connection);
}

/* Feeds bytes to the session, and keeps the bytes that the session does not accept yet. */
static HEDDLE_FATE feed_session(heddle_h2_server *server, const char *bytes, size_t size)
{
    heddle_connection *connection = server->connection;
    heddle_h2_enter_session(server);
    size_t used = heddle_h2_feed(server->session, heddle_clock_coarse(), bytes, size);
    if (!heddle_h2_leave_session(server))
        return HEDDLE_GONE;
    if (heddle_bytes_left(&connection->input)) {
        heddle_bytes_use(&connection->input, used);
    } else if (!heddle_bytes_add(&connection->input, bytes + used, size - used)) {
        heddle_sockets_close_connection(connection);
        return HEDDLE_GONE;
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

/*
 * Called when the client has ended its output. Ends the incomplete requests, which can't become complete any more, and
 * cancels the complete requests that use cancel_on_disconnect.
 */
static HEDDLE_FATE end_input(heddle_h2_server *server)
{
    heddle_h2_carrier *carrier;
    server->ended = true;
    heddle_h2_enter_session(server);
    heddle_h2_tunnels_end_input(server);
    while (server->connection && (carrier = find_incomplete(server))) {
        heddle_h2_reset(server->session, carrier->stream, HEDDLE_H2_CANCEL);
        if (!heddle_h2_is_open(server->session)) /* too many streams were reset, so the session has ended */
            return heddle_h2_leave_session(server);
        heddle_h2_end_carrier(carrier);
    }
    for (carrier = heddle_h2_first_carrier(server); carrier; carrier = heddle_h2_next_carrier(carrier))
        heddle_exchange_disconnected(carrier->exchange);
    return heddle_h2_leave_session(server);
}

void heddle_h2_read_and_send(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    for (unsigned reads = 0;;) {
        size_t buffered = heddle_bytes_left(&connection->input);
        if (buffered) {
            if (!feed_session(server, heddle_bytes_first(&connection->input), buffered) || !heddle_h2_send(server))
                return;
            if (heddle_bytes_left(&connection->input) == buffered && heddle_h2_has_output(server->session))
                return; /* reading continues when output was sent */
            if (heddle_bytes_left(&connection->input) && heddle_h2_fed_enough(server->session)) {
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
        char *scratch = connection->sockets->scratch;
        ssize_t bytes = heddle_connection_receive(connection, scratch, HEDDLE_SCRATCH);
        if (bytes == -EAGAIN) {
            if (heddle_h2_send(server))
                heddle_connection_want(connection, HEDDLE_READING);
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
