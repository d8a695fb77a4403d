/* The methods of Heddle::HTTP::WebSocket::Session that handlers call. */

#include "binding.h"
#include "http/push/subscriptions.h"
#include "http/websocket/codec_ruby.h"

#include <ruby/encoding.h>
#include <ruby/io.h>

enum {
    MESSAGES_A_TURN = 64, /* messages that a fiber receives without a wait before other fibers run */
};

/* Returns NULL if the socket is closed, or in a forked child. */
static heddle_push_session *session_of(VALUE self)
{
    return heddle_push_handle_of(self)->session;
}

/* Returns NULL if the socket is not open, and in a forked child, which must not write to its parent's sockets. */
static heddle_push_session *open_session(VALUE self)
{
    heddle_push_session *session = session_of(self);
    return session && session->state == HEDDLE_PUSH_OPEN ? session : NULL;
}

/*
 * call-seq: write(data) -> true or false
 *
 * Sends a message: binary if the String's encoding is BINARY, otherwise text. Never waits; #pending returns the number
 * of bytes that are still queued. If they exceed websocket_output_limit, the socket is closed with the code 1008.
 * Returns false if the socket is closed. May be called on any thread. On an event stream, +data+ must be text, and is
 * sent as the data of an event.
 */
static VALUE client_write(VALUE self, VALUE data)
{
    StringValue(data);
    bool binary = rb_enc_get_index(data) == rb_ascii8bit_encindex();
    heddle_push_session *session = open_session(self);
    if (!session)
        return Qfalse;
    data = session->framing->prepare(data);
    session = open_session(self); /* the conversions may have run other code */
    if (!session)
        return Qfalse;
    heddle_push_hold(session);
    bool sent = heddle_push_send(session, binary ? HEDDLE_WEBSOCKET_BINARY : HEDDLE_WEBSOCKET_TEXT, data);
    heddle_push_release_hold(session);
    RB_GC_GUARD(data);
    return sent ? Qtrue : Qfalse;
}

/*
 * call-seq: close(code = 1000, reason = "") -> nil
 *
 * Begins the close handshake: queued messages are sent first, and no more messages are received. Idempotent. May be
 * called on any thread. Raises ArgumentError for a code that must not be sent (RFC 6455, section 7.4), and for a reason
 * of more than 123 bytes.
 */
static VALUE client_close(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 0, 2);
    unsigned code = argc > 0 ? NUM2UINT(argv[0]) : HEDDLE_WEBSOCKET_NORMAL;
    VALUE reason = argc > 1 ? argv[1] : rb_str_new(NULL, 0);
    StringValue(reason);
    reason = heddle_push_text_of(reason);
    if (!heddle_websocket_code_is_valid(code))
        rb_raise(rb_eArgError, "the close code is %u, but must be 1000 to 1003, 1007 to 1014 or 3000 to 4999", code);
    if (RSTRING_LEN(reason) > HEDDLE_WEBSOCKET_REASON)
        rb_raise(rb_eArgError, "the reason of a close frame has %ld bytes, at most %d are allowed", RSTRING_LEN(reason),
                 HEDDLE_WEBSOCKET_REASON);
    heddle_push_session *session = open_session(self);
    if (!session)
        return Qnil;
    heddle_push_hold(session);
    heddle_push_begin_close(session, code, RSTRING_PTR(reason), (size_t)RSTRING_LEN(reason));
    heddle_wait_wake(session->wait);
    heddle_push_release_hold(session);
    RB_GC_GUARD(reason);
    return Qnil;
}

/*
 * call-seq: close_code -> Integer or nil
 *
 * The code with which the socket has ended; nil until on_close is called or #receive returns nil. If the client has
 * sent a close frame, this is the frame's code, or 1005 if the frame has none. Otherwise it is the code that we have
 * sent, or 1006 if we have sent no close frame either.
 */
static VALUE client_close_code(VALUE self)
{
    unsigned code = heddle_push_handle_of(self)->code;
    return code ? UINT2NUM(code) : Qnil;
}

#define METHODS(X)                                                                                                     \
    /* Can messages be written? */                                                                                     \
    X(client_open_p, "open?", open_session(self) ? Qtrue : Qfalse)                                                     \
    /* The application's object whose callbacks are called. */                                                         \
    X(client_handler, "handler", heddle_push_handle_of(self)->handler)                                                 \
    /* call-seq: close_reason -> String or nil */                                                                      \
    X(client_close_reason, "close_reason", heddle_push_handle_of(self)->reason)                                        \
    /* Bytes that were written but not accepted by the kernel yet; 0 when the socket is closed. */                     \
    X(client_pending, "pending", SIZET2NUM(session_of(self) ? heddle_push_pending(session_of(self)) : 0))              \
    /* The option websocket_output_limit, in bytes; 0 when the socket is closed. */                                    \
    X(client_output_limit, "output_limit",                                                                             \
      ULL2NUM(session_of(self) ? session_of(self)->engine->websockets.output_limit : 0))
METHODS(HEDDLE_DEFINE_METHOD)

/* -- topics -------------------------------------------------------------------------------------------------------- */

static heddle_push_form form_named(VALUE name)
{
    VALUE text = SYMBOL_P(name) ? rb_sym2str(name) : Qnil;
    int form = NIL_P(text) ? -1 : heddle_push_find_form(RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    if (form < 0)
        rb_raise(rb_eArgError, "as: must be one of :text, :binary, :json, but is %+" PRIsVALUE, name);
    return (heddle_push_form)form;
}

heddle_slow_policy heddle_push_policy_named(VALUE name)
{
    static const char *const names[] = {"close", "coalesce", "drop"}; /* index: heddle_slow_policy */
    for (unsigned i = 0; i < 3; i++) {
        if (name == ID2SYM(rb_intern(names[i])))
            return (heddle_slow_policy)i;
    }
    rb_raise(rb_eArgError, "slow: must be one of :close, :coalesce, :drop, but is %+" PRIsVALUE, name);
}

/*
 * Raises ArgumentError unless the form allows this envelope: a frozen String, or nil. The caller has interned the
 * String, so it is the same object for all sockets with the same envelope. The subscription pins it.
 */
static void check_envelope(VALUE envelope, heddle_push_form form)
{
    size_t least = heddle_push_form_of(form)->min_envelope_size;
    if ((least > 0) != RB_TYPE_P(envelope, T_STRING) ||
        (least && (!OBJ_FROZEN(envelope) || (size_t)RSTRING_LEN(envelope) < least)))
        rb_raise(rb_eArgError, "envelope: must be a frozen String for Action Cable's forms, and nil for others, but is "
                 "%+" PRIsVALUE, envelope);
}

/*
 * call-seq: subscribe_to(topic, since, as, slow, envelope) -> String, false or nil
 *
 * See ServerSocket#subscribe. Returns the position after which the client receives messages, or nil if the socket is
 * closed. With an envelope, returns false if messages are lost and the client was sent a reset.
 */
static VALUE client_subscribe_to(VALUE self, VALUE topic, VALUE since, VALUE as, VALUE slow, VALUE envelope)
{
    heddle_position position = {NULL, 0};
    StringValue(topic);
    heddle_push_form form = form_named(as);
    heddle_slow_policy policy = heddle_push_policy_named(slow);
    check_envelope(envelope, form);
    if (!NIL_P(since)) {
        StringValue(since);
        position = (heddle_position){RSTRING_PTR(since), (size_t)RSTRING_LEN(since)};
    }
    heddle_push_session *session = open_session(self);
    if (!session)
        return Qnil;
    if (!session->framing->reads_frames)
        form = HEDDLE_PUSH_AS_EVENT;
    heddle_fanout *fanout = heddle_fanout_of(session->work.connection->sockets->loop);
    char text[HEDDLE_POSITION_SIZE];
    size_t size = 0;
    heddle_push_hold(session);
    const heddle_push_topic subject = {.name = RSTRING_PTR(topic), .size = (size_t)RSTRING_LEN(topic),
                                            .envelope = envelope, .form = form, .policy = policy};
    heddle_subscribe_result result = heddle_push_subscribe(session, fanout, &subject, position);
    const heddle_push_subscription *subscription =
        heddle_push_find_subscription(session, subject.name, subject.size, envelope);
    bool was_reset = subscription && subscription->was_reset && envelope != Qnil;
    if (subscription && subscription->subscriber.topic)
        size = heddle_subscriber_position(&subscription->subscriber, text);
    heddle_push_release_hold(session);
    RB_OBJ_WRITTEN(self, Qundef, envelope); /* until here, the reference on the stack keeps it alive */
    RB_GC_GUARD(envelope);
    RB_GC_GUARD(since);
    if (result == HEDDLE_TOPIC_TOO_LONG)
        rb_raise(rb_eArgError, "the topic has %ld bytes, the limit is %d", RSTRING_LEN(topic), HEDDLE_TOPIC_LIMIT);
    if (result == HEDDLE_SUBSCRIBE_FAILED)
        rb_raise(rb_eRuntimeError,
                 "the subscription failed: out of memory, or another process does not release the history's lock");
    if (was_reset)
        return Qfalse;
    return size ? rb_usascii_str_new(text, (long)size) : Qnil;
}

/* call-seq: unsubscribe_from(topic, envelope) -> true or false */
static VALUE client_unsubscribe_from(VALUE self, VALUE topic, VALUE envelope)
{
    StringValue(topic);
    heddle_push_session *session = session_of(self);
    return session && heddle_push_unsubscribe(session, RSTRING_PTR(topic), (size_t)RSTRING_LEN(topic), envelope)
               ? Qtrue
               : Qfalse;
}

/*
 * call-seq: write_frame(frame) -> true or false
 *
 * Sends a frame that Codec.frame has made without a mask. Returns false if the socket is closed, or if this call closes
 * it because more than websocket_output_limit bytes are pending. Must be called on the loop's thread.
 */
static VALUE client_write_frame(VALUE self, VALUE frame)
{
    StringValue(frame);
    frame = rb_str_new_frozen(frame);
    heddle_push_session *session = open_session(self);
    if (!session)
        return Qfalse;
    heddle_push_hold(session);
    bool sent = heddle_push_check_pace(session);
    if (sent && !heddle_push_send_frame(session, frame, false)) {
        heddle_push_stop_carrier(session);
        sent = false;
    }
    heddle_push_release_hold(session);
    RB_GC_GUARD(frame);
    return sent ? Qtrue : Qfalse;
}

/*
 * call-seq: farewell = frame
 *
 * Sets a frame, made by Codec.frame without a mask, that is sent before the close frame when the server stops or the
 * worker is replaced.
 */
static VALUE client_set_farewell(VALUE self, VALUE frame)
{
    heddle_push_handle *handle = heddle_push_handle_of(self);
    StringValue(frame);
    RB_OBJ_WRITE(self, &handle->farewell, rb_str_new_frozen(frame));
    return frame;
}

/*
 * call-seq: wake -> nil
 *
 * Schedules one call of the handler's on_wake, after the messages that were received earlier. Must be called on the
 * loop's thread.
 */
static VALUE client_wake(VALUE self)
{
    heddle_push_session *session = session_of(self);
    if (!session)
        return Qnil;
    heddle_connection_check_thread(session->work.connection);
    heddle_push_hold(session);
    heddle_push_queue_callback(session, HEDDLE_PUSH_ON_WAKE);
    heddle_push_release_hold(session);
    return Qnil;
}

/*
 * call-seq: prepare(scheduler) -> nil
 *
 * Creates the loop's fan-out (which delivers messages of topics), so that callbacks on other threads can subscribe.
 */
static VALUE websocket_prepare(VALUE self, VALUE scheduler)
{
    heddle_fanout_of(heddle_loop_get(scheduler));
    return Qnil;
}

/* -- waiting, for a fiber that serves the socket all the time ------------------------------------------------------ */

static heddle_push_session *own_session(VALUE self)
{
    heddle_push_session *session = session_of(self);
    if (session)
        heddle_connection_check_thread(session->work.connection);
    return session;
}

/*
 * call-seq: receive(timeout) -> String or nil
 *
 * Waits for the next message. Returns nil if the socket is closed and all its messages were returned. Raises
 * IO::TimeoutError after +timeout+ seconds; nil: no limit.
 */
static VALUE client_receive(VALUE self, VALUE seconds)
{
    int64_t timeout = heddle_parse_duration(seconds);
    int64_t deadline = timeout < 0 ? -1 : heddle_deadline_after(timeout);
    for (bool waited = false;; waited = true) {
        heddle_push_session *session = own_session(self);
        if (!session)
            return Qnil;
        if (waited && !session->first && session->paused && !heddle_push_must_pause(session)) {
            heddle_push_hold(session);
            heddle_push_resume_reading(session);
            heddle_push_release_hold(session);
            continue;
        }
        /* After a turn of messages, other fibers run for a tick, as a fiber with a fast client might never wait. */
        bool turn_ends = !waited && (session->first || session->paused) &&
                         session->waiting_count % MESSAGES_A_TURN == 0;
        if (session->first && !turn_ends)
            return heddle_websocket_message_string(heddle_push_pop_message(session));
        if (!session->first && session->state != HEDDLE_PUSH_OPEN) {
            heddle_push_keep_end(session, self);
            return Qnil;
        }
        if (session->paused) /* while this fiber waits, the socket need not pause for the handlers of other sockets */
            heddle_push_set_deadline(session);
        heddle_wait wait = {.slot = &session->wait, .deadline = turn_ends ? 0 : deadline, .part = HEDDLE_SPENT_CLIENT};
        if (heddle_wait_in_slot(session->work.connection->sockets->loop, wait,
                                "another fiber already waits for this socket's messages") == HEDDLE_WAIT_TIMED_OUT &&
            !turn_ends)
            rb_raise(rb_eIOTimeoutError, "no message was received in time");
    }
}

/*
 * call-seq: drain(most) -> true or false
 *
 * Waits until at most +most+ bytes are pending, and returns true. Returns false if the socket is closed.
 */
static VALUE client_drain(VALUE self, VALUE most)
{
    size_t low = NUM2SIZET(most);
    for (;;) {
        heddle_push_session *session = own_session(self);
        if (!session || session->state != HEDDLE_PUSH_OPEN)
            return Qfalse;
        if (heddle_push_pending(session) <= low)
            return Qtrue;
        heddle_push_hold(session);
        int result = heddle_push_flush(session);
        heddle_push_release_hold(session);
        session = own_session(self);
        if (session && result == -EAGAIN && heddle_push_pending(session) > low &&
            !session->carrier->wait_for_room(session))
            return Qfalse;
    }
}

void Init_heddle_push_methods(VALUE module, VALUE class)
{
    rb_define_method(class, "write", client_write, 1);
    rb_define_method(class, "close", client_close, -1);
    METHODS(HEDDLE_REGISTER_METHOD)
    rb_define_method(class, "close_code", client_close_code, 0);
    rb_define_method(class, "subscribe_to", client_subscribe_to, 5);
    rb_define_method(class, "unsubscribe_from", client_unsubscribe_from, 2);
    rb_define_method(class, "write_frame", client_write_frame, 1);
    rb_define_method(class, "wake", client_wake, 0);
    rb_define_method(class, "farewell=", client_set_farewell, 1);
    rb_define_singleton_method(module, "prepare", websocket_prepare, 1);
    rb_define_method(class, "receive", client_receive, 1);
    rb_define_method(class, "drain", client_drain, 1);
}
