/*
 * Hands a WebSocket off to another process: its descriptor, and a description of its handler and topics that Ruby
 * makes. Only a socket between two messages is handed off: nothing is queued, half read or unsent.
 */

#include "http/push/subscriptions.h"
#include "net/handoff.h"

#include <errno.h>
#include <ruby/io.h>
#include <unistd.h>

static bool is_at_rest(const heddle_websocket *socket)
{
    const heddle_connection *connection = socket->work.connection;
    const heddle_websocket_reader *reader = socket->reader;
    return socket->framing->reads_frames && socket->carrier == &heddle_websocket_h1_carrier &&
           socket->state == HEDDLE_WEBSOCKET_OPEN &&
           !socket->running && !socket->depth && !socket->due_callbacks && !socket->first &&
           !socket->wait && !socket->paused && !socket->defers_reading && !socket->retires && !socket->overflowed &&
           !socket->overrun &&
           !connection->error && !reader->in_message && !reader->message && !reader->head_size && !reader->left &&
           !heddle_connection_buffered(connection) && !connection->output.size && !connection->running;
}

static heddle_websocket *session_of(VALUE client)
{
    return heddle_websocket_handle_of(client)->session;
}

/*
 *  call-seq: movable? -> true or false
 *
 * Is it open, on a connection that can be handed off?
 */
static VALUE client_movable_p(VALUE self)
{
    const heddle_websocket *socket = session_of(self);
    return socket && socket->state == HEDDLE_WEBSOCKET_OPEN && socket->framing->reads_frames &&
                   socket->carrier == &heddle_websocket_h1_carrier &&
                   socket->work.connection->transport.operations == &heddle_plain_transport
               ? Qtrue
               : Qfalse;
}

/*
 * call-seq: received -> Integer or nil
 *
 * The number of received messages; nil: the socket can't be handed off now.
 */
static VALUE client_received(VALUE self)
{
    const heddle_websocket *socket = session_of(self);
    return socket && is_at_rest(socket) ? ULL2NUM(socket->traffic.received) : Qnil;
}

/*
 * call-seq: subscriptions -> [[topic, position, form, policy, envelope], ...]
 *
 * Form and policy are numbers.
 */
static VALUE client_subscriptions(VALUE self)
{
    const heddle_websocket *socket = session_of(self);
    VALUE all = rb_ary_new();
    for (const heddle_websocket_subscription *one = socket ? socket->subscriptions : NULL; one; one = one->next) {
        char position[HEDDLE_POSITION_SIZE];
        if (!one->subscriber.topic)
            continue;
        size_t size = heddle_subscriber_position(&one->subscriber, position);
        rb_ary_push(all,
                    rb_ary_new_from_args(5, rb_str_new(one->name, one->size), rb_usascii_str_new(position, (long)size),
                                         UINT2NUM(one->form), UINT2NUM(one->subscriber.policy), one->envelope));
    }
    return all;
}

/* Has it negotiated permessage-deflate? */
static VALUE client_deflates_p(VALUE self)
{
    const heddle_websocket *socket = session_of(self);
    return socket && heddle_websocket_deflates(socket) ? Qtrue : Qfalse;
}

/* The values for the log line at the socket's end, see label_of in client.c; nil: nothing is logged. */
static VALUE client_label(VALUE self)
{
    return heddle_websocket_handle_of(self)->label;
}

/*
 * call-seq: hand_off(socket, words) -> :done, :full, :busy or :fixed
 *
 * Sends the socket to another process, which reads this SEQPACKET socket with Sockets#accept_handoff. No callback is
 * called here any more. :full: the socket has no room now. :busy: input came meanwhile. :fixed: it is not plain TCP, or
 * the description is too long.
 */
static VALUE client_hand_off(VALUE self, VALUE io, VALUE words)
{
    heddle_websocket *socket = session_of(self);
    StringValue(words);
    const char number = HEDDLE_WEBSOCKETS;
    words = rb_str_append(rb_str_new(&number, 1), words);
    int target = rb_io_descriptor(rb_io_get_io(io));
    if (!socket || !is_at_rest(socket))
        return ID2SYM(rb_intern("busy"));
    heddle_connection *connection = socket->work.connection;
    int result = heddle_connection_send_session(connection, target, RSTRING_PTR(words), (size_t)RSTRING_LEN(words));
    RB_GC_GUARD(words);
    if (result < 0)
        return ID2SYM(rb_intern(result == -EOPNOTSUPP ? "fixed" : "full"));
    heddle_websocket_finish_handoff(socket);
    int fd = heddle_sockets_detach(connection);
    if (fd >= 0)
        close(fd);
    return ID2SYM(rb_intern("done"));
}

/* -- in the other process ------------------------------------------------------------------------------------------ */

static VALUE call_load(VALUE arguments)
{
    return rb_funcall(RARRAY_AREF(arguments, 0), rb_intern("load"), 1, RARRAY_AREF(arguments, 1));
}

/*
 * Returns handler, caller, label, topics, and whether permessage-deflate was negotiated; on failure a handler without
 * callbacks. May wait.
 */
VALUE heddle_websocket_load(heddle_engine *engine, VALUE words, int *state)
{
    VALUE arguments = rb_ary_new_from_args(2, engine->websockets.loader, words);
    return engine->marked && engine->websockets.loader ? rb_protect(call_load, arguments, state) : Qnil;
}

static VALUE call_resume(VALUE arguments)
{
    return rb_funcall(RARRAY_AREF(arguments, 0), rb_intern("resume"), 1, RARRAY_AREF(arguments, 1));
}

void heddle_websocket_resume(heddle_connection *connection, VALUE loaded)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_websocket *socket;
    VALUE client = heddle_websocket_new_client(engine, &heddle_websocket_h1_carrier, &heddle_push_frames,
                                               RARRAY_AREF(loaded, 0), RARRAY_AREF(loaded, 1), RARRAY_AREF(loaded, 2),
                                               &socket);
    if (NIL_P(client)) {
        heddle_sockets_close_connection(connection);
        return;
    }
    socket->wanted &= (uint8_t)~HEDDLE_WEBSOCKET_ON_OPEN; /* on_open was called in the other process */
    engine->websockets.opened--;
    socket->reader->allows_deflate = RTEST(rb_ary_entry(loaded, 4));
    socket->depth++; /* held, because resuming may close it */
    heddle_connection_start(connection, &heddle_websocket_protocol, socket);
    int state = 0;
    rb_protect(call_resume, rb_ary_new_from_args(2, client, RARRAY_AREF(loaded, 3)), &state);
    if (state)
        rb_set_errinfo(Qnil);
    if (state || NIL_P(RARRAY_AREF(loaded, 3)))
        heddle_websocket_begin_close(socket, HEDDLE_WEBSOCKET_RESTART, NULL, 0);
    heddle_websocket_release_hold(socket);
    RB_GC_GUARD(client);
}

void Init_heddle_websocket_handoff(VALUE session_class)
{
    rb_define_method(session_class, "movable?", client_movable_p, 0);
    rb_define_method(session_class, "received", client_received, 0);
    rb_define_method(session_class, "subscriptions", client_subscriptions, 0);
    rb_define_method(session_class, "deflates?", client_deflates_p, 0);
    rb_define_method(session_class, "label", client_label, 0);
    rb_define_method(session_class, "hand_off", client_hand_off, 2);
}
