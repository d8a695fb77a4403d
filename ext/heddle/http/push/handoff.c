/*
 * Hands a WebSocket off to another process: its descriptor, the state of its handler, and its topics, each with its
 * position. A socket is handed off only between two messages, when nothing is queued, half read or unsent.
 *
 * The other process may run an older or newer Heddle. A change of the fields, or of the numbers in them, changes
 * VERSION.
 */

#include "http/push/subscriptions.h"
#include "http/push/words.h"
#include "net/handoff.h"

#include <ruby/encoding.h>
#include <ruby/io.h>

enum {
    VERSION = 1,
};

static bool is_at_rest(const heddle_push_session *socket)
{
    const heddle_connection *connection = socket->work.connection;
    const heddle_websocket_reader *reader = socket->reader;
    return socket->framing->reads_frames && socket->carrier == &heddle_push_h1_carrier &&
           socket->state == HEDDLE_PUSH_OPEN &&
           !socket->running && !socket->depth && !socket->due_callbacks && !socket->first &&
           !socket->wait && !socket->paused && !socket->retires && !socket->overflowed &&
           !socket->overrun &&
           !connection->error && !reader->in_message && !reader->message && !reader->head_size && !reader->left &&
           !heddle_connection_buffered(connection) && !connection->output.size && !connection->running;
}

static heddle_push_session *session_of(VALUE client)
{
    return heddle_push_handle_of(client)->session;
}

/*
 *  call-seq: movable? -> true or false
 *
 * Is it open, on a connection that can be handed off?
 */
static VALUE client_movable_p(VALUE self)
{
    const heddle_push_session *socket = session_of(self);
    return socket && socket->state == HEDDLE_PUSH_OPEN && socket->framing->reads_frames &&
                   socket->carrier == &heddle_push_h1_carrier &&
                   socket->work.connection->transport.operations == &heddle_plain_transport
               ? Qtrue
               : Qfalse;
}

/*
 * call-seq: received -> Integer or nil
 *
 * The number of received messages, or nil if the socket can't be handed off now.
 */
static VALUE client_received(VALUE self)
{
    const heddle_push_session *socket = session_of(self);
    return socket && is_at_rest(socket) ? ULL2NUM(socket->traffic.received) : Qnil;
}

/* Adds a String, or an empty field for nil. */
static void add_string(heddle_words_writer *words, VALUE string)
{
    heddle_words_add(words, NIL_P(string) ? "" : RSTRING_PTR(string), NIL_P(string) ? 0 : (size_t)RSTRING_LEN(string));
}

static uint32_t count_topics(const heddle_push_session *socket)
{
    uint32_t count = 0;
    for (const heddle_push_subscription *one = socket->subscriptions; one; one = one->next)
        count += one->subscriber.topic != NULL;
    return count;
}

static void add_subscription(heddle_words_writer *words, const heddle_push_subscription *subscription)
{
    char position[HEDDLE_POSITION_SIZE];
    if (!subscription->subscriber.topic)
        return;
    heddle_words_add(words, subscription->name, subscription->size);
    heddle_words_add(words, position, heddle_subscriber_position(&subscription->subscriber, position));
    const char *form = heddle_push_form_of(subscription->form)->name;
    heddle_words_add(words, form, strlen(form));
    heddle_words_add_number(words, subscription->subscriber.policy);
    add_string(words, subscription->envelope);
}

/*
 * call-seq: hand_off(socket, name, state) -> :done, :full, :busy or :fixed
 *
 * Sends the socket to another process, which reads this SEQPACKET socket with Sockets#accept_handoff. Also sends the
 * name of the handler's class and the handler's state. From then on no callback is called in this process. Returns
 * :full if the SEQPACKET socket has no room now, :busy if input came meanwhile, and :fixed if the WebSocket is not on
 * plain TCP or the description is too long.
 */
static VALUE client_hand_off(VALUE self, VALUE io, VALUE name, VALUE state)
{
    heddle_push_session *socket = session_of(self);
    VALUE label = heddle_push_handle_of(self)->label;
    StringValue(name);
    StringValue(state);
    int target = rb_io_descriptor(rb_io_get_io(io));
    if (!socket || !is_at_rest(socket))
        return ID2SYM(rb_intern("busy"));
    heddle_connection *connection = socket->work.connection;
    heddle_words_writer words = heddle_words_begin(connection->sockets->scratch, HEDDLE_SCRATCH,
                                                   HEDDLE_WEBSOCKETS, VERSION);
    heddle_words_add_number(&words, heddle_push_deflates(socket));
    add_string(&words, name);
    const char *encoding = rb_enc_name(rb_enc_get(state));
    heddle_words_add(&words, encoding, strlen(encoding));
    add_string(&words, state);
    add_string(&words, label);
    heddle_words_add_number(&words, count_topics(socket));
    for (const heddle_push_subscription *one = socket->subscriptions; one; one = one->next)
        add_subscription(&words, one);
    int result = words.fits ? heddle_connection_send_session(connection, target, words.bytes, words.size)
                            : -EOPNOTSUPP;
    RB_GC_GUARD(name);
    RB_GC_GUARD(state);
    if (result < 0)
        return ID2SYM(rb_intern(result == -EOPNOTSUPP ? "fixed" : "full"));
    heddle_push_finish_handoff(socket);
    close(heddle_sockets_detach(connection));
    return ID2SYM(rb_intern("done"));
}

/* -- in the other process ------------------------------------------------------------------------------------------ */

typedef struct {
    bool deflates;
    heddle_words_field name, encoding, state, label;
    uint32_t topic_count;
    heddle_words_reader topics;
} socket_words;

typedef struct {
    heddle_push_topic topic;
    heddle_position since;
    heddle_words_field envelope;
} topic_words;

static void read_topic(heddle_words_reader *words, topic_words *into)
{
    heddle_words_field name = heddle_words_take(words), since = heddle_words_take(words);
    into->topic = (heddle_push_topic){
        .name = name.bytes, .size = name.size,
    };
    into->since = (heddle_position){since.bytes, since.size};
    heddle_words_field name_of_form = heddle_words_take(words);
    int form = heddle_push_find_form(name_of_form.bytes, name_of_form.size);
    into->topic.policy = heddle_words_take_number(words, HEDDLE_SLOW_DROP);
    into->envelope = heddle_words_take(words);
    words->valid = words->valid && form >= 0;
    if (!words->valid)
        return;
    into->topic.form = (heddle_push_form)form;
    size_t least = heddle_push_form_of((unsigned)form)->least_envelope;
    words->valid = least ? into->envelope.size >= least : into->envelope.size == 0;
}

/* Is the field empty, or a label as label_of in client.c makes it? */
static bool is_label(heddle_words_field label)
{
    unsigned parts = 0;
    for (size_t i = 0; i < label.size; i++)
        parts += label.bytes[i] == 0;
    return label.size == 0 || parts == 3;
}

/* Returns false if the fields are of another version of Heddle, or damaged. */
static bool read_socket(VALUE description, socket_words *into)
{
    heddle_words_reader words = heddle_words_open(RSTRING_PTR(description), (size_t)RSTRING_LEN(description), VERSION);
    into->deflates = heddle_words_take_number(&words, 1);
    into->name = heddle_words_take(&words);
    into->encoding = heddle_words_take(&words);
    into->state = heddle_words_take(&words);
    into->label = heddle_words_take(&words);
    into->topic_count = heddle_words_take_number(&words, HEDDLE_SCRATCH);
    into->topics = words;
    topic_words topic;
    for (uint32_t i = 0; i < into->topic_count; i++)
        read_topic(&words, &topic);
    return heddle_words_are_complete(&words) && is_label(into->label) &&
           (heddle_deflate_is_available() || !into->deflates);
}

/*
 * Calls the loader with the name of the handler's class and its state, or without them if the description can't be
 * read.
 */
static VALUE call_load(VALUE arguments)
{
    VALUE description = RARRAY_AREF(arguments, 1), name = Qnil, state = Qnil;
    socket_words words;
    if (read_socket(description, &words)) {
        name = rb_utf8_str_new(words.name.bytes, (long)words.name.size);
        char encoding[64] = "";
        memcpy(encoding, words.encoding.bytes, words.encoding.size < 64 ? words.encoding.size : 0);
        state = rb_enc_str_new(words.state.bytes, (long)words.state.size, rb_enc_find(encoding));
    }
    RB_GC_GUARD(description);
    return rb_funcall(RARRAY_AREF(arguments, 0), rb_intern("load"), 2, name, state);
}

/* Returns handler, caller and description. The handler is nil if the socket must be closed. May wait. */
VALUE heddle_push_load(heddle_engine *engine, VALUE description, int *state)
{
    if (!engine->marked || !engine->websockets.loader)
        return Qnil;
    VALUE loaded = rb_protect(call_load, rb_assoc_new(engine->websockets.loader, description), state);
    return *state ? Qnil : rb_ary_new_from_args(3, rb_ary_entry(loaded, 0), rb_ary_entry(loaded, 1), description);
}

typedef struct {
    heddle_push_session *socket;
    VALUE client, handler;
    socket_words *words;
} resumption;

/* Subscribes again to each topic after its position, and calls on_resume. */
static VALUE resume_topics(VALUE data)
{
    resumption *resumption = (void *)data;
    heddle_push_session *socket = resumption->socket;
    heddle_fanout *fanout = heddle_fanout_of(socket->work.connection->sockets->loop);
    for (uint32_t i = 0; i < resumption->words->topic_count && socket->state == HEDDLE_PUSH_OPEN; i++) {
        topic_words words;
        read_topic(&resumption->words->topics, &words);
        VALUE envelope = Qnil;
        if (words.envelope.size)
            envelope = rb_enc_interned_str(words.envelope.bytes, (long)words.envelope.size, rb_utf8_encoding());
        words.topic.envelope = envelope;
        if (heddle_push_subscribe(socket, fanout, &words.topic, words.since) != HEDDLE_SUBSCRIBED)
            rb_raise(rb_eRuntimeError, "the subscription failed");
        RB_OBJ_WRITTEN(resumption->client, Qundef, envelope);
    }
    ID on_resume = rb_intern("on_resume");
    if (rb_respond_to(resumption->handler, on_resume))
        rb_funcall(resumption->handler, on_resume, 1, resumption->client);
    return Qnil;
}

void heddle_push_resume(heddle_connection *connection, VALUE loaded)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    VALUE handler = RARRAY_AREF(loaded, 0), description = RARRAY_AREF(loaded, 2), label = Qnil;
    socket_words words;
    bool valid = read_socket(description, &words);
    if (valid && words.label.size)
        label = rb_str_freeze(rb_str_new(words.label.bytes, (long)words.label.size));
    heddle_push_session *socket;
    VALUE client = heddle_push_new_client(engine, &heddle_push_h1_carrier, &heddle_push_frames, handler,
                                          RARRAY_AREF(loaded, 1), label, &socket);
    if (NIL_P(client)) {
        heddle_sockets_close_connection(connection);
        return;
    }
    socket->wanted &= (uint8_t)~HEDDLE_PUSH_ON_OPEN; /* on_open was called in the other process */
    engine->websockets.opened--;
    socket->reader->allows_deflate = valid && words.deflates;
    socket->depth++; /* held, because resuming may close it */
    heddle_connection_start(connection, &heddle_push_protocol, socket);
    resumption resumption = {.socket = socket, .client = client, .handler = handler, .words = &words};
    int state = 0;
    if (!NIL_P(handler))
        rb_protect(resume_topics, (VALUE)&resumption, &state);
    if (state)
        rb_set_errinfo(Qnil);
    if (state || NIL_P(handler))
        heddle_push_begin_close(socket, HEDDLE_WEBSOCKET_RESTART, NULL, 0);
    heddle_push_release_hold(socket);
    RB_GC_GUARD(client);
    RB_GC_GUARD(description);
}

void Init_heddle_push_handoff(VALUE session_class)
{
    rb_define_method(session_class, "movable?", client_movable_p, 0);
    rb_define_method(session_class, "received", client_received, 0);
    rb_define_method(session_class, "hand_off", client_hand_off, 3);
}
