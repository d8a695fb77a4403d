#include "http/h1/server/states.h"
#include "http/h2/frame.h"

/*
 * Receives request heads and bodies over HTTP/1.1. If a connection begins with the preface of HTTP/2, replaces its
 * protocol with HTTP/2.
 */

enum {
    /*
     * Maximum bytes of a request's first read. Bytes after these probably belong to a body, which is better received
     * into its own buffer.
     */
    FIRST_READ = 8192,
};

/* -- reading ----------------------------------------------------------------------------------------------------- */

/*
 * Begins an exchange (a request and its response) when the request's head is complete. The result says whether the
 * request can be queued now, needs more of its body first, or has ended (for example because it was rejected).
 * `more_came`: bytes after the head were received.
 */
static HEDDLE_MUST_CHECK heddle_h1_progress begin_exchange(heddle_connection *connection, const char *bytes,
                                                           bool more_came)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_exchange *exchange =
        heddle_exchange_new(engine, &heddle_h1_exchange_operations, connection, &engine->head, bytes);
    if (!exchange)
        return heddle_h1_give_up(connection);
    int64_t length = exchange->head.content_length;
    engine->requests++;
    h1->exchange = exchange;
    if (h1->stage == HEDDLE_H1_HEAD)
        exchange->began = h1->head_began;
    h1->seen = 0;
    h1->persists = exchange->head.keep_alive;
    h1->received = length == HEDDLE_NO_BODY || length == 0;
    h1->expects = exchange->head.expects_continue && !h1->received;
    h1->left = length;
    if (h1->received)
        return HEDDLE_H1_SERVE;
    return heddle_h1_begin_body(connection, more_came);
}

/* Has ALPN chosen HTTP/2? Then the HTTP/2 session receives all bytes, and rejects a wrong preface (RFC 9113, 3.4). */
static bool chose_h2(const heddle_connection *connection)
{
    return connection->transport.tls && connection->transport.tls->chose_h2;
}

/*
 * Are the received bytes the preface of HTTP/2, or its beginning, and is a preface allowed here? It is allowed only
 * before the first response, only if HTTP/2 without TLS is enabled, and never over TLS, where ALPN chooses HTTP/2 (RFC
 * 9113, 3.2).
 */
static bool begins_h2(const heddle_connection *connection, const char *bytes, size_t size)
{
    const heddle_engine *engine = heddle_engine_of_connection(connection);
    if (connection->transport.tls || !engine->h2_over_plain)
        return false;
    size_t most = size < HEDDLE_H2_PREFACE_SIZE ? size : HEDDLE_H2_PREFACE_SIZE;
    return !heddle_h1_of(connection)->answered && memcmp(bytes, HEDDLE_H2_PREFACE, most) == 0;
}

static HEDDLE_MUST_CHECK heddle_h1_progress change_to_h2(heddle_connection *connection, const char *bytes, size_t size)
{
    /* The HTTP/2 session reads the connection's input buffer. If the bytes are elsewhere, they are copied into it. */
    if (heddle_bytes_left(&connection->input) || heddle_bytes_add(&connection->input, bytes, size))
        heddle_http_protocol_of(HEDDLE_HTTP_2)->begin(connection);
    else
        heddle_sockets_close_idle(connection);
    return HEDDLE_H1_ENDED;
}

/*
 * Is this the beginning of a HEAD request? A response to HEAD has no content, even if the rest of the request is
 * malformed.
 */
static bool begins_with_head(const char *bytes, size_t size)
{
    static const char method[] = "HEAD ";
    enum { SIZE = sizeof(method) - 1, LINE_END = 2 };
    size_t start = *bytes == '\r' ? LINE_END : 0; /* an empty line before the request is ignored */
    return size >= start + SIZE && memcmp(bytes + start, method, SIZE) == 0;
}

static HEDDLE_MUST_CHECK heddle_h1_progress parse_head(heddle_connection *connection, const char *bytes, size_t size,
                                                       size_t *used)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_rejection rejection;
    *used = 0;
    if (chose_h2(connection))
        return change_to_h2(connection, bytes, size);
    if (*bytes == 'P' && begins_h2(connection, bytes, size))
        return size < HEDDLE_H2_PREFACE_SIZE ? HEDDLE_H1_MORE : change_to_h2(connection, bytes, size);
    int result = heddle_request_head_parse(&engine->head, bytes, size, h1->seen, &engine->limits, &rejection);
    h1->asks_for_head = begins_with_head(bytes, size);
    if (result > 0) {
        *used = (size_t)result;
        if (engine->head.method_id == HEDDLE_CONNECT) {
            heddle_reject_connect(&rejection);
            heddle_h1_reject(connection, &rejection, NULL);
            return HEDDLE_H1_ENDED;
        }
        return begin_exchange(connection, bytes, size > *used);
    }
    if (result < 0) {
        heddle_h1_reject(connection, &rejection, NULL);
        return HEDDLE_H1_ENDED;
    }
    h1->seen = (uint32_t)size;
    return HEDDLE_H1_MORE;
}

/*
 * Parses received bytes until a request is complete. Sets `*used` to the number of bytes that need not be kept. May
 * overwrite `bytes`, because chunks of a discarded body are decoded in place.
 */
static HEDDLE_MUST_CHECK heddle_h1_progress parse_bytes(heddle_connection *connection, char *bytes, size_t size,
                                                        size_t *used)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_h1_progress result = HEDDLE_H1_MORE;
    *used = 0;
    while (result == HEDDLE_H1_MORE && *used < size) {
        size_t step = 0;
        bool head = h1->stage == HEDDLE_H1_IDLE || h1->stage == HEDDLE_H1_HEAD;
        result = head ? parse_head(connection, bytes + *used, size - *used, &step)
                      : heddle_h1_parse_body(connection, bytes + *used, size - *used, &step);
        if (result == HEDDLE_H1_ENDED)
            return result;
        *used += step;
        if (step == 0)
            break;
    }
    return result;
}

static void apply_progress(heddle_connection *connection, heddle_h1_progress result)
{
    if (result == HEDDLE_H1_SERVE)
        heddle_h1_queue_request(connection, false);
    else if (result == HEDDLE_H1_DISCARDED)
        heddle_h1_send_rest(connection, HEDDLE_H1_THEN_IDLE);
}

bool heddle_h1_has_begun(const heddle_connection *connection)
{
    const heddle_bytes *input = &connection->input;
    for (size_t i = input->start; i < input->size; i++) {
        if (input->bytes[i] != '\r' && input->bytes[i] != '\n')
            return true;
    }
    return false;
}

int64_t heddle_h1_idle_timeout(const heddle_connection *connection)
{
    const heddle_engine *engine = heddle_engine_of_connection(connection);
    /* `shared`: another process has handed off the connection, and may have responded to requests */
    bool silent = !heddle_h1_of(connection)->answered && !connection->shared;
    return silent && engine->head_timeout < engine->idle_timeout ? engine->head_timeout : engine->idle_timeout;
}

/*
 * Called when all received bytes are parsed. Sets the deadline for the next bytes and puts the connection at rest
 * (net/owner.h). Closes an idle connection if the server drains. The caller must not use the connection afterwards.
 */
static void wait_for_more(heddle_connection *connection)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_sockets *sockets = connection->sockets;
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (h1->stage == HEDDLE_H1_BODY || h1->stage == HEDDLE_H1_DISCARD) {
        heddle_h1_await_body(connection);
    } else if (h1->stage == HEDDLE_H1_IDLE && heddle_bytes_left(&connection->input)) {
        heddle_h1_enter(h1, HEDDLE_H1_HEAD);
        h1->head_began = heddle_clock_now();
        heddle_connection_set_time_limit(connection, engine->head_timeout);
    } else if (h1->stage == HEDDLE_H1_IDLE) {
        if (sockets->draining) {
            heddle_sockets_close_idle(connection);
            return;
        }
        heddle_connection_set_time_limit(connection, heddle_h1_idle_timeout(connection));
    }
    heddle_connection_want(connection, HEDDLE_READING);
    heddle_connection_release(connection);
}

static void handle_input_end(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_rejection rejection;
    bool in_body = h1->stage == HEDDLE_H1_BODY;
    h1->ended = true;
    if (!in_body && (h1->stage == HEDDLE_H1_DISCARD || !heddle_h1_has_begun(connection))) {
        heddle_h1_send_rest(connection, HEDDLE_H1_THEN_CLOSE);
        return;
    }
    heddle_reject(&rejection, 400, in_body ? "the request's body ended before it was complete"
                                           : "the request ended before its head was complete");
    heddle_h1_reject(connection, &rejection, NULL);
}

/*
 * Where bytes are received. The bytes of a body, or of an incomplete head, are received where they are kept, so that
 * they need not be copied.
 */
typedef enum {
    INTO_SCRATCH,
    INTO_INPUT,
    INTO_BODY,
} destination;

static char *make_room(heddle_connection *connection, destination *into, size_t *size)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_bytes *input = &connection->input;
    if (heddle_bytes_left(input)) {
        *into = INTO_INPUT;
        if (!heddle_bytes_reserve(input, 1024))
            return NULL;
        *size = input->room - input->size;
        return input->bytes + input->size;
    }
    if (h1->stage == HEDDLE_H1_BODY && h1->left > 0) {
        *into = INTO_BODY;
        return heddle_h1_find_body_room(connection, size);
    }
    *into = INTO_SCRATCH;
    *size = h1->stage == HEDDLE_H1_IDLE ? FIRST_READ : HEDDLE_SCRATCH;
    return connection->sockets->scratch;
}

/* Each iteration receives some bytes and parses them. */
void heddle_h1_read_input(heddle_connection *connection)
{
    for (;;) {
        destination into;
        size_t size, used;
        char *room = make_room(connection, &into, &size);
        if (!room) {
            heddle_sockets_close_idle(connection);
            return;
        }
        ssize_t received = heddle_connection_receive(connection, room, size); /* bytes, or -errno */
        if (received == -EAGAIN) {
            wait_for_more(connection);
            return;
        }
        if (received <= 0) {
            if (received == 0)
                handle_input_end(connection);
            else
                heddle_sockets_close_idle(connection);
            return;
        }
        heddle_h1_progress result;
        if (into == INTO_INPUT) {
            connection->input.size += (size_t)received;
            result = parse_bytes(connection, heddle_bytes_first(&connection->input),
                                 heddle_bytes_left(&connection->input), &used);
            if (result != HEDDLE_H1_ENDED)
                heddle_bytes_use(&connection->input, used);
        } else {
            result = parse_bytes(connection, room, (size_t)received, &used);
            if (result != HEDDLE_H1_ENDED &&
                !heddle_bytes_add(&connection->input, room + used, (size_t)received - used)) {
                heddle_sockets_close_idle(connection);
                return;
            }
        }
        if (result != HEDDLE_H1_MORE) {
            apply_progress(connection, result);
            return;
        }
        if ((size_t)received < size &&
            !heddle_transport_has(&connection->transport, HEDDLE_HAS_INPUT | HEDDLE_INPUT_ENDS)) {
            wait_for_more(connection); /* fewer bytes came than would fit, so another recv would return EAGAIN */
            return;
        }
    }
}

void heddle_h1_parse_buffered(heddle_connection *connection)
{
    size_t buffered = heddle_bytes_left(&connection->input), used;
    if (buffered) {
        heddle_h1_progress result = parse_bytes(connection, heddle_bytes_first(&connection->input), buffered,
                                                &used);
        if (result == HEDDLE_H1_ENDED)
            return;
        heddle_bytes_use(&connection->input, used);
        if (result != HEDDLE_H1_MORE) {
            apply_progress(connection, result);
            return;
        }
    }
    heddle_h1_read_input(connection);
}

/* Called when a response is complete. */
bool heddle_h1_queue_pipelined(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    size_t buffered = heddle_bytes_left(&connection->input), used;
    if (!buffered)
        h1->pipelined = 0;
    else if (h1->pipelined < HEDDLE_LONGEST_TURN)
        h1->pipelined++;
    if (!buffered || !heddle_rounds_has_turn_left(connection->sockets, connection) ||
        connection->output.size >= HEDDLE_OUTPUT_AT_ONCE || heddle_admission_contended(connection->sockets)) {
        connection->turn_left = 0;
        return false;
    }
    heddle_h1_enter(h1, HEDDLE_H1_IDLE);
    heddle_h1_progress result = parse_bytes(connection, heddle_bytes_first(&connection->input), buffered, &used);
    if (result == HEDDLE_H1_ENDED)
        return true;
    heddle_bytes_use(&connection->input, used);
    if (result == HEDDLE_H1_MORE || result == HEDDLE_H1_SPOOLS)
        return false;
    if (connection->output.size)
        heddle_connection_flush_later(connection); /* earlier responses must not wait until this request is served */
    heddle_h1_queue_request(connection, true);
    return true;
}
