/* Handles events and time limits of HTTP/1.1 connections, and ends their exchanges (requests with their responses). */

#include "http/h1/server/states.h"

#include "http/body_deadline.h"
#include "http/exchange_ruby.h"
#include "http/request_label.h"

#include <sys/socket.h>

/* For a turn in which a fiber sends a part of a file by itself, this many ns of sending time are counted. */
static const int64_t FILE_PART = 100000;

static void send_more(heddle_connection *connection)
{
    size_t before = connection->output.size;
    int result = heddle_connection_flush(connection);
    if (result == 0)
        heddle_h1_proceed(connection);
    else if (result != -EAGAIN)
        heddle_sockets_close_idle(connection);
    else if (connection->output.size < before)
        heddle_connection_set_time_limit(connection, heddle_engine_of_connection(connection)->write_timeout);
}

static void reject_late_head(heddle_connection *connection)
{
    heddle_rejection rejection;
    heddle_reject(&rejection, 408, "the request head was not complete after %g s",
                  (double)heddle_engine_of_connection(connection)->head_timeout / 1e9);
    heddle_h1_reject(connection, &rejection, NULL);
}

/* -- events ------------------------------------------------------------------------------------------------------ */

/* Called while the next request is received: sends earlier responses that are queued. Returns false if that fails. */
static bool flush_earlier_output(heddle_connection *connection)
{
    if (!connection->output.size || !heddle_transport_has(&connection->transport, HEDDLE_HAS_ROOM))
        return true;
    int result = heddle_connection_flush(connection);
    return result == 0 || result == -EAGAIN;
}

/*
 * Has the client probably left? This is not certain: to the server, a client that has only ended its side of the
 * connection looks like one that has closed its socket.
 */
static bool has_client_left(const heddle_connection *connection)
{
    char byte;
    if (heddle_transport_has(&connection->transport, HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP | HEDDLE_BROKEN))
        return true;
    return connection->sockets->set.operations->hides_input_end &&
           recv(connection->transport.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

bool heddle_h1_watch_disconnect(heddle_exchange *exchange)
{
    heddle_connection *connection = exchange->work.connection;
    heddle_connection_want(connection, HEDDLE_READING);
    return has_client_left(connection);
}

/*
 * If the request still waits for a runner, puts the connection at rest (net/owner.h): the loop has acquired it only for
 * this event.
 */
static void release_queued(heddle_connection *connection)
{
    if (heddle_rounds_have_listed(connection->sockets, &heddle_h1_of(connection)->exchange->work))
        heddle_connection_release(connection);
}

/* Handles an event while a request waits for a runner, or while a runner serves it. */
static void continue_exchange(heddle_connection *connection, uint8_t ready)
{
    heddle_exchange *exchange = heddle_h1_of(connection)->exchange;
    if (exchange->handle && exchange->handle->on_disconnect && has_client_left(connection))
        heddle_exchange_disconnected(exchange);
    bool sends = heddle_transport_has(&connection->transport, HEDDLE_HAS_ROOM) &&
                 (connection->output.size || connection->waits[HEDDLE_WRITING]);
    heddle_connection_wake(connection, sends ? ready & ~HEDDLE_HAS_ROOM : ready);
    release_queued(connection);
    if (sends)
        heddle_turns_take(connection, HEDDLE_TURN_SENDS);
}

static void handle_event(heddle_connection *connection, uint8_t ready)
{
    heddle_h1_stage stage = heddle_h1_of(connection)->stage;
    bool queued = stage == HEDDLE_H1_READY && heddle_h1_of(connection)->exchange->work.list;
    if ((stage != HEDDLE_H1_READY && (ready & HEDDLE_BROKEN)) ||
        (queued && (ready & (HEDDLE_BROKEN | HEDDLE_HUNG_UP)))) {
        heddle_sockets_close_idle(connection);
        return;
    }
    switch (stage) {
    case HEDDLE_H1_IDLE:
    case HEDDLE_H1_HEAD:
    case HEDDLE_H1_BODY:
    case HEDDLE_H1_DISCARD:
        if (flush_earlier_output(connection))
            heddle_h1_read_input(connection);
        else
            heddle_sockets_close_idle(connection);
        break;
    case HEDDLE_H1_SENDING:
        if (heddle_transport_has(&connection->transport, HEDDLE_HUNG_UP))
            heddle_sockets_close_idle(connection);
        else if (heddle_transport_has(&connection->transport, HEDDLE_HAS_ROOM))
            heddle_turns_take(connection, HEDDLE_TURN_SENDS);
        break;
    case HEDDLE_H1_LINGER:
        heddle_h1_linger(connection);
        break;
    case HEDDLE_H1_SPOOLING: /* the socket is read again when the part of the body is written to its file */
        if (!flush_earlier_output(connection))
            heddle_sockets_close_idle(connection);
        break;
    case HEDDLE_H1_READY:
        continue_exchange(connection, ready);
        break;
    }
}

/* Called when it is the connection's turn to send. Its output may have been discarded since the turn was queued. */
static void take_turn(heddle_connection *connection)
{
    if (!heddle_connection_acquire(connection))
        return;
    switch ((heddle_h1_stage)heddle_h1_of(connection)->stage) {
    case HEDDLE_H1_SENDING:
        send_more(connection);
        break;
    case HEDDLE_H1_READY: /* if the connection has failed, the exception is raised in the fiber that writes */
        if (!connection->output.size)
            connection->sockets->turns.queues[HEDDLE_TURN_SENDS].used += FILE_PART;
        heddle_connection_flush(connection);
        heddle_connection_wake(connection, HEDDLE_HAS_ROOM);
        release_queued(connection);
        break;
    default: /* the rest of an earlier response is sent while the next request is received */
        handle_event(connection, HEDDLE_HAS_ROOM);
    }
}

static void handle_deadline(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    switch ((heddle_h1_stage)h1->stage) {
    case HEDDLE_H1_HEAD:
        if (heddle_h1_has_begun(connection))
            reject_late_head(connection);
        else
            heddle_sockets_close_idle(connection);
        break;
    case HEDDLE_H1_BODY:
        /* A streamed chunked body that pauses, but is not too slow overall: the application may read it from now on. */
        if (h1->streams_body && h1->left < 0 && h1->body_deadline > heddle_clock_coarse())
            heddle_h1_queue_request(connection, false);
        else
            heddle_body_reject_slow(h1->exchange);
        break;
    case HEDDLE_H1_READY:
        if (h1->exchange->work.list)
            heddle_admission_reject_late(connection->sockets, &h1->exchange->work);
        break;
    case HEDDLE_H1_DISCARD:
        heddle_h1_send_rest(connection, HEDDLE_H1_THEN_LINGER);
        break;
    case HEDDLE_H1_SPOOLING: /* no time limit: the disk is slow, not the client */
        break;
    case HEDDLE_H1_SENDING:
        if (heddle_link_is_listed(&connection->turn_link)) { /* the output waits for its turn, not for the client */
            heddle_connection_set_time_limit(connection, heddle_engine_of_connection(connection)->write_timeout);
            break;
        }
        /* a reset also discards the part of the response that the kernel has not sent yet */
        heddle_transport_will_reset(&connection->transport);
        heddle_sockets_close_idle(connection);
        break;
    default:
        heddle_sockets_close_idle(connection);
    }
}

static void begin_next_request(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (heddle_h1_queue_pipelined(connection))
        return;
    if (h1->stage == HEDDLE_H1_BODY || h1->stage == HEDDLE_H1_SPOOLING) {
        if (connection->output.size) /* earlier responses must not wait for the body of a pipelined request */
            heddle_connection_flush_later(connection);
        if (h1->stage == HEDDLE_H1_BODY)
            heddle_h1_read_input(connection);
        return;
    }
    heddle_h1_send_rest(connection, HEDDLE_H1_THEN_IDLE);
}

/*
 * Has the client sent input that will never be parsed? The event for the input may not have arrived yet, so this
 * function tries to receive, and discards the bytes.
 */
static bool discard_unread_input(heddle_connection *connection)
{
    if (!heddle_h1_of(connection)->received || heddle_bytes_left(&connection->input))
        return true;
    heddle_transport_note(&connection->transport, HEDDLE_HAS_INPUT);
    return heddle_connection_receive(connection, connection->sockets->scratch, HEDDLE_SCRATCH) > 0;
}

/* Called when the whole response is sent or queued. `reusable`: the connection stays open. */
static void finish_exchange(heddle_connection *connection, bool reusable)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_h1_enter(h1, HEDDLE_H1_IDLE);
    if (!reusable) {
        /* a client that expects the connection to stay open may be sending its next request already */
        bool lingers = !h1->ended && (h1->persists || discard_unread_input(connection));
        heddle_h1_send_rest(connection, lingers ? HEDDLE_H1_THEN_LINGER : HEDDLE_H1_THEN_CLOSE);
    } else if (h1->received) {
        begin_next_request(connection);
    } else {
        heddle_connection_flush_later(connection);
        h1->pipelined = 0;
        heddle_h1_enter(h1, HEDDLE_H1_DISCARD);
        h1->body_heard = heddle_clock_coarse(); /* the client may have waited for the response */
        h1->body_deadline = heddle_body_first_deadline(heddle_engine_of_connection(connection), h1->body_heard);
        h1->taken = 0;
        heddle_h1_parse_buffered(connection);
    }
}

static bool is_idle(const heddle_connection *connection)
{
    return heddle_h1_of(connection)->stage == HEDDLE_H1_IDLE && !connection->output.size &&
           !heddle_bytes_left(&connection->input);
}

static int64_t idle_since(const heddle_connection *connection)
{
    return heddle_connection_limited_since(connection, heddle_h1_idle_timeout(connection));
}

/*
 * Returns when the client last sent or read something. Returns INT64_MAX in the stages in which the connection must not
 * be closed early (net/protocol.h).
 */
static int64_t heard_at(const heddle_connection *connection)
{
    const heddle_engine *engine = heddle_engine_of_connection(connection);
    const heddle_h1 *h1 = heddle_h1_of(connection);
    if (h1->stage == HEDDLE_H1_BODY || (h1->stage == HEDDLE_H1_DISCARD && !connection->output.size))
        return h1->body_heard;
    int64_t timeout = h1->stage == HEDDLE_H1_HEAD ? engine->head_timeout : engine->write_timeout;
    bool counts = h1->stage == HEDDLE_H1_HEAD || h1->stage == HEDDLE_H1_SENDING;
    return counts ? heddle_connection_limited_since(connection, timeout) : INT64_MAX;
}

static bool is_in_transit(const heddle_connection *connection)
{
    heddle_h1_stage stage = heddle_h1_of(connection)->stage;
    return stage == HEDDLE_H1_IDLE ? !is_idle(connection) : stage != HEDDLE_H1_READY;
}

/*
 * Collects the bytes that another process must parse again after a handoff. Returns the number of pieces, or -1 if this
 * connection can't be handed off.
 */
static int collect_input(const heddle_connection *connection, struct iovec *pieces)
{
    const heddle_h1 *h1 = heddle_h1_of(connection);
    const heddle_exchange *exchange = h1->exchange;
    int count = 0;
    if (h1->stage == HEDDLE_H1_DISCARD || h1->stage == HEDDLE_H1_SENDING || h1->stage == HEDDLE_H1_LINGER)
        return -1; /* the input belongs to a request to which this process has responded */
    if (exchange) {
        if (exchange->spool)
            return -1; /* the body's file belongs to this process */
        if (exchange->head.content_length == HEDDLE_CHUNKED_BODY && !h1->expects && h1->taken)
            return -1; /* the received chunks are decoded, so they can't be parsed again */
        pieces[count++] = (struct iovec){.iov_base = exchange->bytes, .iov_len = exchange->head.size};
        if (exchange->body_size)
            pieces[count++] = (struct iovec){.iov_base = RSTRING_PTR(exchange->body), .iov_len = exchange->body_size};
    }
    return count + heddle_connection_input_piece(connection, pieces + count);
}

enum { LINE = 1024 }; /* bytes of a request line that are examined */

static uint32_t label_of(const heddle_connection *connection)
{
    const heddle_h1 *h1 = heddle_h1_of(connection);
    if (h1->exchange)
        return heddle_exchange_work.label(&h1->exchange->work);
    if (h1->stage != HEDDLE_H1_IDLE && h1->stage != HEDDLE_H1_HEAD)
        return 0;
    char line[LINE];
    size_t buffered = heddle_bytes_left(&connection->input), size = buffered < LINE ? buffered : LINE;
    if (size)
        memcpy(line, heddle_bytes_first(&connection->input), size);
    ssize_t more = size < LINE ? recv(connection->transport.fd, line + size, LINE - size, MSG_PEEK | MSG_DONTWAIT) : 0;
    return heddle_request_label_hash_line(line, size + (more > 0 ? (size_t)more : 0));
}

static void release_session(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (h1->exchange)
        heddle_exchange_leave_session(h1->exchange);
    free(h1);
}

static void abandon_session(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (h1->exchange)
        h1->exchange->work.connection = NULL;
}

/*
 * Was the whole body received, or can its rest be received and discarded? The rest can't be discarded if more than
 * body_buffer bytes are left according to Content-Length, if a chunk was malformed, if the client waits for 100
 * Continue, or if body_buffer is 0.
 */
static bool may_discard_body(const heddle_engine *engine, const heddle_h1 *h1)
{
    return h1->received || (!h1->expects && !h1->chunked.failed && h1->left <= (int64_t)engine->body_buffer &&
                            engine->body_buffer > 0);
}

bool heddle_h1_may_persist(const heddle_connection *connection)
{
    const heddle_engine *engine = heddle_engine_of_connection(connection);
    /* a client that pipelines would lose the requests that it has already sent */
    bool makes_room = connection->sockets->room_wanted && !heddle_bytes_left(&connection->input);
    return !engine->draining && !connection->sockets->leaving && !makes_room &&
           may_discard_body(engine, heddle_h1_of(connection));
}

void heddle_h1_complete_response(heddle_connection *connection, bool reusable, int status)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    h1->answered = true;
    heddle_engine_count_response(engine, h1->exchange, status);
    /* The connection stays open even if the server has begun to stop, because the response's head has promised that. */
    reusable = reusable && !connection->error && may_discard_body(engine, h1);
    if (!reusable && connection->sockets->room_wanted)
        connection->sockets->room_wanted--;
    /*
     * The spool (the body's file) stops counting against the disk limit now. The next request may need that room before
     * the runner has released this exchange.
     */
    if (h1->exchange->spool)
        heddle_body_spool_uncount(h1->exchange->spool);
    heddle_exchange_leave_session(h1->exchange);
    h1->exchange = NULL;
    heddle_connection_drop_waits(connection);
    heddle_connection_end_work(connection);
    finish_exchange(connection, reusable);
}

void heddle_h1_change_protocol(heddle_connection *connection, const heddle_protocol *protocol, void *session,
                               int status)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_engine_count_response(heddle_engine_of_connection(connection), h1->exchange, status);
    heddle_exchange_leave_session(h1->exchange);
    h1->exchange = NULL;
    heddle_connection_drop_waits(connection);
    heddle_connection_end_work(connection);
    heddle_connection_start(connection, protocol, session);
}

void heddle_h1_complete_rejection(heddle_connection *connection, int status)
{
    heddle_h1_of(connection)->received = false; /* makes the connection linger: the client may still be sending */
    heddle_h1_complete_response(connection, false, status);
}

const heddle_protocol heddle_h1_protocol = {
    .begin = heddle_h1_parse_buffered, /* after a handoff the first bytes are buffered already */
    .handle_event = handle_event,
    .take_turn = take_turn,
    .handle_deadline = handle_deadline,
    .is_idle = is_idle,
    .idle_since = idle_since,
    .heard_at = heard_at,
    .is_in_transit = is_in_transit,
    .collect_input = collect_input,
    .label = label_of,
    .release = release_session,
    .abandon = abandon_session,
};

/* Allocates a session. When out of memory, closes the connection and returns NULL. */
static heddle_h1 *new_session(heddle_connection *connection)
{
    heddle_h1 *h1 = calloc(1, sizeof(*h1));
    if (!h1)
        heddle_sockets_close_idle(connection);
    return h1;
}

static void begin_session(heddle_connection *connection)
{
    heddle_h1 *h1 = new_session(connection);
    if (h1)
        heddle_connection_start(connection, &heddle_h1_protocol, h1);
}

static void begin_rejecting(heddle_connection *connection, int status, const char *reason)
{
    heddle_rejection rejection;
    heddle_h1 *h1 = new_session(connection);
    if (!h1)
        return;
    connection->session = h1;
    connection->protocol = &heddle_h1_protocol;
    heddle_reject(&rejection, status, "%s", reason);
    heddle_h1_reject(connection, &rejection, NULL);
}

const heddle_http_protocol heddle_h1_http_protocol = {
    .begin = begin_session,
    .begin_rejecting = begin_rejecting,
};
