#include "http/h2_server.h"

#include "http/body_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    AT_ONCE = 65536,      /* bytes that wait for the kernel: more would not obey a priority that changes */
    MOST_FIELDS = 1024,
};

static heddle_h2_server *server_of(heddle_h2_session *session)
{
    return heddle_h2_session_owner(session);
}

/* -- carriers ------------------------------------------------------------------------------------------------------ */

static void wake(heddle_h2_carrier *carrier, heddle_direction direction)
{
    if (carrier->waits[direction])
        heddle_park_wake(&carrier->waits[direction]->park);
}

static void link_carrier(heddle_h2_server *server, heddle_h2_carrier *carrier)
{
    carrier->next = server->carriers;
    if (carrier->next)
        carrier->next->previous = carrier;
    server->carriers = carrier;
}

/* Its stream, if there is one, is the session's alone. */
static void free_carrier(heddle_h2_carrier *carrier)
{
    heddle_h2_server *server = carrier->server;
    for (int direction = 0; direction < 2; direction++) {
        if (!carrier->waits[direction])
            continue;
        if (server->connection->sockets->abandoned)
            continue;
        carrier->waits[direction]->carrier = NULL;
        heddle_park_wake(&carrier->waits[direction]->park);
    }
    server->body_memory -= carrier->body_memory;
    if (carrier->previous)
        carrier->previous->next = carrier->next;
    else
        server->carriers = carrier->next;
    if (carrier->next)
        carrier->next->previous = carrier->previous;
    heddle_due_remove(server->connection->sockets, &carrier->due);
    heddle_link_remove(&carrier->turn);
    if (server->queued == carrier)
        server->queued = NULL;
    carrier->exchange->carrier = NULL;
    free(carrier);
}

static void queue_next(heddle_h2_server *server);

void heddle_h2_drop_carrier(heddle_h2_carrier *carrier)
{
    heddle_h2_server *server = carrier->server;
    heddle_exchange *exchange = carrier->exchange;
    bool running = exchange->running;
    heddle_h2_release(server->session, carrier->stream);
    free_carrier(carrier);
    heddle_exchange_detach(exchange);
    if (running)
        heddle_connection_end_work(server->connection);
    queue_next(server);
}

/* -- requests ------------------------------------------------------------------------------------------------------ */

static void refuse_late(heddle_due *due)
{
    heddle_h2_carrier *carrier = HEDDLE_CONTAINER_OF(due, heddle_h2_carrier, due);
    if (!carrier->exchange->running)
        heddle_admission_reject_late(carrier->server->connection->sockets, &carrier->exchange->work);
}

/* Puts the next exchange of this connection into the ready list. Carriers may be refused, and gone, afterwards. */
static void queue_next(heddle_h2_server *server)
{
    heddle_link *link;
    server->depth++; /* nothing is sent, and so nothing closed, before the caller sends */
    while (server->connection && !server->queued && (link = heddle_link_first(&server->waiting))) {
        heddle_h2_carrier *carrier = HEDDLE_CONTAINER_OF(link, heddle_h2_carrier, turn);
        heddle_link_remove(link);
        server->queued = carrier; /* refused, it leaves this place to the next one */
        heddle_sockets_queue(server->connection->sockets, &carrier->exchange->work, false);
    }
    server->depth--;
}

void heddle_h2_queue(heddle_h2_carrier *carrier)
{
    heddle_h2_server *server = carrier->server;
    heddle_sockets *sockets = server->connection->sockets;
    if (carrier->gone || carrier->exchange->running || carrier == server->queued ||
        heddle_link_is_listed(&carrier->turn))
        return;
    int64_t timeout = sockets->admission.queue_timeout;
    carrier->due.passed = refuse_late;
    heddle_due_set(sockets, &carrier->due, timeout < 0 ? -1 : heddle_later(heddle_coarse_now(), timeout));
    heddle_link_push_last(&server->waiting, &carrier->turn);
    queue_next(server);
}

void heddle_h2_exchange_taken(heddle_exchange *exchange)
{
    heddle_h2_carrier *carrier = heddle_h2_carrier_of(exchange);
    heddle_h2_server *server = carrier->server;
    if (server->queued == carrier)
        server->queued = NULL;
    uint64_t refused = exchange->engine->refused;
    queue_next(server);
    if (exchange->engine->refused != refused)
        heddle_h2_send(server);
}

/* Of a streamed body that is short, the end is awaited. */
static bool begins_at_head(const heddle_h2_carrier *carrier)
{
    int64_t length = carrier->exchange->head.content_length;
    return carrier->streams && (length < 0 || length > (int64_t)carrier->exchange->engine->body_buffer);
}

static void on_request(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_h2_request *request)
{
    heddle_h2_server *server = server_of(session);
    heddle_connection *connection = server->connection;
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_h2_carrier *carrier = calloc(1, sizeof(*carrier));
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
    carrier->streams = !request->ended && heddle_body_is_streamed(engine, exchange);
    exchange->carrier = carrier;
    heddle_h2_set_owner(stream, carrier);
    link_carrier(server, carrier);
    if (request->head.expects_continue)
        heddle_h2_write_head(session, stream, 100, NULL, 0, false);
    carrier->at_head = begins_at_head(carrier);
    if (request->ended || carrier->at_head)
        heddle_h2_queue(carrier);
    else
        heddle_h2_begin_body(carrier);
}

static void on_refusal(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_refusal *refusal)
{
    heddle_h2_server *server = server_of(session);
    heddle_h2_send_refusal(server, stream, refusal, true, NULL);
    heddle_h2_release(session, stream);
    heddle_engine_count_refusal(server->connection, refusal);
}

static void on_data(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size)
{
    (void)session;
    heddle_h2_carrier *carrier = heddle_h2_owner(stream);
    wake(carrier, HEDDLE_READING);
    heddle_h2_take_data(carrier, bytes, size);
}

static void on_end(heddle_h2_session *session, heddle_h2_stream *stream)
{
    (void)session;
    heddle_h2_carrier *carrier = heddle_h2_owner(stream);
    wake(carrier, HEDDLE_READING);
    heddle_h2_end_body(carrier);
}

/* What runs goes on, and counts among the client's streams, until its application returns. */
static void give_up(heddle_h2_carrier *carrier)
{
    carrier->gone = true;
    if (!carrier->exchange->running && carrier->server->depth == 0) {
        heddle_h2_drop_carrier(carrier);
        return;
    }
    if (!carrier->exchange->running)
        carrier->server->swept = false;
    wake(carrier, HEDDLE_READING);
    wake(carrier, HEDDLE_WRITING);
}

void heddle_h2_cut_off(heddle_h2_carrier *carrier)
{
    heddle_h2_reset(carrier->server->session, carrier->stream, HEDDLE_H2_CANCEL);
    give_up(carrier);
}

static void on_reset(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error)
{
    (void)error;
    heddle_h2_carrier *carrier = heddle_h2_owner(stream);
    if (carrier)
        give_up(carrier);
    else
        heddle_h2_release(session, stream);
}

static void on_window(heddle_h2_session *session, heddle_h2_stream *stream)
{
    (void)session;
    wake(heddle_h2_owner(stream), HEDDLE_WRITING);
}

/* The exchange has let the stream go by then, or is about to. */
static void on_complete(heddle_h2_session *session, heddle_h2_stream *stream)
{
    (void)session;
    (void)stream;
}

static const heddle_h2_operations operations = {
    on_request, on_refusal, on_data, on_end, on_reset, on_window, on_complete,
};

/* -- answers ------------------------------------------------------------------------------------------------------- */

/* The head's lines as fields; the number of them, or -1: too many. */
static int split_lines(const char *at, const char *end, heddle_h2_field *fields)
{
    int count = 0;
    for (const char *line_end; at < end && *at != '\r'; at = line_end + 2) {
        line_end = memchr(at, '\r', (size_t)(end - at));
        const char *colon = memchr(at, ':', (size_t)(line_end - at));
        if (count == MOST_FIELDS)
            return -1;
        fields[count++] = (heddle_h2_field){at, colon + 1, (uint32_t)(colon - at), (uint32_t)(line_end - colon - 1)};
    }
    return count;
}

static heddle_h2_write_result send_head(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes,
                                        size_t size, bool end)
{
    heddle_h2_field fields[MOST_FIELDS];
    const char *line_end = memchr(bytes, '\r', size);
    int status = atoi(bytes + sizeof("HTTP/1.1"));
    int count = split_lines(line_end + 2, bytes + size, fields);
    if (count < 0)
        return HEDDLE_H2_MISPLACED;
    return heddle_h2_write_head(session, stream, status, fields, (size_t)count, end);
}

heddle_h2_write_result heddle_h2_send_head(heddle_h2_carrier *carrier, const char *bytes, size_t size, bool end)
{
    return send_head(carrier->server->session, carrier->stream, bytes, size, end);
}

void heddle_h2_send_refusal(heddle_h2_server *server, heddle_h2_stream *stream, const heddle_refusal *refusal,
                            bool content, const char *more_fields)
{
    char bytes[1024];
    heddle_buffer answer = {.bytes = bytes, .room = sizeof(bytes)};
    heddle_refusal_answer(refusal, &answer, heddle_engine_date(heddle_engine_of_connection(server->connection)),
                          HEDDLE_DATE_LINE, content, more_fields);
    const char *body = memmem(bytes, answer.used, "\r\n\r\n", 4);
    if (answer.used > answer.room || !body)
        return;
    body += 4;
    size_t size = (size_t)(bytes + answer.used - body);
    send_head(server->session, stream, bytes, (size_t)(body - bytes), size == 0);
    heddle_h2_write(server->session, stream, body, size);
    if (size > 0)
        heddle_h2_finish(server->session, stream, NULL, 0);
}

/* -- input and output ---------------------------------------------------------------------------------------------- */

static void free_server(heddle_h2_server *server)
{
    heddle_h2_session_free(server->session);
    free(server);
}

/* Callers up the stack may still hold those that were given up meanwhile. */
static void sweep(heddle_h2_server *server)
{
    while (server->connection && !server->swept) {
        heddle_h2_carrier *carrier = server->carriers;
        while (carrier && (!carrier->gone || carrier->exchange->running))
            carrier = carrier->next;
        if (carrier)
            heddle_h2_drop_carrier(carrier);
        server->swept = !carrier;
    }
}

bool heddle_h2_leave_session(heddle_h2_server *server)
{
    if (server->depth == 1)
        sweep(server);
    if (--server->depth > 0 || server->connection)
        return server->connection != NULL;
    free_server(server);
    return false;
}

/* Frames for the kernel, as many as may wait for it. false: there is no memory. */
static bool pull(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    while (connection->output.size < AT_ONCE && heddle_h2_has_output(server->session)) {
        /* By way of the scratch: room that a connection reserves for itself would stay with it while it is idle. */
        char *scratch = heddle_sockets_scratch(connection->sockets);
        size_t size = heddle_h2_pull(server->session, heddle_coarse_now(), scratch, HEDDLE_SCRATCH);
        if (size == 0)
            break;
        if (!heddle_output_add_bytes(&connection->output, scratch, size))
            return false;
    }
    return true;
}

static int64_t later_by(int64_t duration)
{
    return duration < 0 ? INT64_MAX : heddle_later(heddle_coarse_now(), duration);
}

/* Sends what the kernel takes; each time that it takes something, the client has its time anew. */
static int flush(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    int64_t timeout = heddle_engine_of_connection(connection)->write_timeout;
    size_t before = connection->output.size;
    int result = heddle_connection_flush(connection);
    if (result == 0)
        server->write_deadline = INT64_MAX;
    else if (connection->output.size < before || server->write_deadline == INT64_MAX)
        server->write_deadline = later_by(timeout);
    return result;
}

static void want_input(heddle_connection *connection)
{
    connection->sockets->set.operations->want(&connection->sockets->set, connection, HEDDLE_READING);
}

/*
 * The last frame says why the connection ends. A socket that is closed with unread input resets the connection, and the
 * reset can overtake that frame. false: the connection is closed.
 */
static bool end_output(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_transport *transport = &connection->transport;
    if (server->ended || engine->linger_timeout == 0 || transport->operations->shutdown(transport) < 0) {
        heddle_sockets_close_connection(connection);
        return false;
    }
    server->lingers = true;
    heddle_connection_drop_input(connection);
    heddle_connection_set_deadline(connection, heddle_later(heddle_coarse_now(), engine->linger_timeout));
    want_input(connection);
    return true;
}

static void linger(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    ssize_t bytes;
    do {
        bytes = heddle_connection_receive(connection, heddle_sockets_scratch(connection->sockets), HEDDLE_SCRATCH);
        server->lingered += bytes > 0 ? (uint64_t)bytes : 0;
    } while (bytes > 0 && server->lingered < heddle_engine_of_connection(connection)->linger_limit);
    if (bytes == -EAGAIN)
        want_input(connection);
    else
        heddle_sockets_close_connection(connection);
}

/* What comes next where nothing more can be done now; false: the connection is closed. */
static bool settle(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    if (server->lingers)
        return true;
    if (!connection->output.size && (heddle_h2_is_closing(server->session) || (server->ended && !server->carriers)))
        return end_output(server); /* what waits for the windows of a client that has ended waits for ever */
    int64_t deadline = heddle_h2_deadline(server->session);
    if (connection->output.size && server->write_deadline == INT64_MAX)
        server->write_deadline = later_by(heddle_engine_of_connection(connection)->write_timeout);
    if (connection->output.size && server->write_deadline < deadline)
        deadline = server->write_deadline;
    heddle_connection_set_deadline(connection, deadline == INT64_MAX ? -1 : deadline);
    return true;
}

bool heddle_h2_send(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    if (!connection)
        return false;
    if (server->depth > 0) /* the caller of the session does it */
        return true;
    if (!server->lingers && (connection->sockets->draining || heddle_engine_of_connection(connection)->draining))
        heddle_h2_drain(server->session, heddle_coarse_now());
    if (!connection->output.size) /* it left at the beginning of the tick */
        server->write_deadline = INT64_MAX;
    for (;;) {
        bool pulled = pull(server);
        if (pulled && connection->output.size < AT_ONCE && !heddle_h2_is_closing(server->session) && !server->ended) {
            if (connection->output.size) /* with what others have in this tick */
                heddle_connection_flush_later(connection);
            return settle(server);
        }
        int result = pulled ? flush(server) : -ENOMEM;
        if (result == -EAGAIN)
            return settle(server);
        if (result != 0) {
            heddle_sockets_close_connection(connection);
            return false;
        }
        if (!heddle_h2_has_output(server->session))
            return settle(server);
    }
}

/* Keeps what the session does not want yet. */
static bool feed(heddle_h2_server *server, const char *bytes, size_t size)
{
    heddle_connection *connection = server->connection;
    server->depth++;
    size_t used = heddle_h2_feed(server->session, heddle_coarse_now(), bytes, size);
    if (!heddle_h2_leave_session(server))
        return false;
    bool buffered = heddle_connection_buffered(connection) > 0;
    if (buffered) {
        heddle_connection_use_input(connection, used);
    } else if (used < size) {
        char *room = heddle_connection_room(connection, size - used);
        if (!room) {
            heddle_sockets_close_connection(connection);
            return false;
        }
        memcpy(room, bytes + used, size - used);
        connection->input_end += (uint32_t)(size - used);
    }
    return true;
}

static heddle_h2_carrier *find_incomplete(const heddle_h2_server *server)
{
    heddle_h2_carrier *carrier = server->carriers;
    while (carrier && (carrier->received || carrier->gone))
        carrier = carrier->next;
    return carrier;
}

/* The client sends nothing more: requests that are not complete never will be. */
static void end_input(heddle_h2_server *server)
{
    heddle_h2_carrier *carrier;
    server->ended = true;
    while ((carrier = find_incomplete(server))) {
        heddle_h2_reset(server->session, carrier->stream, HEDDLE_H2_CANCEL);
        if (heddle_h2_is_closing(server->session)) /* that was one too many, and all have been given up */
            return;
        give_up(carrier);
    }
}

/* Reads until nothing is there, or the session wants no more before its output has left. */
static void read_on(heddle_h2_server *server)
{
    heddle_connection *connection = server->connection;
    for (;;) {
        size_t buffered = heddle_connection_buffered(connection);
        if (buffered) {
            if (!feed(server, connection->input + connection->input_start, buffered) || !heddle_h2_send(server))
                return;
            if (heddle_connection_buffered(connection) == buffered && heddle_h2_has_output(server->session))
                return; /* it goes on when there is room for output */
            continue;
        }
        if (server->ended || heddle_h2_is_closing(server->session)) {
            if (!server->lingers)
                heddle_h2_send(server);
            return;
        }
        char *scratch = heddle_sockets_scratch(connection->sockets);
        ssize_t bytes = heddle_connection_receive(connection, scratch, HEDDLE_SCRATCH);
        if (bytes == -EAGAIN) {
            if (heddle_h2_send(server))
                want_input(connection);
            return;
        }
        if (bytes < 0) {
            heddle_sockets_close_connection(connection);
            return;
        }
        if (bytes == 0)
            end_input(server);
        else if (!feed(server, scratch, (size_t)bytes))
            return;
    }
}

/* -- as a protocol ------------------------------------------------------------------------------------------------- */

static void begin(heddle_connection *connection)
{
    read_on(heddle_h2_server_of(connection));
}

static void handle_event(heddle_connection *connection, uint8_t ready)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    if ((ready & (HEDDLE_BROKEN | HEDDLE_HUNG_UP)) || connection->error) {
        heddle_sockets_close_connection(connection);
        return;
    }
    if (server->lingers) {
        linger(server);
        return;
    }
    if ((ready & HEDDLE_HAS_ROOM) && connection->output.size) {
        int result = flush(server);
        if (result != 0 && result != -EAGAIN) {
            heddle_sockets_close_connection(connection);
            return;
        }
    }
    read_on(server);
}

static void handle_deadline(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    if (server->lingers) {
        heddle_sockets_close_connection(connection);
        return;
    }
    if (connection->output.size && server->write_deadline <= heddle_coarse_now()) {
        heddle_transport_will_reset(&connection->transport);
        heddle_sockets_close_connection(connection);
        return;
    }
    server->depth++;
    heddle_h2_expire(server->session, heddle_coarse_now());
    if (heddle_h2_leave_session(server))
        heddle_h2_send(server);
}

static bool is_idle(const heddle_connection *connection)
{
    const heddle_h2_server *server = heddle_h2_server_of(connection);
    return heddle_h2_stream_count(server->session) == 0 && !connection->output.size &&
           !heddle_connection_buffered(connection);
}

/* GOAWAY; the connection ends when the client has had the time to see it (RFC 9113, section 6.8). */
static void end_idle(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    if (server->lingers)
        return;
    heddle_h2_drain(server->session, heddle_coarse_now());
    heddle_h2_send(server);
}

static int collect_input(const heddle_connection *connection, struct iovec *pieces)
{
    (void)connection;
    (void)pieces;
    return -1;
}

static void release(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    while (server->carriers) {
        heddle_exchange *exchange = server->carriers->exchange;
        heddle_h2_set_owner(server->carriers->stream, NULL);
        free_carrier(server->carriers);
        heddle_exchange_detach(exchange);
    }
    server->connection = NULL;
    if (server->depth == 0)
        free_server(server);
    else
        heddle_h2_abort(server->session, heddle_coarse_now(), HEDDLE_H2_NO_ERROR); /* it asks for nothing more */
}

static void abandon(heddle_connection *connection)
{
    heddle_h2_server *server = heddle_h2_server_of(connection);
    for (heddle_h2_carrier *carrier = server->carriers; carrier; carrier = carrier->next)
        carrier->exchange->work.connection = NULL;
}

const heddle_protocol heddle_h2_protocol = {
    .name = "HTTP/2",
    .stays = true, /* what HPACK has learned can't go to another process */
    .begin = begin,
    .handle_event = handle_event,
    .handle_deadline = handle_deadline,
    .is_idle = is_idle,
    .end_idle = end_idle,
    .collect_input = collect_input,
    .release = release,
    .abandon = abandon,
};

/* The limits of the configuration, where HTTP/1.1 has them, too. */
static void apply_limits(heddle_engine *engine)
{
    heddle_h2_limits *limits = &engine->h2_limits;
    *limits = heddle_h2_default_limits();
    limits->header_limit = (uint32_t)(engine->limits.header < 1 << 20 ? engine->limits.header : 1 << 20);
    limits->header_count = engine->limits.header_count;
    limits->body_limit = engine->limits.body;
    limits->keep_underscores = engine->limits.keep_underscores;
    limits->write_timeout = engine->write_timeout;
    limits->head_timeout = engine->head_timeout;
    limits->idle_timeout = engine->idle_timeout;
    limits->streams_a_feed = UINT32_MAX; /* runners give others their turn */
}

void heddle_h2_begin(heddle_connection *connection)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_h2_server *server = calloc(1, sizeof(*server));
    if (engine->h2_limits.max_streams == 0)
        apply_limits(engine);
    if (server) {
        server->connection = connection;
        server->write_deadline = INT64_MAX;
        heddle_link_init_head(&server->waiting);
        server->session = heddle_h2_session_new(&operations, &engine->h2_limits, &engine->h2_workspace, server,
                                                heddle_coarse_now());
    }
    if (!server || !server->session) {
        free(server);
        heddle_sockets_close_connection(connection);
        return;
    }
    heddle_connection_start(connection, &heddle_h2_protocol, server);
}
