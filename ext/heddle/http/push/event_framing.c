/*
 * The framing of event streams (server-sent events). This file also has event streams without a handler, which only
 * send the messages of a topic until the client leaves.
 */

#include "http/push/event_text.h"
#include "http/push/subscriptions.h"
#include "http/push/description.h"
#include "scheduler/take_errinfo.h"

#include <ruby/encoding.h>

enum {
    DISCARDED = 65536, /* bytes of input that are discarded; a client that sends more is disconnected */
    VERSION = 1,       /* the version of the fields that describe a stream to another process */
};

/* -- the framing --------------------------------------------------------------------------------------------------- */

static size_t discard_input(heddle_push_session *session, char *bytes, size_t size)
{
    session->lingered += size;
    if (session->lingered > DISCARDED)
        heddle_push_stop_carrier(session);
    return size;
}

/* Makes the text of an event. A BINARY String is treated as UTF-8. */
static VALUE prepare_event(VALUE data)
{
    if (rb_enc_get_index(data) == rb_ascii8bit_encindex())
        data = rb_enc_associate(rb_str_dup(data), rb_utf8_encoding());
    return heddle_event_text(heddle_push_text_of(data));
}

static bool send_event(heddle_push_session *session, heddle_websocket_opcode opcode, VALUE event)
{
    session->written += (uint64_t)RSTRING_LEN(event);
    return session->carrier->write(session, NULL, 0, event);
}

/* Queues a part of the content, as a chunk if the stream is chunked. */
static bool send_text(heddle_push_session *session, const char *text, size_t size)
{
    char head[HEDDLE_EVENTS_TEXT];
    if (size == 0)
        return true;
    session->written += size;
    if (!session->chunked)
        return session->carrier->write(session, text, size, 0);
    size_t used = heddle_chunk_head(head, size);
    session->written += used + 2;
    return session->carrier->write(session, head, used, 0) && session->carrier->write(session, text, size, 0) &&
           session->carrier->write(session, "\r\n", 2, 0);
}

bool heddle_push_send_comment(heddle_push_session *session)
{
    return send_text(session, ":\n\n", 3);
}

/*
 * An event stream has no close frame: the end of the content ends it. If the server stops, or needs the connection for
 * other clients, sends a random reconnection time first, so that clients don't reconnect all at once. Otherwise sends a
 * comment: if another thread closes the stream, only output wakes the loop.
 */
static bool send_farewell(heddle_push_session *session, unsigned code, const char *reason, size_t size)
{
    (void)code, (void)reason, (void)size;
    char text[HEDDLE_EVENTS_TEXT];
    if (!(session->retires ? send_text(session, text, heddle_events_farewell(text, sizeof(text)))
                           : heddle_push_send_comment(session)))
        return false;
    return !session->chunked || session->carrier->write(session, "0\r\n\r\n", 5, 0);
}

/* Resets the connection or the HTTP/2 stream, so that the client sees that it has missed events. */
static void end_slow(heddle_push_session *session)
{
    if (heddle_push_has_client(session))
        session->engine->websockets.too_slow++;
    session->code = HEDDLE_WEBSOCKET_POLICY;
    heddle_push_reset_carrier(session);
}

const heddle_push_framing heddle_push_events = {
    .feed = discard_input,
    .prepare = prepare_event,
    .send = send_event,
    .send_close = send_farewell,
    .next_check = heddle_push_next_comment,
    .check = heddle_push_check_comments,
    .end_slow = end_slow,
};

/* -- streams without a handler ------------------------------------------------------------------------------------- */

/* Returns the stream's only subscription, or NULL if the stream has none any more. */
static const heddle_push_subscription *subscription_of(const heddle_push_session *session)
{
    return session->subscriptions && session->subscriptions->subscriber.topic ? session->subscriptions : NULL;
}

/* Subscribes to the topic; ends the stream if that fails. The session must be held (heddle_push_hold). */
static void subscribe(heddle_push_session *session, heddle_fanout *fanout, heddle_push_topic *topic,
                      heddle_position since)
{
    topic->envelope = Qnil;
    topic->form = session->chunked ? HEDDLE_PUSH_AS_EVENT_CHUNK : HEDDLE_PUSH_AS_EVENT;
    if (session->state == HEDDLE_PUSH_OPEN &&
        heddle_push_subscribe(session, fanout, topic, since) != HEDDLE_SUBSCRIBED)
        heddle_push_reset_carrier(session);
}

/* Ends the stream at once if the server is stopping. The session must be held. */
static void retire_if_draining(heddle_push_session *session)
{
    const heddle_connection *connection = session->work.connection;
    if (connection && (connection->sockets->draining || session->engine->draining) &&
        heddle_push_has_to_retire(session))
        heddle_push_retire(session);
}

/* Sends the beginning of the stream, and subscribes to the topic. The session must be held. */
static void begin_events(heddle_push_session *session, heddle_fanout *fanout, heddle_push_topic *topic, VALUE since,
                         VALUE beginning)
{
    heddle_position position = {0};
    if (!NIL_P(since))
        position = (heddle_position){RSTRING_PTR(since), (size_t)RSTRING_LEN(since)};
    bool sent = session->state != HEDDLE_PUSH_OPEN ||
                send_text(session, RSTRING_PTR(beginning), (size_t)RSTRING_LEN(beginning));
    subscribe(session, fanout, topic, position);
    const heddle_push_subscription *subscription = subscription_of(session);
    char id[HEDDLE_EVENTS_TEXT];
    if (sent && subscription && !position.text)
        sent = send_text(session, id, heddle_events_first_id(&subscription->subscriber, id, sizeof(id)));
    if (!sent)
        heddle_push_reset_carrier(session);
    retire_if_draining(session);
}

/*
 * call-seq: stream_events(status, topic, since, lines, beginning, policy, handoff) -> true or false
 *
 * Sends the messages of `topic` as events until the client leaves. The caller has already written the response's head.
 * This exchange can't be used afterwards. `since`: the position from which to resume, or nil to send only new messages.
 * `lines`: added to each event, such as "event: price\n". `beginning`: sent first, such as "retry: 1000\n\n".
 * `policy`: for a client that reads too slowly: :close, :coalesce or :drop. `handoff`: whether a process that replaces
 * this one continues the stream; otherwise the client reconnects. Returns false, and does nothing, if the connection
 * can't be taken over now: the request is not read completely, more input follows it, or a fiber waits to write.
 */
static VALUE stream_events(int count, VALUE *arguments, VALUE self)
{
    rb_check_arity(count, 7, 7);
    heddle_exchange_handle *exchange = heddle_exchange_handle_of(self);
    int status = NUM2INT(arguments[0]);
    VALUE name = arguments[1], since = arguments[2], lines = arguments[3], beginning = arguments[4];
    heddle_slow_policy policy = heddle_push_policy_named(arguments[5]);
    Check_Type(name, T_STRING);
    Check_Type(lines, T_STRING);
    Check_Type(beginning, T_STRING);
    if (!NIL_P(since))
        Check_Type(since, T_STRING);
    if (RSTRING_LEN(name) > HEDDLE_TOPIC_LIMIT)
        rb_raise(rb_eArgError, "the topic has %ld bytes, the limit is %d", RSTRING_LEN(name), HEDDLE_TOPIC_LIMIT);
    if (RSTRING_LEN(lines) > HEDDLE_EVENTS_LINES)
        rb_raise(rb_eArgError, "the lines added to each event have %ld bytes, the limit is %d", RSTRING_LEN(lines),
                 HEDDLE_EVENTS_LINES);
    heddle_fanout *fanout = heddle_fanout_of(heddle_exchange_writable_connection(exchange)->sockets->loop);
    const heddle_push_carrier *carrier = heddle_push_carrier_of(exchange);
    if (!carrier->is_free(exchange))
        return Qfalse;
    bool chunked = exchange->chunking;
    if (chunked)
        lines = heddle_event_chunk(lines);
    heddle_push_session *session = heddle_push_session_new(exchange->engine, carrier, &heddle_push_events);
    if (!session)
        rb_memerror();
    session->chunked = chunked;
    session->stays = !RTEST(arguments[6]);
    heddle_push_topic topic = {
        .name = RSTRING_PTR(name), .size = (size_t)RSTRING_LEN(name), .policy = policy,
        .lines = RSTRING_PTR(lines), .lines_size = (size_t)RSTRING_LEN(lines),
    };
    heddle_push_hold(session);
    carrier->begin(session, exchange, status, Qnil);
    begin_events(session, fanout, &topic, since, beginning);
    heddle_push_release_hold(session);
    RB_GC_GUARD(name);
    RB_GC_GUARD(since);
    RB_GC_GUARD(lines);
    RB_GC_GUARD(beginning);
    RB_GC_GUARD(self);
    return Qtrue;
}

/* -- between processes --------------------------------------------------------------------------------------------- */

static ssize_t describe_stream(const heddle_push_session *session, char *bytes)
{
    const heddle_push_subscription *subscription = subscription_of(session);
    if (session->state != HEDDLE_PUSH_OPEN || session->retires || session->work.connection->error || !subscription ||
        subscription->subscriber.behind || heddle_push_pending(session))
        return -1;
    char position[HEDDLE_POSITION_SIZE];
    heddle_description_writer fields = heddle_description_begin(bytes, HEDDLE_SESSION_DESCRIPTION,
                                                                HEDDLE_EVENT_STREAMS, VERSION);
    heddle_description_add_number(&fields, session->chunked);
    heddle_description_add_number(&fields, subscription->subscriber.policy);
    heddle_description_add(&fields, subscription->name, subscription->size);
    heddle_description_add(&fields, subscription->name + subscription->size, subscription->lines_size);
    heddle_description_add(&fields, position, heddle_subscriber_position(&subscription->subscriber, position));
    return fields.fits ? (ssize_t)fields.size : -1;
}

ssize_t heddle_events_describe(heddle_connection *connection, char *bytes)
{
    heddle_push_session *session = heddle_push_session_of(connection);
    if (heddle_push_has_client(session) || session->stays)
        return -1;
    heddle_push_hold(session);
    if (heddle_push_pending(session))
        heddle_push_flush(session);
    ssize_t size = describe_stream(session, bytes);
    heddle_push_release_hold(session);
    return size;
}

static VALUE find_fanout(VALUE loop)
{
    return (VALUE)heddle_fanout_of((heddle_loop *)loop);
}

typedef struct {
    bool chunked;
    heddle_push_topic topic;
    heddle_position since;
} stream_fields;

/* Reads the fields. Returns false if they are invalid, or come from an incompatible version of Heddle. */
static bool read_stream(VALUE description, stream_fields *into)
{
    heddle_description_reader fields = heddle_description_open(RSTRING_PTR(description),
                                                               (size_t)RSTRING_LEN(description), VERSION);
    into->chunked = heddle_description_take_number(&fields, 1);
    heddle_slow_policy policy = heddle_description_take_number(&fields, HEDDLE_SLOW_DROP);
    heddle_description_field name = heddle_description_take(&fields), lines = heddle_description_take(&fields),
                       position = heddle_description_take(&fields);
    into->topic = (heddle_push_topic){
        .name = name.bytes, .size = name.size, .lines = lines.bytes, .lines_size = lines.size, .policy = policy,
    };
    into->since = (heddle_position){position.bytes, position.size};
    return heddle_description_is_complete(&fields) && lines.size <= UINT16_MAX;
}

static void resume_stream(heddle_connection *connection, VALUE description)
{
    stream_fields fields;
    int state = 0;
    heddle_fanout *fanout = (heddle_fanout *)rb_protect(find_fanout, (VALUE)connection->sockets->loop, &state);
    if (state)
        heddle_take_errinfo();
    heddle_push_session *session = NULL;
    if (!state && read_stream(description, &fields))
        session = heddle_push_session_new(heddle_engine_of_connection(connection), &heddle_push_h1_carrier,
                                         &heddle_push_events);
    if (!session) {
        heddle_transport_will_reset(&connection->transport);
        heddle_sockets_close_connection(connection);
        return;
    }
    session->chunked = fields.chunked;
    heddle_push_hold(session);
    heddle_connection_start(connection, &heddle_push_protocol, session);
    subscribe(session, fanout, &fields.topic, fields.since);
    retire_if_draining(session);
    heddle_push_release_hold(session);
    RB_GC_GUARD(description);
}

/*
 * Returns the description. If it can't be read, reports that and returns nil. Then the connection is closed, and the
 * client reconnects with its last position.
 */
static VALUE load_stream(heddle_engine *engine, VALUE description, int *state)
{
    stream_fields fields;
    if (read_stream(description, &fields))
        return description;
    if (engine->has_object && engine->websockets.loader)
        heddle_call_protected(engine->websockets.loader, rb_intern("refuse_stream"), 0, NULL, state);
    return Qnil;
}

const heddle_http_protocol heddle_events_http_protocol = {
    .load = load_stream,
    .resume = resume_stream,
};

void Init_heddle_events(void)
{
    rb_define_method(rb_path2class("Heddle::HTTP::Exchange"), "stream_events", stream_events, -1);
}
