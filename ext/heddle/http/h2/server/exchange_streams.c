/*
 * The exchanges (requests with their responses) of an HTTP/2 connection: handles the session's calls for their streams,
 * and queues exchanges for runners (the pooled fibers that call the application).
 */

#include "http/body/files.h"
#include "http/h2/server/server.h"
#include "selector/assert.h"

/* -- memory -------------------------------------------------------------------------------------------------------- */

enum {
    /* bytes: the share of a connection is CONNECTION_SHARE + body_buffer, as in Heddle::Server::ConnectionLimit */
    CONNECTION_SHARE = 114688,
};

void heddle_h2_count_memory(heddle_h2_server *server, ssize_t change)
{
    heddle_engine *engine = heddle_engine_of_connection(server->connection);
    size_t share = CONNECTION_SHARE + engine->body_buffer;
    server->held += (size_t)change;
    size_t drawn = server->held > share ? server->held - share : 0;
    engine->h2->drawn += drawn - server->drawn;
    server->drawn = drawn;
}

static bool draws_more_than(const heddle_h2_server *server, uint64_t limit)
{
    return server->drawn > 0 && heddle_engine_of_connection(server->connection)->h2->drawn > limit;
}

/* Bodies leave a quarter of the memory to heads, so that large bodies alone never cause a refused request. */
bool heddle_h2_holds_too_much_data(const heddle_h2_server *server)
{
    return draws_more_than(server, heddle_engine_of_connection(server->connection)->h2->memory / 4 * 3);
}

/* -- carriers ------------------------------------------------------------------------------------------------------ */

static void list_waiting(heddle_h2_carrier *carrier)
{
    heddle_h2_server *server = carrier->server;
    heddle_link_push_last(&server->waiting, &carrier->turn);
    heddle_connection_set_further(server->connection, ++server->waiting_count);
}

static void unlist_waiting(heddle_h2_carrier *carrier)
{
    heddle_h2_server *server = carrier->server;
    if (!heddle_link_is_listed(&carrier->turn))
        return;
    heddle_link_remove(&carrier->turn);
    heddle_connection_set_further(server->connection, --server->waiting_count);
}

void heddle_h2_free_carrier(heddle_h2_carrier *carrier)
{
    heddle_h2_server *server = carrier->server;
    for (int direction = 0; direction < 2 && !server->connection->sockets->abandoned; direction++)
        heddle_wait_drop(&carrier->waits[direction]);
    heddle_h2_drop_head(carrier);
    heddle_h2_set_blocked(carrier, false);
    heddle_h2_count_body(carrier, -(ssize_t)carrier->body_memory);
    heddle_h2_count_memory(server, -(ssize_t)carrier->head_memory);
    heddle_link_remove(&carrier->link);
    heddle_due_remove(server->connection->sockets, &carrier->due);
    unlist_waiting(carrier);
    if (server->queued == carrier)
        server->queued = NULL;
    carrier->exchange->carrier = NULL;
    free(carrier);
}

void heddle_h2_drop_carrier(heddle_h2_carrier *carrier)
{
    heddle_h2_server *server = carrier->server;
    heddle_exchange *exchange = carrier->exchange;
    bool running = heddle_exchange_is_running(exchange);
    heddle_h2_release(server->session, carrier->stream);
    heddle_h2_free_carrier(carrier);
    heddle_exchange_leave_session(exchange);
    if (running)
        heddle_connection_end_work(server->connection);
}

void heddle_h2_transfer_stream(heddle_h2_carrier *carrier)
{
    heddle_h2_server *server = carrier->server;
    heddle_exchange *exchange = carrier->exchange;
    heddle_h2_free_carrier(carrier);
    heddle_exchange_leave_session(exchange);
    heddle_connection_end_work(server->connection);
}

/* -- requests ------------------------------------------------------------------------------------------------------ */

static void reject_late(heddle_due *due)
{
    heddle_h2_carrier *carrier = HEDDLE_CONTAINER_OF(due, heddle_h2_carrier, due);
    if (!heddle_exchange_is_running(carrier->exchange))
        heddle_admission_reject_late(carrier->server->connection->sockets, &carrier->exchange->work);
}

/*
 * Must this connection's requests wait? They must in two cases:
 *
 * - The connection has strings that are sent without a copy (`lent`, see response.c), and the lent strings of all
 *   connections exceed http2_memory.
 * - A fiber of the connection waits until the client has made room, and on all connections together, more than
 *   heddle_body_files_most() fibers wait for that. Each of these fibers may hold a file open, and one connection may
 *   have as many of these fibers as the option http2_streams allows.
 */
static bool is_held_back(const heddle_h2_server *server)
{
    const struct heddle_h2_shared *all = heddle_engine_of_connection(server->connection)->h2;
    return (server->lent > 0 && all->lent > all->memory) ||
           (server->blocked_count > 0 && all->blocked_count > heddle_body_files_most());
}

bool heddle_h2_may_queue(const heddle_h2_server *server)
{
    return server->waiting_count > 0 && !server->queued && !is_held_back(server);
}

heddle_fate heddle_h2_queue_next(heddle_h2_server *server)
{
    heddle_link *link;
    /*
     * Admission may reject an exchange, and the callback that logs the rejection may close the connection. Until
     * heddle_h2_leave_session, `server` is not freed.
     */
    heddle_h2_enter_session(server);
    while (server->connection && !server->queued && !is_held_back(server) &&
           (link = heddle_link_first(&server->waiting))) {
        heddle_h2_carrier *carrier = HEDDLE_CONTAINER_OF(link, heddle_h2_carrier, turn);
        unlist_waiting(carrier);
        server->queued = carrier; /* set first: if admission rejects the exchange, `queued` becomes NULL again */
        heddle_sockets_queue_in_turn(server->connection->sockets, &carrier->exchange->work);
    }
    return heddle_h2_leave_session(server);
}

void heddle_h2_queue(heddle_h2_carrier *carrier)
{
    heddle_h2_server *server = carrier->server;
    heddle_sockets *sockets = server->connection->sockets;
    if (carrier->gone || heddle_exchange_is_running(carrier->exchange) || carrier == server->queued ||
        heddle_link_is_listed(&carrier->turn) || carrier->exchange->work.list)
        return;
    int64_t length = carrier->exchange->head.content_length;
    if (length != HEDDLE_NO_BODY && length != 0)
        carrier->exchange->queued = heddle_clock_now();
    carrier->due.passed = reject_late;
    heddle_admission_limit_probe(sockets, &carrier->exchange->work);
    heddle_due_set(sockets, &carrier->due,
                   heddle_admission_deadline(sockets, &carrier->exchange->work, carrier->exchange->queued));
    if (carrier->exchange->work.probe) { /* a health check does not wait until the queued exchange has begun */
        heddle_h2_enter_session(server);
        heddle_sockets_queue(sockets, &carrier->exchange->work, false);
        heddle_last_use(heddle_h2_leave_session(server));
        return;
    }
    list_waiting(carrier);
    heddle_last_use(heddle_h2_queue_next(server));
}

void heddle_h2_note_taken(heddle_exchange *exchange)
{
    heddle_h2_carrier *carrier = heddle_h2_carrier_of(exchange);
    heddle_h2_server *server = carrier->server;
    heddle_h2_count_memory(server, -(ssize_t)carrier->head_memory);
    carrier->head_memory = 0;
    if (server->queued == carrier)
        server->queued = NULL;
    uint64_t rejected = exchange->engine->rejected;
    if (heddle_h2_queue_next(server) && exchange->engine->rejected != rejected)
        heddle_last_use(heddle_h2_send(server));
}

/*
 * Is the application called as soon as the head is complete? Only if the body is streamed to it. Even then a short body
 * is received completely first, unless the client waits for 100 Continue.
 */
static bool begins_at_head(const heddle_h2_carrier *carrier)
{
    int64_t length = carrier->exchange->head.content_length, most = (int64_t)carrier->exchange->engine->body_buffer;
    return carrier->streams_body && (carrier->expects || length < 0 || length > most);
}

static void on_rejection(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_rejection *rejection,
                         heddle_method method)
{
    heddle_h2_server *server = session->owner;
    heddle_h2_send_rejection(server, stream, rejection, method != HEDDLE_HEAD, NULL);
    heddle_h2_release(session, stream);
    heddle_last_use(heddle_engine_count_rejection(server->connection, rejection));
}

static void on_request(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_h2_request *request)
{
    heddle_h2_server *server = session->owner;
    heddle_connection *connection = server->connection;
    heddle_engine *engine = heddle_engine_of_connection(connection);
    bool tunnels = request->head.protocol.size > 0; /* the stream becomes a tunnel, see tunnel.h */
    if (request->head.method_id == HEDDLE_CONNECT && !tunnels) {
        heddle_rejection rejection;
        heddle_reject_connect(&rejection);
        on_rejection(session, stream, &rejection, HEDDLE_CONNECT);
        return;
    }
    /* a connection that exceeds its share gets no carrier while no shared memory is left: its requests are refused */
    heddle_h2_carrier *carrier = draws_more_than(server, engine->h2->memory) ? NULL : calloc(1, sizeof(*carrier));
    heddle_exchange *exchange =
        carrier ? heddle_exchange_new(engine, &heddle_h2_exchange_operations, connection, &request->head,
                                      request->bytes)
                : NULL;
    if (!exchange) {
        free(carrier);
        heddle_h2_reset(session, stream, HEDDLE_H2_REFUSED_STREAM);
        heddle_h2_release(session, stream);
        return;
    }
    engine->requests++;
    carrier->server = server;
    carrier->stream = stream;
    carrier->exchange = exchange;
    carrier->received = request->ended;
    carrier->due.at = -1;
    carrier->streams_body =
        !request->ended && (tunnels || heddle_path_option_applies(&engine->stream_bodies, exchange));
    exchange->carrier = carrier;
    carrier->head_memory = sizeof(*carrier) + sizeof(*exchange) + request->size;
    heddle_h2_count_memory(server, (ssize_t)carrier->head_memory);
    stream->owner = carrier;
    heddle_link_push_first(&server->carriers, &carrier->link);
    carrier->expects = carrier->streams_body && request->head.expects_continue;
    if (request->head.expects_continue && !carrier->expects)
        heddle_h2_write_head(session, stream, 100, NULL, 0, false);
    carrier->at_head = begins_at_head(carrier);
    if (request->ended || carrier->at_head)
        heddle_h2_queue(carrier);
    else
        heddle_h2_begin_body(carrier);
}

static void on_data(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size)
{
    heddle_h2_tunnel *tunnel = heddle_h2_tunnel_of(stream);
    if (tunnel) {
        /* the tunnel may overwrite the bytes, because the session does not read them again */
        tunnel->operations->take_data(tunnel, (char *)bytes, size);
        return;
    }
    heddle_h2_carrier *carrier = stream->owner;
    heddle_wait_wake(carrier->waits[HEDDLE_READING]);
    heddle_h2_take_data(carrier, bytes, size);
}

static void on_end(heddle_h2_session *session, heddle_h2_stream *stream)
{
    heddle_h2_tunnel *tunnel = heddle_h2_tunnel_of(stream);
    if (tunnel) {
        tunnel->operations->end_input(tunnel);
        return;
    }
    heddle_h2_carrier *carrier = stream->owner;
    heddle_wait_wake(carrier->waits[HEDDLE_READING]);
    heddle_h2_end_body(carrier);
}

void heddle_h2_end_carrier(heddle_h2_carrier *carrier)
{
    carrier->gone = true;
    /* If no runner uses the exchange, heddle_h2_leave_session frees the carrier at the end of the outermost call. */
    if (!heddle_exchange_is_running(carrier->exchange)) {
        HEDDLE_ASSERT(carrier->server->depth > 0);
        carrier->server->swept = false;
    }
    heddle_wait_wake(carrier->waits[HEDDLE_READING]);
    heddle_wait_wake(carrier->waits[HEDDLE_WRITING]);
    heddle_exchange_disconnected(carrier->exchange);
}

void heddle_h2_reset_exchange(heddle_h2_carrier *carrier)
{
    heddle_h2_reset(carrier->server->session, carrier->stream, HEDDLE_H2_CANCEL);
    heddle_h2_end_carrier(carrier);
}

static void on_reset(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error)
{
    heddle_h2_tunnel *tunnel = heddle_h2_tunnel_of(stream);
    heddle_h2_carrier *carrier = stream->owner;
    if (tunnel && !tunnel->closing)
        tunnel->operations->handle_reset(tunnel);
    else if (carrier && !tunnel)
        heddle_h2_end_carrier(carrier);
    else if (!tunnel)
        heddle_h2_release(session, stream);
}

static void on_window(heddle_h2_session *session, heddle_h2_stream *stream)
{
    heddle_h2_tunnel *tunnel = heddle_h2_tunnel_of(stream);
    if (tunnel) { /* handled in the next tick, because the session's output is being pulled now */
        tunnel->flushed_due = true;
        heddle_connection_flush_later(tunnel->server->connection);
        return;
    }
    heddle_h2_carrier *carrier = stream->owner;
    heddle_wait_wake(carrier->waits[HEDDLE_WRITING]);
}

/* Counts the rejection, unless the application has got the request or the request was rejected before. */
static void on_malformed(heddle_h2_session *session, const heddle_h2_stream *stream, heddle_h2_error error)
{
    heddle_h2_server *server = session->owner;
    if (stream && (!stream->owner || heddle_h2_tunnel_of(stream) ||
                   heddle_exchange_is_running(((heddle_h2_carrier *)stream->owner)->exchange)))
        return;
    heddle_rejection rejection;
    heddle_reject(&rejection, error == HEDDLE_H2_PROTOCOL_ERROR ? HEDDLE_BAD_REQUEST : HEDDLE_HEAD_TOO_LARGE, "%s",
                  session->reason);
    heddle_last_use(heddle_engine_count_rejection(server->connection, &rejection));
}

const heddle_h2_operations heddle_h2_carrier_operations = {
    on_request, on_rejection, on_data, on_end, on_reset, on_window,
    .on_malformed = on_malformed,
};
