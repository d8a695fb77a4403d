/* The framing of WebSockets: reads the client's frames, and writes the server's (RFC 6455). */

#include "http/body_deadline.h"
#include "http/push/session.h"
#include "net/majority_address.h"

#include <ruby/encoding.h>

/* -- input --------------------------------------------------------------------------------------------------------- */

static void handle_message(heddle_push_session *session)
{
    heddle_websocket_message *message = heddle_websocket_take_message(session->reader);
    if (session->state == HEDDLE_PUSH_OPEN) {
        session->engine->websockets.received++;
        session->engine->websockets.received_bytes += message->size;
        session->traffic.received++;
        session->traffic.received_bytes += message->size;
        heddle_push_deliver(session, message);
    } else {
        free(message); /* the handler gets no more messages once the socket is closing */
    }
}

static void handle_ping(heddle_push_session *session)
{
    if (session->state == HEDDLE_PUSH_OPEN &&
        !heddle_push_answer_ping(session, session->reader->control, session->reader->control_size))
        heddle_push_stop_carrier(session);
}

/* -- unfinished messages ------------------------------------------------------------------------------------------- */

static void forget_message(heddle_push_session *session)
{
    session->engine->websockets.unfinished -= session->unfinished;
    session->unfinished = session->message_size = 0;
    session->message_deadline = 0;
    heddle_link_remove(&session->receiving_link);
}

static void release_reader(heddle_push_session *session)
{
    forget_message(session);
    heddle_websocket_reader_end(session->reader);
}

static void end_unfinished(heddle_push_session *session, const char *reason)
{
    session->engine->websockets.failures++;
    heddle_push_hold(session);
    heddle_push_fail_session(session, HEDDLE_WEBSOCKET_POLICY, reason);
    release_reader(session); /* the socket's input is discarded from here on */
    heddle_push_release_hold(session);
}

/*
 * Walks through the sockets with unfinished messages, in the order in which these messages began: returns the socket
 * after `session`, or the first socket if `session` is NULL. Returns NULL at the end.
 */
static heddle_push_session *find_next(heddle_engine *engine, heddle_push_session *session)
{
    heddle_link *head = &engine->receiving;
    heddle_link *link = session ? heddle_link_after(head, &session->receiving_link) : heddle_link_first(head);
    return link ? HEDDLE_CONTAINER_OF(link, heddle_push_session, receiving_link) : NULL;
}

/* Returns the bucket that counts the client's address; 0 if addresses are not counted, or the client has left. */
static uint16_t find_address(const heddle_push_session *session)
{
    return session->work.connection ? session->work.connection->address_bucket : 0;
}

/* Finds the oldest unfinished message. If one address has more than half of all bytes, considers only its sockets. */
static heddle_push_session *find_oldest(heddle_engine *engine)
{
    heddle_majority majority = {0};
    heddle_push_session *session = NULL;
    while ((session = find_next(engine, session)))
        heddle_majority_vote(&majority, find_address(session), session->unfinished);
    while ((session = find_next(engine, session)))
        heddle_majority_count(&majority, find_address(session), session->unfinished);
    do {
        session = find_next(engine, session);
    } while (session && !heddle_majority_includes(&majority, find_address(session)));
    return session;
}

/* Ends the sockets with the oldest unfinished messages while all unfinished messages together have too many bytes. */
static void check_budget(heddle_push_session *session)
{
    heddle_websockets *all = &session->engine->websockets;
    while (all->unfinished > all->messages_limit) {
        heddle_push_session *oldest = find_oldest(session->engine);
        if (!oldest || oldest == session)
            break; /* this socket is not ended: the size limit of a message bounds its unfinished message */
        end_unfinished(oldest, "the server has too many unfinished messages");
    }
}

/*
 * Called when all received bytes were read. Sets or extends the time limit of an unfinished message, by the same rules
 * as for a request's body. Removes the time limit if no message is unfinished.
 */
static void track_message(heddle_push_session *session)
{
    heddle_websocket_reader *reader = session->reader;
    heddle_websockets *all = &session->engine->websockets;
    if (!reader->in_message || !reader->message || session->state != HEDDLE_PUSH_OPEN) {
        if (session->message_deadline)
            forget_message(session);
        return;
    }
    all->unfinished += reader->room - session->unfinished;
    session->unfinished = reader->room;
    size_t came = reader->message->size - session->message_size;
    session->message_size = reader->message->size;
    if (session->message_deadline) {
        session->message_deadline = heddle_body_next_deadline(session->engine, session->message_deadline, came);
    } else {
        session->message_deadline = heddle_body_first_deadline(session->engine, session->heard);
        heddle_link_push_last(&session->engine->receiving, &session->receiving_link);
        heddle_push_set_deadline(session);
    }
    check_budget(session);
}

/* Queues the close frame. */
static bool send_close(heddle_push_session *session, unsigned code, const char *reason, size_t size)
{
    char payload[HEDDLE_WEBSOCKET_CONTROL];
    size_t used = heddle_websocket_write_close(payload, code, reason, size);
    return heddle_push_send_control(session, HEDDLE_WEBSOCKET_CLOSE, payload, used);
}

/*
 * Handles the client's close frame. Answers it with the client's code (RFC 6455, section 5.5.1), unless the frame is
 * itself the answer to our close frame.
 */
static void answer_close(heddle_push_session *session)
{
    bool ours = session->state == HEDDLE_PUSH_CLOSING;
    unsigned code = session->reader->code;
    session->code = 0; /* the client's code is reported, even if we sent the first close frame */
    if (!ours && !send_close(session, code, NULL, 0))
        heddle_push_stop_carrier(session);
    else
        heddle_push_finish_output(session, code);
}

/*
 * Reads frames until all bytes are read, reading must pause, or the session has ended. Returns how many bytes it has
 * read.
 */
static size_t read_frames(heddle_push_session *session, char *bytes, size_t size)
{
    size_t used = 0;
    heddle_websocket_reader *reader = session->reader;
    session->heard = heddle_clock_coarse();
    while (session->state <= HEDDLE_PUSH_CLOSING && !heddle_push_must_pause(session)) {
        size_t step;
        heddle_websocket_event event =
            heddle_websocket_read(reader, &session->engine->websockets.limits, bytes + used, size - used, &step);
        used += step;
        /* A message is not inflated if it is discarded: the socket is closing, or the handler has no on_message. */
        if (event == HEDDLE_WEBSOCKET_HAS_MESSAGE && reader->message->compressed &&
            session->state == HEDDLE_PUSH_OPEN && session->wanted & HEDDLE_PUSH_ON_MESSAGE)
            event = heddle_websocket_inflate(&session->engine->websockets.deflater, reader,
                                             &session->engine->websockets.limits);
        switch (event) {
        case HEDDLE_WEBSOCKET_NO_EVENT:
            track_message(session);
            return used;
        case HEDDLE_WEBSOCKET_HAS_MESSAGE:
            if (session->message_deadline)
                forget_message(session);
            handle_message(session);
            break;
        case HEDDLE_WEBSOCKET_HAS_PING:
            handle_ping(session);
            break;
        case HEDDLE_WEBSOCKET_HAS_PONG:
            break;
        case HEDDLE_WEBSOCKET_HAS_CLOSE:
            answer_close(session);
            break;
        case HEDDLE_WEBSOCKET_FAILED:
            session->engine->websockets.failures++;
            heddle_push_fail_session(session, reader->code, reader->failure);
            break;
        case HEDDLE_WEBSOCKET_NO_MEMORY:
            heddle_push_stop_carrier(session);
            break;
        }
    }
    return used;
}

/* -- output -------------------------------------------------------------------------------------------------------- */

bool heddle_push_send_control(heddle_push_session *session, heddle_websocket_opcode opcode, const char *payload,
                              size_t size)
{
    char frame[HEDDLE_WEBSOCKET_HEAD + HEDDLE_WEBSOCKET_CONTROL];
    size_t used = heddle_websocket_write_head(frame, opcode, false, size, NULL);
    if (size)
        memcpy(frame + used, payload, size);
    session->written += used + size;
    return session->carrier->write(session, frame, used + size, 0);
}

VALUE heddle_push_text_of(VALUE string)
{
    if (rb_enc_get_index(string) != rb_utf8_encindex() && rb_enc_str_coderange(string) != ENC_CODERANGE_7BIT)
        string = rb_str_encode(string, rb_enc_from_encoding(rb_utf8_encoding()), 0, Qnil);
    if (rb_enc_str_coderange(string) == ENC_CODERANGE_BROKEN)
        rb_raise(rb_eArgError, "the text is not valid UTF-8; to send binary data, pass a String in BINARY (String#b)");
    return string;
}

static VALUE prepare_message(VALUE data)
{
    if (rb_enc_get_index(data) != rb_ascii8bit_encindex())
        data = heddle_push_text_of(data);
    return RSTRING_LEN(data) > HEDDLE_OUTPUT_COPIED ? rb_str_new_frozen(data) : data;
}

/* Returns the frame, from malloc, or NULL if the message must be sent uncompressed. */
static char *deflate_message(heddle_push_session *session, heddle_websocket_opcode opcode, VALUE message, size_t *size)
{
    char head[HEDDLE_WEBSOCKET_HEAD];
    size_t plain = (size_t)RSTRING_LEN(message);
    if (!heddle_push_deflates(session) || !heddle_deflate_is_worthwhile(plain))
        return NULL;
    char *frame = malloc(HEDDLE_WEBSOCKET_HEAD + plain), *payload = frame + HEDDLE_WEBSOCKET_HEAD;
    size_t deflated = frame ? heddle_websocket_deflate(&session->engine->websockets.deflater, RSTRING_PTR(message),
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

static bool send_message(heddle_push_session *session, heddle_websocket_opcode opcode, VALUE message)
{
    char head[HEDDLE_WEBSOCKET_HEAD];
    size_t size, used;
    char *frame = deflate_message(session, opcode, message, &size);
    if (frame) {
        bool written = session->carrier->write(session, frame, size, 0);
        session->written += size;
        free(frame);
        return written;
    }
    used = heddle_websocket_write_head(head, opcode, false, (size_t)RSTRING_LEN(message), NULL);
    session->written += used + (size_t)RSTRING_LEN(message);
    return session->carrier->write(session, head, used, message);
}

static void end_slow(heddle_push_session *session)
{
    session->engine->websockets.too_slow++;
    heddle_push_fail_session(session, HEDDLE_WEBSOCKET_POLICY, "the client reads too slowly");
}

/* -- time limits --------------------------------------------------------------------------------------------------- */

static int64_t find_next_check(const heddle_push_session *session)
{
    int64_t ping = heddle_push_next_ping(session), message = session->message_deadline;
    if (session->paused && !heddle_push_is_full(session)) /* waits for the handlers of other sockets */
        return heddle_add_duration(heddle_clock_coarse(), HEDDLE_DUE_INTERVAL);
    return message && (ping < 0 || message < ping) ? message : ping;
}

static void check_client(heddle_push_session *session, int64_t now)
{
    if (session->message_deadline && session->message_deadline <= now) {
        if (!session->paused) {
            end_unfinished(session, "the message came too slowly");
            return;
        }
        session->message_deadline = heddle_body_first_deadline(session->engine, now);
    }
    if (session->paused && !heddle_push_must_pause(session))
        heddle_push_resume_reading(session);
    else
        heddle_push_check_pings(session, now);
}

const heddle_push_framing heddle_push_frames = {
    .reads_frames = true,
    .feed = read_frames,
    .prepare = prepare_message,
    .send = send_message,
    .send_close = send_close,
    .next_check = find_next_check,
    .check = check_client,
    .release = release_reader,
    .end_slow = end_slow,
};
