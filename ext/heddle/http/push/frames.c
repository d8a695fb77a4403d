/* The framing of WebSockets: reads the client's frames, and writes the server's (RFC 6455). */

#include "http/body_rules.h"
#include "http/push/session.h"
#include "net/majority.h"

#include <ruby/encoding.h>

/* -- input --------------------------------------------------------------------------------------------------------- */

static void handle_message(heddle_push_session *socket)
{
    heddle_websocket_message *message = heddle_websocket_take_message(socket->reader);
    if (socket->state == HEDDLE_PUSH_OPEN) {
        socket->engine->websockets.received++;
        socket->engine->websockets.received_bytes += message->size;
        socket->traffic.received++;
        socket->traffic.received_bytes += message->size;
        heddle_push_deliver(socket, message);
    } else {
        free(message); /* the handler knows already that the socket is closed */
    }
}

static void handle_ping(heddle_push_session *socket)
{
    if (socket->state == HEDDLE_PUSH_OPEN &&
        !heddle_push_answer_ping(socket, socket->reader->control, socket->reader->control_size))
        heddle_push_stop_carrier(socket);
}

/* -- unfinished messages ------------------------------------------------------------------------------------------- */

static void forget_message(heddle_push_session *socket)
{
    socket->engine->websockets.unfinished -= socket->unfinished;
    socket->unfinished = socket->message_size = 0;
    socket->message_deadline = 0;
    heddle_link_remove(&socket->receiving_link);
}

static void release_reader(heddle_push_session *socket)
{
    forget_message(socket);
    heddle_websocket_reader_end(socket->reader);
}

static void end_unfinished(heddle_push_session *socket, const char *reason)
{
    socket->engine->websockets.failures++;
    heddle_push_hold(socket);
    heddle_push_fail_session(socket, HEDDLE_WEBSOCKET_POLICY, reason);
    release_reader(socket); /* the socket's input is discarded from here on */
    heddle_push_release_hold(socket);
}

/* Returns the socket whose unfinished message began next, or NULL. */
static heddle_push_session *find_next(heddle_engine *engine, heddle_push_session *socket)
{
    heddle_link *head = &engine->receiving;
    heddle_link *link = socket ? heddle_link_after(head, &socket->receiving_link) : heddle_link_first(head);
    return link ? HEDDLE_CONTAINER_OF(link, heddle_push_session, receiving_link) : NULL;
}

/* Returns 0 for clients that are not counted by address, and for one that has left. */
static uint16_t find_address(const heddle_push_session *socket)
{
    return socket->work.connection ? socket->work.connection->address_bucket : 0;
}

/* If an address has more than half of all bytes, considers only its sockets. */
static heddle_push_session *find_oldest(heddle_engine *engine)
{
    heddle_majority majority = {0};
    heddle_push_session *socket = NULL;
    while ((socket = find_next(engine, socket)))
        heddle_majority_vote(&majority, find_address(socket), socket->unfinished);
    while ((socket = find_next(engine, socket)))
        heddle_majority_count(&majority, find_address(socket), socket->unfinished);
    do {
        socket = find_next(engine, socket);
    } while (socket && !heddle_majority_includes(&majority, find_address(socket)));
    return socket;
}

/* Ends the sockets with the oldest unfinished messages while all unfinished messages together have too many bytes. */
static void check_budget(heddle_push_session *socket)
{
    heddle_websockets *all = &socket->engine->websockets;
    while (all->unfinished > all->unfinished_limit) {
        heddle_push_session *oldest = find_oldest(socket->engine);
        if (!oldest || oldest == socket)
            break; /* the limit of one message bounds this socket alone */
        end_unfinished(oldest, "too many messages are unfinished");
    }
}

/* Called when all received bytes were read. An unfinished message gets a time limit, like a request's body. */
static void track_message(heddle_push_session *socket)
{
    heddle_websocket_reader *reader = socket->reader;
    heddle_websockets *all = &socket->engine->websockets;
    if (!reader->in_message || !reader->message || socket->state != HEDDLE_PUSH_OPEN) {
        if (socket->message_deadline)
            forget_message(socket);
        return;
    }
    all->unfinished += reader->room - socket->unfinished;
    socket->unfinished = reader->room;
    size_t came = reader->message->size - socket->message_size;
    socket->message_size = reader->message->size;
    if (socket->message_deadline) {
        socket->message_deadline = heddle_body_next_deadline(socket->engine, socket->message_deadline, came);
    } else {
        socket->message_deadline = heddle_body_first_deadline(socket->engine, socket->heard);
        heddle_link_push_last(&socket->engine->receiving, &socket->receiving_link);
        heddle_push_set_deadline(socket);
    }
    check_budget(socket);
}

/* Queues the close frame. */
static bool send_close(heddle_push_session *socket, unsigned code, const char *reason, size_t size)
{
    char payload[HEDDLE_WEBSOCKET_CONTROL];
    size_t used = heddle_websocket_write_close(payload, code, reason, size);
    return heddle_push_send_control(socket, HEDDLE_WEBSOCKET_CLOSE, payload, used);
}

/* Answers the client's close frame with its own code (RFC 6455, section 5.5.1). */
static void answer_close(heddle_push_session *socket)
{
    bool ours = socket->state == HEDDLE_PUSH_CLOSING;
    unsigned code = socket->reader->code;
    socket->code = 0; /* the client's code is reported, even if we sent the first close frame */
    if (!ours && !send_close(socket, code, NULL, 0))
        heddle_push_stop_carrier(socket);
    else
        heddle_push_finish_output(socket, code);
}

/* Reads frames until the handler must catch up, or no more frames are read. */
static size_t read_frames(heddle_push_session *socket, char *bytes, size_t size)
{
    size_t used = 0;
    heddle_websocket_reader *reader = socket->reader;
    socket->heard = heddle_clock_coarse();
    while (socket->state <= HEDDLE_PUSH_CLOSING && !heddle_push_must_pause(socket)) {
        size_t step;
        heddle_websocket_event event =
            heddle_websocket_read(reader, &socket->engine->websockets.limits, bytes + used, size - used, &step);
        used += step;
        /* A closing socket discards received messages. */
        if (event == HEDDLE_WEBSOCKET_HAS_MESSAGE && reader->message->compressed &&
            socket->state == HEDDLE_PUSH_OPEN)
            event = heddle_websocket_inflate(&socket->engine->websockets.deflater, reader,
                                             &socket->engine->websockets.limits);
        switch (event) {
        case HEDDLE_WEBSOCKET_NO_EVENT:
            track_message(socket);
            return used;
        case HEDDLE_WEBSOCKET_HAS_MESSAGE:
            if (socket->message_deadline)
                forget_message(socket);
            handle_message(socket);
            break;
        case HEDDLE_WEBSOCKET_HAS_PING:
            handle_ping(socket);
            break;
        case HEDDLE_WEBSOCKET_HAS_PONG:
            break;
        case HEDDLE_WEBSOCKET_HAS_CLOSE:
            answer_close(socket);
            break;
        case HEDDLE_WEBSOCKET_FAILED:
            socket->engine->websockets.failures++;
            heddle_push_fail_session(socket, reader->code, reader->failure);
            break;
        case HEDDLE_WEBSOCKET_NO_MEMORY:
            heddle_push_stop_carrier(socket);
            break;
        }
    }
    return used;
}

/* -- output -------------------------------------------------------------------------------------------------------- */

bool heddle_push_send_control(heddle_push_session *socket, heddle_websocket_opcode opcode, const char *payload,
                              size_t size)
{
    char frame[HEDDLE_WEBSOCKET_HEAD + HEDDLE_WEBSOCKET_CONTROL];
    size_t used = heddle_websocket_write_head(frame, opcode, false, size, NULL);
    if (size)
        memcpy(frame + used, payload, size);
    socket->written += used + size;
    return socket->carrier->write(socket, frame, used + size, 0);
}

VALUE heddle_push_text_of(VALUE string)
{
    if (rb_enc_get_index(string) != rb_utf8_encindex() && rb_enc_str_coderange(string) != ENC_CODERANGE_7BIT)
        string = rb_str_encode(string, rb_enc_from_encoding(rb_utf8_encoding()), 0, Qnil);
    if (rb_enc_str_coderange(string) == ENC_CODERANGE_BROKEN)
        rb_raise(rb_eArgError, "the message is not valid UTF-8, as text must be; send other bytes with String#b");
    return string;
}

static VALUE prepare_message(VALUE data)
{
    if (rb_enc_get_index(data) != rb_ascii8bit_encindex())
        data = heddle_push_text_of(data);
    return RSTRING_LEN(data) > HEDDLE_OUTPUT_COPIED ? rb_str_new_frozen(data) : data;
}

/* Returns the frame, from malloc, or NULL if the message must be sent uncompressed. */
static char *deflate_message(heddle_push_session *socket, heddle_websocket_opcode opcode, VALUE message, size_t *size)
{
    char head[HEDDLE_WEBSOCKET_HEAD];
    size_t plain = (size_t)RSTRING_LEN(message);
    if (!heddle_push_deflates(socket) || plain < HEDDLE_DEFLATE_LEAST || plain > HEDDLE_DEFLATE_MOST)
        return NULL;
    char *frame = malloc(HEDDLE_WEBSOCKET_HEAD + plain), *payload = frame + HEDDLE_WEBSOCKET_HEAD;
    size_t deflated = frame ? heddle_websocket_deflate(&socket->engine->websockets.deflater, RSTRING_PTR(message),
                                                       plain, payload)
                            : 0;
    if (!deflated) {
        free(frame);
        return NULL;
    }
    size_t used = heddle_websocket_write_head(head, opcode, true, deflated, NULL);
    memmove(frame + used, payload, deflated);
    memcpy(frame, head, used);
    *size = used + deflated;
    return frame;
}

static bool send_message(heddle_push_session *socket, heddle_websocket_opcode opcode, VALUE message)
{
    char head[HEDDLE_WEBSOCKET_HEAD];
    size_t size, used;
    char *frame = deflate_message(socket, opcode, message, &size);
    if (frame) {
        bool written = socket->carrier->write(socket, frame, size, 0);
        socket->written += size;
        free(frame);
        return written;
    }
    used = heddle_websocket_write_head(head, opcode, false, (size_t)RSTRING_LEN(message), NULL);
    socket->written += used + (size_t)RSTRING_LEN(message);
    return socket->carrier->write(socket, head, used, message);
}

static void end_slow(heddle_push_session *socket)
{
    socket->engine->websockets.too_slow++;
    heddle_push_fail_session(socket, HEDDLE_WEBSOCKET_POLICY, "the client reads too slowly");
}

/* -- pings --------------------------------------------------------------------------------------------------------- */

static int64_t find_next_ping(const heddle_push_session *socket)
{
    const heddle_websockets *all = &socket->engine->websockets;
    int64_t deadline = -1, message = socket->message_deadline;
    if (socket->pinged)
        deadline = heddle_add_duration(socket->pinged_at, all->timeout);
    else if (all->ping > 0)
        deadline = heddle_add_duration(socket->heard, all->ping);
    return message && (deadline < 0 || message < deadline) ? message : deadline;
}

static void send_ping(heddle_push_session *socket, bool full)
{
    socket->pinged = true;
    socket->pinged_at = heddle_clock_coarse();
    socket->stalls = full; /* a ping would wait behind the output, so the output is watched instead */
    if (!full && !heddle_push_send_control(socket, HEDDLE_WEBSOCKET_PING, NULL, 0))
        heddle_push_stop_carrier(socket);
}

static void check_client(heddle_push_session *socket, int64_t now)
{
    heddle_websockets *all = &socket->engine->websockets;
    if (socket->message_deadline && socket->message_deadline <= now) {
        if (!socket->paused) {
            end_unfinished(socket, "the message came too slowly");
            return;
        }
        socket->message_deadline = heddle_body_first_deadline(socket->engine, now);
    }
    size_t pending = heddle_push_pending(socket);
    bool full = pending >= HEDDLE_OUTPUT_AT_ONCE;
    bool moved = heddle_push_has_output_moved(socket, pending) && (full || socket->stalls);
    /* a paused socket reads no input, so silence means nothing; if output has moved, the client reads */
    if (socket->paused || moved)
        socket->heard = now;
    if (socket->pinged && socket->heard >= socket->pinged_at)
        socket->pinged = socket->stalls = false;
    if (socket->pinged && heddle_add_duration(socket->pinged_at, all->timeout) <= now) {
        all->vanished++;
        heddle_push_reset_carrier(socket);
    } else if (!socket->pinged && all->ping > 0 && heddle_add_duration(socket->heard, all->ping) <= now) {
        send_ping(socket, full);
    }
}

const heddle_push_framing heddle_push_frames = {
    .reads_frames = true,
    .feed = read_frames,
    .prepare = prepare_message,
    .send = send_message,
    .send_close = send_close,
    .next_check = find_next_ping,
    .check = check_client,
    .release = release_reader,
    .end_slow = end_slow,
};
