/* An event stream over HTTP/2: a stream that sends the events of a topic until its client leaves. */

#include "http/push/event_stream.h"
#include "http/exchange_ruby.h"
#include "http/h2/server/server.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    heddle_h2_tunnel tunnel;
    heddle_subscriber subscriber;
    uint16_t lines_size;
    bool ending;  /* the farewell was written: it closes when that is sent */
    bool working; /* a calling function uses the record: it must not be freed */
    bool gone;    /* … and is freed by that function */
    char lines[]; /* added before each event */
} events;

static events *events_of(const heddle_h2_tunnel *tunnel)
{
    return HEDDLE_CONTAINER_OF(tunnel, events, tunnel);
}

static events *events_at(const heddle_subscriber *subscriber)
{
    return HEDDLE_CONTAINER_OF(subscriber, events, subscriber);
}

/* Ends the stream in a way that its client can see, because it missed events. */
static HEDDLE_LAST_USE void reset_stream(events *events)
{
    heddle_h2_tunnel_close(&events->tunnel, true);
}

static bool add_content(events *events, const char *bytes, size_t size)
{
    return heddle_h2_tunnel_write(&events->tunnel, bytes, size, NULL, 0);
}

/* -- as a subscriber ----------------------------------------------------------------------------------------------- */

static void deliver_message(heddle_subscriber *subscriber, heddle_message *message)
{
    events *events = events_at(subscriber);
    VALUE string = heddle_message_encoded(message, heddle_event_encode, 0, NULL);
    size_t lines = message->reset ? 0 : events->lines_size;
    if (!string || !heddle_h2_tunnel_write(&events->tunnel, events->lines, lines, RSTRING_PTR(string),
                                           (size_t)RSTRING_LEN(string)))
        reset_stream(events);
}

static bool is_full(const heddle_subscriber *subscriber)
{
    return heddle_h2_tunnel_is_full(&events_at(subscriber)->tunnel, HEDDLE_PENDING_LIMIT);
}

static void end_slow(heddle_subscriber *subscriber)
{
    reset_stream(events_at(subscriber));
}

static const heddle_subscriber_operations subscriber_operations = {
    .deliver = deliver_message,
    .is_full = is_full,
    .too_slow = end_slow,
};

/* -- as a tunnel --------------------------------------------------------------------------------------------------- */

/* The request is complete, so no data is expected. */
static void discard_data(heddle_h2_tunnel *tunnel, char *bytes, size_t size)
{
    (void)bytes;
    heddle_h2_tunnel_consume(tunnel, size);
}

static void close_tunnel(heddle_h2_tunnel *tunnel)
{
    heddle_h2_tunnel_close(tunnel, false);
}

static void handle_flushed(heddle_h2_tunnel *tunnel)
{
    events *events = events_of(tunnel);
    if (heddle_h2_unsent(tunnel->stream) > 0)
        return;
    if (events->ending)
        heddle_h2_tunnel_close(tunnel, false);
    else
        heddle_subscriber_drained(&events->subscriber);
}

static void set_comment_time(events *events)
{
    heddle_h2_tunnel_set_deadline(&events->tunnel, heddle_add_duration(heddle_clock_coarse(), HEDDLE_EVENTS_COMMENT));
}

/*
 * Sends a comment, which keeps proxies from closing the stream. The session has the time limit for a client that takes
 * nothing.
 */
static void send_comment(heddle_due *due)
{
    events *events = events_of(HEDDLE_CONTAINER_OF(due, heddle_h2_tunnel, due));
    set_comment_time(events);
    if (heddle_h2_unsent(events->tunnel.stream) == 0 && !add_content(events, ":\n\n", 3))
        reset_stream(events);
}

static bool has_to_retire(const heddle_h2_tunnel *tunnel)
{
    return !events_of(tunnel)->ending;
}

/* The client reconnects with the position of the last event. */
static void end_events(heddle_h2_tunnel *tunnel)
{
    events *events = events_of(tunnel);
    char text[64];
    heddle_unsubscribe(&events->subscriber);
    events->ending = true;
    if (add_content(events, text, heddle_events_farewell(text, sizeof(text))))
        heddle_h2_tunnel_finish(tunnel);
    else
        reset_stream(events);
}

static void release_events(heddle_h2_tunnel *tunnel)
{
    events *events = events_of(tunnel);
    heddle_unsubscribe(&events->subscriber);
    events->gone = true;
    if (!events->working)
        free(events);
}

static void abandon_events(heddle_h2_tunnel *tunnel)
{
    heddle_subscriber_abandon(&events_of(tunnel)->subscriber);
}

static const heddle_h2_tunnel_operations operations = {
    .take_data = discard_data,
    .end_input = close_tunnel,
    .handle_reset = close_tunnel,
    .flushed = handle_flushed,
    .has_to_retire = has_to_retire,
    .retire = end_events,
    .release = release_events,
    .abandon = abandon_events,
};

/* -- from a response to events ------------------------------------------------------------------------------------- */

static events *new_events(const heddle_events_wish *wish)
{
    size_t size = (size_t)RSTRING_LEN(wish->lines);
    events *events = calloc(1, sizeof(*events) + size);
    if (!events)
        rb_memerror();
    memcpy(events->lines, RSTRING_PTR(wish->lines), size);
    events->lines_size = (uint16_t)size;
    events->subscriber.operations = &subscriber_operations;
    events->subscriber.policy = wish->policy;
    events->tunnel.operations = &operations;
    events->tunnel.due.passed = send_comment;
    return events;
}

static void begin_events(events *events, heddle_fanout *fanout, const heddle_events_wish *wish)
{
    bool added = add_content(events, RSTRING_PTR(wish->beginning), (size_t)RSTRING_LEN(wish->beginning));
    char id[64];
    heddle_subscribe_result result = heddle_events_subscribe(wish, fanout, &events->subscriber);
    if (events->gone)
        return; /* it was closed, because it had missed events */
    if (added && result == HEDDLE_SUBSCRIBED && NIL_P(wish->since))
        added = add_content(events, id, heddle_events_first_id(&events->subscriber, id, sizeof(id)));
    if (!added || result != HEDDLE_SUBSCRIBED)
        reset_stream(events);
    else
        set_comment_time(events);
}

/*
 * call-seq: stream_events(status, topic, since, lines, beginning, policy, handoff) -> true or false
 *
 * Called when the head was written: sends the events of the topic until the client leaves. This object can't be used
 * afterwards. false: nothing has changed, because a part of the request was not read.
 */
static VALUE exchange_stream_events(int count, VALUE *arguments, VALUE self)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    rb_check_arity(count, 7, 7);
    heddle_events_wish wish = heddle_events_wish_of(count - 1, arguments + 1);
    int status = NUM2INT(arguments[0]);
    heddle_connection *connection = heddle_exchange_writable_connection(handle);
    heddle_fanout *fanout = heddle_fanout_of(connection->sockets->loop);
    heddle_h2_carrier *carrier = heddle_h2_carrier_of(handle->exchange);
    heddle_h2_server *server = carrier->server;
    if (carrier->gone)
        heddle_exchange_raise_gone("the client has reset the stream before it had an event", 0);
    if (!carrier->received || carrier->waits[HEDDLE_WRITING] || !heddle_h2_may_write(carrier->stream))
        return Qfalse;
    events *events = new_events(&wish);
    heddle_engine_count_response(handle->engine, handle->exchange, status);
    server->depth++;
    events->working = true;
    heddle_h2_tunnel_begin(&events->tunnel, handle->exchange);
    begin_events(events, fanout, &wish);
    /* Streams that existed when the server began to stop have ended. */
    if (!events->gone && (connection->sockets->draining || handle->engine->draining))
        end_events(&events->tunnel);
    events->working = false;
    if (events->gone)
        free(events);
    heddle_h2_end_call(server);
    RB_GC_GUARD(wish.topic);
    RB_GC_GUARD(wish.since);
    RB_GC_GUARD(wish.lines);
    RB_GC_GUARD(wish.beginning);
    RB_GC_GUARD(self);
    return Qtrue;
}

void Init_heddle_h2_events(VALUE exchange_class)
{
    rb_define_method(exchange_class, "stream_events", exchange_stream_events, -1);
}
