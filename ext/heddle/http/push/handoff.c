/*
 * Hands off a WebSocket to another process: its descriptor, the state of its handler, and the position in each of its
 * topics. A socket can be handed off only between two messages, when nothing is queued, half read or unsent.
 *
 * The other process may run an older or newer Heddle. So increase VERSION when you change the fields, or the numbers in
 * them.
 */

#include "http/push/subscriptions.h"
#include "http/push/description.h"
#include "net/handoff.h"
#include "scheduler/take_errinfo.h"

#include <ruby/encoding.h>
#include <ruby/io.h>

enum {
    VERSION = 1,
};

/* Is this an open WebSocket over HTTP/1.1, with or without TLS, and is nothing under way? */
static bool is_at_rest(const heddle_push_session *session)
{
    const heddle_connection *connection = session->work.connection;
    const heddle_websocket_reader *reader = session->reader;
    return session->framing->reads_frames && session->carrier == &heddle_push_h1_carrier &&
           session->state == HEDDLE_PUSH_OPEN &&
           !session->running && !session->depth && !session->due_callbacks && !session->first &&
           !session->wait && !session->paused && !session->retires && !session->overflowed &&
           !session->overrun &&
           !connection->error && !reader->in_message && !reader->message && !reader->head_size && !reader->left &&
           !heddle_bytes_left(&connection->input) && !connection->output.size && !connection->running;
}

/*
 *  call-seq: movable? -> true or false
 *
 * Is the socket open, and can its connection be handed off? True for WebSockets over HTTP/1.1 without TLS.
 */
static VALUE client_movable_p(VALUE self)
{
    const heddle_push_session *session = heddle_push_handle_of(self)->session;
    return session && session->state == HEDDLE_PUSH_OPEN && session->framing->reads_frames &&
                   session->carrier == &heddle_push_h1_carrier &&
                   session->work.connection->transport.operations == &heddle_plain_transport
               ? Qtrue
               : Qfalse;
}

/*
 * call-seq: received -> Integer or nil
 *
 * The number of received messages. Returns nil if the socket can't be handed off now: it is in use, closed, or not a
 * WebSocket over HTTP/1.1.
 */
static VALUE client_received(VALUE self)
{
    const heddle_push_session *session = heddle_push_handle_of(self)->session;
    return session && is_at_rest(session) ? ULL2NUM(session->traffic.received) : Qnil;
}

/* Adds a String, or an empty field for nil. */
static void add_string(heddle_description_writer *fields, VALUE string)
{
    heddle_description_add(fields, NIL_P(string) ? "" : RSTRING_PTR(string),
                           NIL_P(string) ? 0 : (size_t)RSTRING_LEN(string));
}

static uint32_t count_topics(const heddle_push_session *session)
{
    uint32_t count = 0;
    for (const heddle_push_subscription *one = session->subscriptions; one; one = one->next)
        count += one->subscriber.topic != NULL;
    return count;
}

static void add_subscription(heddle_description_writer *fields, const heddle_push_subscription *subscription)
{
    char position[HEDDLE_POSITION_SIZE];
    if (!subscription->subscriber.topic)
        return;
    heddle_description_add(fields, subscription->name, subscription->size);
    heddle_description_add(fields, position, heddle_subscriber_position(&subscription->subscriber, position));
    const char *form = heddle_push_form_of(subscription->form)->name;
    heddle_description_add(fields, form, strlen(form));
    heddle_description_add_number(fields, subscription->subscriber.policy);
    add_string(fields, subscription->envelope);
}

/*
 * call-seq: hand_off(socket, name, state) -> :done, :full, :busy or :fixed
 *
 * Hands off the WebSocket to the process that reads from +socket+, a SEQPACKET socket, with Sockets#accept_handoff.
 * +name+: the class name of the handler; +state+: the state of the handler. Returns :done if the WebSocket was sent:
 * then no callback is called in this process any more. Returns :full if it can't be sent now, usually because +socket+
 * has no room; :busy if #received is nil; and :fixed if the WebSocket uses TLS or its description is too long.
 */
static VALUE client_hand_off(VALUE self, VALUE io, VALUE name, VALUE state)
{
    heddle_push_session *session = heddle_push_handle_of(self)->session;
    VALUE label = heddle_push_handle_of(self)->label;
    StringValue(name);
    StringValue(state);
    int target = rb_io_descriptor(rb_io_get_io(io));
    if (!session || !is_at_rest(session))
        return ID2SYM(rb_intern("busy"));
    heddle_connection *connection = session->work.connection;
    heddle_description_writer fields = heddle_description_begin(connection->sockets->scratch, HEDDLE_SCRATCH,
                                                   HEDDLE_WEBSOCKETS, VERSION);
    heddle_description_add_number(&fields, heddle_push_deflates(session));
    add_string(&fields, name);
    const char *encoding = rb_enc_name(rb_enc_get(state));
    heddle_description_add(&fields, encoding, strlen(encoding));
    add_string(&fields, state);
    add_string(&fields, label);
    heddle_description_add_number(&fields, count_topics(session));
    for (const heddle_push_subscription *one = session->subscriptions; one; one = one->next)
        add_subscription(&fields, one);
    int result = fields.fits ? heddle_connection_send_session(connection, target, fields.bytes, fields.size)
                            : -EOPNOTSUPP;
    RB_GC_GUARD(name);
    RB_GC_GUARD(state);
    if (result < 0)
        return ID2SYM(rb_intern(result == -EOPNOTSUPP ? "fixed" : "full"));
    heddle_push_finish_handoff(session);
    close(heddle_sockets_detach(connection));
    return ID2SYM(rb_intern("done"));
}

/* -- in the other process ------------------------------------------------------------------------------------------ */

typedef struct {
    bool deflates;
    heddle_description_field name, encoding, state, label;
    uint32_t topic_count;
    heddle_description_reader topics;
} socket_fields;

typedef struct {
    heddle_push_topic topic;
    heddle_position since;
    heddle_description_field envelope;
} topic_fields;

static void read_topic(heddle_description_reader *fields, topic_fields *into)
{
    heddle_description_field name = heddle_description_take(fields), since = heddle_description_take(fields);
    into->topic = (heddle_push_topic){
        .name = name.bytes, .size = name.size,
    };
    into->since = (heddle_position){since.bytes, since.size};
    heddle_description_field name_of_form = heddle_description_take(fields);
    int form = heddle_push_find_form(name_of_form.bytes, name_of_form.size);
    into->topic.policy = heddle_description_take_number(fields, HEDDLE_SLOW_DROP);
    into->envelope = heddle_description_take(fields);
    fields->valid = fields->valid && form >= 0;
    if (!fields->valid)
        return;
    into->topic.form = (heddle_push_form)form;
    size_t least = heddle_push_form_of((unsigned)form)->min_envelope_size;
    fields->valid = least ? into->envelope.size >= least : into->envelope.size == 0;
}

/* Is the field empty, or a label of four parts (label_of in session_ruby.c)? */
static bool is_label(heddle_description_field label)
{
    unsigned parts = 0;
    for (size_t i = 0; i < label.size; i++)
        parts += label.bytes[i] == 0;
    return label.size == 0 || parts == 3;
}

/*
 * Returns false if the fields are invalid, come from an incompatible version of Heddle, or describe a socket with
 * compression and this process has no zlib.
 */
static bool read_socket(VALUE description, socket_fields *into)
{
    heddle_description_reader fields = heddle_description_open(RSTRING_PTR(description),
                                                               (size_t)RSTRING_LEN(description), VERSION);
    into->deflates = heddle_description_take_number(&fields, 1);
    into->name = heddle_description_take(&fields);
    into->encoding = heddle_description_take(&fields);
    into->state = heddle_description_take(&fields);
    into->label = heddle_description_take(&fields);
    into->topic_count = heddle_description_take_number(&fields, HEDDLE_SCRATCH);
    into->topics = fields;
    topic_fields topic;
    for (uint32_t i = 0; i < into->topic_count; i++)
        read_topic(&fields, &topic);
    return heddle_description_is_complete(&fields) && is_label(into->label) &&
           (heddle_deflate_is_available() || !into->deflates);
}

/*
 * Calls the loader with the handler's class name and state. If the description can't be read, both are nil. Returns the
 * Array for heddle_push_resume.
 */
static VALUE call_load(VALUE arguments)
{
    VALUE description = RARRAY_AREF(arguments, 1), name = Qnil, state = Qnil;
    socket_fields fields;
    if (read_socket(description, &fields)) {
        name = rb_utf8_str_new(fields.name.bytes, (long)fields.name.size);
        char encoding[64] = "";
        memcpy(encoding, fields.encoding.bytes, fields.encoding.size < 64 ? fields.encoding.size : 0);
        state = rb_enc_str_new(fields.state.bytes, (long)fields.state.size, rb_enc_find(encoding));
    }
    VALUE loaded = rb_funcall(RARRAY_AREF(arguments, 0), rb_intern("load"), 2, name, state);
    heddle_push_handler handler = heddle_push_examine(rb_ary_entry(loaded, 0), rb_ary_entry(loaded, 1));
    RB_GC_GUARD(loaded);
    return rb_ary_new_from_args(5, handler.object, handler.caller, description, handler.socket_class,
                                INT2FIX(handler.wanted));
}

/*
 * Returns an Array of the handler, the object that calls the handler, the description, the class of the socket and the
 * handler's callbacks. The handler is nil if the socket must be closed. Returns nil if there is no loader, or if the
 * loader raised (then `*state` is not 0). May block the fiber.
 */
VALUE heddle_push_load(heddle_engine *engine, VALUE description, int *state)
{
    if (!engine->has_object || !engine->websockets.loader)
        return Qnil;
    VALUE loaded = rb_protect(call_load, rb_assoc_new(engine->websockets.loader, description), state);
    return *state ? Qnil : loaded;
}

typedef struct {
    heddle_push_session *session;
    VALUE client, handler;
    socket_fields *fields;
} resumption;

/* Subscribes to each topic again, from its position on, and calls on_resume. */
static VALUE resume_topics(VALUE data)
{
    resumption *resumption = (void *)data;
    heddle_push_session *session = resumption->session;
    heddle_fanout *fanout = heddle_fanout_of(session->work.connection->sockets->loop);
    for (uint32_t i = 0; i < resumption->fields->topic_count && session->state == HEDDLE_PUSH_OPEN; i++) {
        topic_fields fields;
        read_topic(&resumption->fields->topics, &fields);
        VALUE envelope = Qnil;
        if (fields.envelope.size)
            envelope = rb_enc_interned_str(fields.envelope.bytes, (long)fields.envelope.size, rb_utf8_encoding());
        fields.topic.envelope = envelope;
        if (heddle_push_subscribe(session, fanout, &fields.topic, fields.since) != HEDDLE_SUBSCRIBED)
            rb_raise(rb_eRuntimeError, "the new process failed to subscribe to a topic");
        RB_OBJ_WRITTEN(resumption->client, Qundef, envelope);
    }
    ID on_resume = rb_intern("on_resume");
    if (rb_respond_to(resumption->handler, on_resume))
        rb_funcall(resumption->handler, on_resume, 1, resumption->client);
    return Qnil;
}

/* Logs the error that rb_protect has caught. */
static void report_failure(VALUE callbacks, VALUE handler)
{
    int state = 0;
    VALUE error = heddle_take_errinfo(), arguments[] = {handler, error};
    if (heddle_is_exception(error))
        heddle_call_protected(callbacks, rb_intern("resume_failed"), 2, arguments, &state);
    if (state)
        heddle_take_errinfo();
}

void heddle_push_resume(heddle_connection *connection, VALUE loaded)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    const heddle_push_handler handler = {RARRAY_AREF(loaded, 0), RARRAY_AREF(loaded, 1), RARRAY_AREF(loaded, 3),
                                         (uint8_t)FIX2UINT(RARRAY_AREF(loaded, 4))};
    VALUE description = RARRAY_AREF(loaded, 2), label = Qnil;
    socket_fields fields;
    bool valid = read_socket(description, &fields);
    if (valid && fields.label.size)
        label = rb_str_freeze(rb_str_new(fields.label.bytes, (long)fields.label.size));
    heddle_push_session *session;
    VALUE client = heddle_push_new_client(engine, &heddle_push_h1_carrier, &heddle_push_frames, &handler, label,
                                          &session);
    if (NIL_P(client)) {
        heddle_sockets_close_connection(connection);
        return;
    }
    session->wanted &= (uint8_t)~HEDDLE_PUSH_ON_OPEN; /* on_open was called in the other process */
    engine->websockets.opened--;
    session->reader->allows_deflate = valid && fields.deflates;
    heddle_push_hold(session); /* because resuming may close the session */
    heddle_connection_start(connection, &heddle_push_protocol, session);
    resumption resumption = {.session = session, .client = client, .handler = handler.object, .fields = &fields};
    int state = 0;
    if (!NIL_P(handler.object))
        rb_protect(resume_topics, (VALUE)&resumption, &state);
    if (state)
        report_failure(handler.caller, handler.object);
    if (state || NIL_P(handler.object))
        heddle_push_begin_close(session, HEDDLE_WEBSOCKET_RESTART, NULL, 0);
    heddle_push_release_hold(session);
    RB_GC_GUARD(client);
    RB_GC_GUARD(description);
}

void Init_heddle_push_handoff(VALUE session_class)
{
    rb_define_method(session_class, "movable?", client_movable_p, 0);
    rb_define_method(session_class, "received", client_received, 0);
    rb_define_method(session_class, "hand_off", client_hand_off, 3);
}
