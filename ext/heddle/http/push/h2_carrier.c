/* The HTTP/2 carrier of a push session: a stream that carries a WebSocket (RFC 8441) or an event stream. */

#include "http/h2/server/server.h"
#include "http/push/session.h"
#include "selector/bytes.h"

struct heddle_push_stream {
    heddle_h2_tunnel tunnel;
    heddle_push_session *session;
    heddle_wait *writer; /* the fiber that waits for room */
    heddle_bytes input; /* received bytes that are not used yet; the stream's flow-control window limits their number */
    size_t counted; /* bytes of `input` that count_input has counted */
    bool ended;  /* the client has sent END_STREAM */
    bool abrupt; /* how the stream is closed, see heddle_h2_tunnel_close */
};

static heddle_push_stream *stream_of(const heddle_h2_tunnel *tunnel)
{
    return HEDDLE_CONTAINER_OF(tunnel, heddle_push_stream, tunnel);
}

/* -- input --------------------------------------------------------------------------------------------------------- */

/* Counts the unused input as memory that the connection holds (heddle_h2_count_memory). */
static void count_input(heddle_push_stream *stream)
{
    size_t size = heddle_bytes_left(&stream->input);
    if (size != stream->counted)
        heddle_h2_count_memory(stream->tunnel.server, (ssize_t)size - (ssize_t)stream->counted);
    stream->counted = size;
}

static void feed_input(heddle_push_session *session)
{
    heddle_push_stream *stream = session->stream;
    heddle_bytes *input = &stream->input;
    while (heddle_bytes_left(input) && session->state <= HEDDLE_PUSH_CLOSING) {
        if (heddle_push_must_pause(session)) {
            session->paused = true;
            return;
        }
        size_t used = session->framing->feed(session, heddle_bytes_first(input), heddle_bytes_left(input));
        if (session->state > HEDDLE_PUSH_CLOSING)
            break; /* unused bytes are discarded */
        heddle_bytes_use(input, used);
        heddle_h2_tunnel_consume(&stream->tunnel, used);
    }
}

static void read_input(heddle_push_session *session)
{
    heddle_push_stream *stream = session->stream;
    feed_input(session);
    count_input(stream);
    if (session->paused)
        return;
    if (stream->ended && session->framing->reads_frames && session->state <= HEDDLE_PUSH_CLOSING)
        heddle_push_stop_carrier(session); /* the client has ended its side without a close frame */
}

/*
 * Passes received bytes to the framing, and keeps those that the framing does not use. Keeps all bytes if the session
 * does not read now, or earlier bytes wait.
 */
static void take_frames(heddle_push_session *session, char *bytes, size_t size)
{
    heddle_push_stream *stream = session->stream;
    size_t used = 0;
    if (!session->paused && !session->defers_reading && !heddle_bytes_left(&stream->input)) {
        used = session->framing->feed(session, bytes, size);
        if (session->state > HEDDLE_PUSH_CLOSING)
            used = size;
        heddle_h2_tunnel_consume(&stream->tunnel, used);
    }
    if (used == size)
        return;
    session->paused |= heddle_push_must_pause(session);
    if (session->paused)
        heddle_push_set_deadline(session);
    if (!heddle_bytes_add(&stream->input, bytes + used, size - used)) {
        heddle_push_stop_carrier(session);
        return;
    }
    count_input(stream);
    if (!heddle_h2_holds_too_much_data(stream->tunnel.server))
        heddle_h2_tunnel_keep(&stream->tunnel, size - used);
}

static void take_data(heddle_h2_tunnel *tunnel, char *bytes, size_t size)
{
    heddle_push_session *session = stream_of(tunnel)->session;
    heddle_push_hold(session);
    if (session->state <= HEDDLE_PUSH_CLOSING) {
        take_frames(session, bytes, size);
    } else {
        session->lingered += size;
        heddle_h2_tunnel_consume(tunnel, size);
        if (session->lingered > session->engine->linger_limit)
            heddle_push_stop_carrier(session);
    }
    heddle_push_release_hold(session);
}

static void end_input(heddle_h2_tunnel *tunnel)
{
    heddle_push_stream *stream = stream_of(tunnel);
    heddle_push_session *session = stream->session;
    heddle_push_hold(session);
    stream->ended = true;
    if (session->state > HEDDLE_PUSH_CLOSING || !heddle_bytes_left(&stream->input))
        heddle_push_stop_carrier(session);
    heddle_push_release_hold(session);
}

static void handle_reset(heddle_h2_tunnel *tunnel)
{
    heddle_push_session *session = stream_of(tunnel)->session;
    heddle_push_hold(session);
    heddle_push_stop_carrier(session);
    heddle_push_release_hold(session);
}

/* -- output -------------------------------------------------------------------------------------------------------- */

static bool write_output(heddle_push_session *session, const char *bytes, size_t size, VALUE string)
{
    const char *more = string ? RSTRING_PTR(string) : NULL;
    size_t more_size = string ? (size_t)RSTRING_LEN(string) : 0;
    return heddle_h2_tunnel_write(&session->stream->tunnel, bytes, size, more, more_size);
}

static bool send_frame(heddle_push_session *session, VALUE frame)
{
    /* only queued, because the HTTP/2 session sends the output of all its streams together */
    return write_output(session, NULL, 0, frame);
}

static size_t count_pending(const heddle_push_session *session)
{
    return session->stream->tunnel.stream->queued;
}

static bool is_full(const heddle_push_session *session, uint64_t limit)
{
    return heddle_h2_tunnel_is_full(&session->stream->tunnel, limit);
}

/* Bytes stay queued while the client's flow-control windows are closed, even if the kernel has room. */
static int flush_stream(heddle_push_session *session)
{
    int result = heddle_h2_flush(session->stream->tunnel.server);
    if (result != 0 && result != -EAGAIN)
        return result;
    return count_pending(session) ? -EAGAIN : 0;
}

static bool wait_for_room(heddle_push_session *session)
{
    heddle_wait wait = {.slot = &session->stream->writer, .deadline = -1, .part = HEDDLE_SPENT_CLIENT};
    return heddle_wait_in_slot(session->work.connection->sockets->loop, wait,
                               "another fiber already waits for this socket's output") != HEDDLE_WAIT_CLOSED;
}

static void wake_writer(heddle_push_session *session)
{
    heddle_wait_wake(session->stream->writer);
}

/* -- the end ------------------------------------------------------------------------------------------------------- */

/* Called when all output was sent. Gives the client time to end its side. */
static void begin_linger(heddle_push_session *session)
{
    if (session->stream->ended || session->engine->linger_timeout == 0) {
        heddle_push_stop_carrier(session);
        return;
    }
    session->lingers = true;
    heddle_push_set_time_limit(session, session->engine->linger_timeout);
}

static void begin_end(heddle_push_session *session)
{
    heddle_push_stream *stream = session->stream;
    heddle_h2_tunnel_consume(&stream->tunnel, heddle_bytes_left(&stream->input));
    heddle_bytes_reset(&stream->input, 0);
    count_input(stream);
    bool empty = count_pending(session) == 0;
    heddle_h2_tunnel_finish(&stream->tunnel);
    if (empty)
        begin_linger(session);
}

static void stop_stream(heddle_push_session *session, bool abrupt)
{
    session->stream->abrupt = abrupt;
}

static void close_stream(heddle_push_session *session)
{
    heddle_h2_tunnel_close(&session->stream->tunnel, session->stream->abrupt);
}

static void handle_flushed(heddle_h2_tunnel *tunnel)
{
    heddle_push_session *session = stream_of(tunnel)->session;
    heddle_push_hold(session);
    heddle_push_check_overflow(session);
    if (session->state <= HEDDLE_PUSH_CLOSING && count_pending(session) == 0) {
        wake_writer(session);
        heddle_push_handle_drained(session);
    } else if (session->state == HEDDLE_PUSH_FINISHING && !session->lingers && count_pending(session) == 0) {
        begin_linger(session);
    }
    heddle_push_release_hold(session);
}

static bool has_to_retire(const heddle_h2_tunnel *tunnel)
{
    return heddle_push_has_to_retire(stream_of(tunnel)->session);
}

static void retire_socket(heddle_h2_tunnel *tunnel)
{
    heddle_push_retire(stream_of(tunnel)->session);
}

static void release_stream(heddle_h2_tunnel *tunnel)
{
    heddle_push_stream *stream = stream_of(tunnel);
    heddle_push_session *session = stream->session;
    if (!session->work.connection->sockets->abandoned)
        heddle_wait_drop(&stream->writer);
    session->stream = NULL;
    heddle_push_drop_carrier(session);
    heddle_bytes_reset(&stream->input, 0);
    count_input(stream);
    free(stream);
}

static void abandon_stream(heddle_h2_tunnel *tunnel)
{
    heddle_push_abandon(stream_of(tunnel)->session);
}

static const heddle_h2_tunnel_operations operations = {
    .take_data = take_data,
    .end_input = end_input,
    .handle_reset = handle_reset,
    .flushed = handle_flushed,
    .has_to_retire = has_to_retire,
    .retire = retire_socket,
    .release = release_stream,
    .abandon = abandon_stream,
};

static void handle_deadline(heddle_due *due)
{
    heddle_push_handle_deadline(stream_of(HEDDLE_CONTAINER_OF(due, heddle_h2_tunnel, due))->session);
}

static void set_deadline(heddle_push_session *session, int64_t at)
{
    heddle_h2_tunnel_set_deadline(&session->stream->tunnel, at);
}

/* -- from an exchange to a session --------------------------------------------------------------------------------- */

static bool is_free(const heddle_exchange_handle *exchange)
{
    const heddle_h2_carrier *carrier = heddle_h2_carrier_of(exchange->exchange);
    if (carrier->gone)
        heddle_exchange_raise_gone("the stream ended before the WebSocket or event stream began", 0);
    return carrier->received && !carrier->waits[HEDDLE_WRITING] && heddle_h2_may_write(carrier->stream);
}

static bool prepare_stream(heddle_push_session *session)
{
    heddle_push_stream *stream = calloc(1, sizeof(*stream));
    if (!stream)
        return false;
    *stream = (heddle_push_stream){.tunnel = {.operations = &operations, .due.passed = handle_deadline}, session};
    session->stream = stream;
    return true;
}

/* Keeps bytes that the client has sent before the session began. Returns false when out of memory. */
static bool keep_early_input(heddle_push_session *session, heddle_exchange *exchange, VALUE early)
{
    if (!session->framing->reads_frames)
        return true;
    heddle_bytes *input = &session->stream->input;
    VALUE more = heddle_exchange_take_body(exchange); /* bytes that were received after `early` was taken */
    bool kept = (NIL_P(early) || heddle_bytes_add(input, RSTRING_PTR(early), (size_t)RSTRING_LEN(early))) &&
                (NIL_P(more) || heddle_bytes_add(input, RSTRING_PTR(more), (size_t)RSTRING_LEN(more)));
    RB_GC_GUARD(early);
    RB_GC_GUARD(more);
    return kept;
}

static void begin_on_stream(heddle_push_session *session, heddle_exchange_handle *handle, int status, VALUE early)
{
    heddle_exchange *exchange = handle->exchange;
    heddle_push_stream *stream = session->stream;
    heddle_connection *connection = exchange->work.connection;
    heddle_h2_server *server = heddle_h2_server_of(connection);
    bool ended = heddle_h2_carrier_of(exchange)->received, kept = keep_early_input(session, exchange, early);
    heddle_engine_count_response(session->engine, exchange, status);
    heddle_h2_enter_session(server);
    heddle_h2_tunnel_begin(&stream->tunnel, exchange);
    count_input(stream);
    heddle_push_hold(session);
    heddle_push_begin_session(session, connection);
    if (!kept)
        heddle_push_stop_carrier(session);
    else if (ended && session->framing->reads_frames)
        end_input(&stream->tunnel);
    else
        stream->ended = ended; /* true only for an event stream: its request, a GET, has no body */
    heddle_push_release_hold(session);
    heddle_h2_end_call(server);
}

const heddle_push_carrier heddle_push_h2_carrier = {
    .exchanges = &heddle_h2_exchange_operations,
    .is_free = is_free,
    .prepare = prepare_stream,
    .begin = begin_on_stream,
    .write = write_output,
    .send = send_frame,
    .pending = count_pending,
    .is_full = is_full,
    .flush = flush_stream,
    .read = read_input,
    .end = begin_end,
    .stop = stop_stream,
    .close = close_stream,
    .set_deadline = set_deadline,
    .wait_for_room = wait_for_room,
    .wake_writer = wake_writer,
};
