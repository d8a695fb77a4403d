/*
 * An event stream over HTTP/1.1: the protocol of a connection that sends the events of a topic until its client leaves.
 */

#include "http/push/event_stream.h"
#include "http/h1/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    DISCARDED = 65536, /* bytes that a client may send meanwhile, which are discarded */
    EVENTS_CHUNK = 24, /* bytes, at most, around the content of a chunk */
};

typedef struct {
    heddle_subscriber subscriber;
    heddle_connection *connection;
    int64_t progress;   /* when the client last took output, or there was none */
    uint32_t discarded; /* bytes that were discarded */
    uint16_t lines_size;
    bool chunked; /* false: the end of the connection ends the content */
    bool ending;  /* closes when its output was sent */
    bool stays;   /* is never handed off */
    char lines[]; /* added before each event; with chunks, already as a chunk */
} events;

static events *events_of(const heddle_connection *connection)
{
    return heddle_connection_session(connection);
}

static events *events_at(const heddle_subscriber *subscriber)
{
    return HEDDLE_CONTAINER_OF(subscriber, events, subscriber);
}

/* Ends the stream in a way that its client can see, because it missed events. The record is freed. */
static void reset_stream(heddle_connection *connection)
{
    heddle_transport_will_reset(&connection->transport);
    heddle_sockets_close_connection(connection);
}

/* Queues content, as a chunk if need be. False: no memory. */
static bool add_content(events *events, const char *bytes, size_t size)
{
    heddle_output *output = &events->connection->output;
    char head[20];
    if (size == 0)
        return true;
    if (!events->chunked)
        return heddle_output_add_bytes(output, bytes, size);
    return heddle_output_add_bytes(output, head, heddle_chunk_head(head, size)) &&
           heddle_output_add_bytes(output, bytes, size) && heddle_output_add_bytes(output, "\r\n", 2);
}

/* Sends queued output in the next tick at the latest. */
static HEDDLE_LAST_USE void schedule_output(events *events, bool added)
{
    heddle_connection *connection = events->connection;
    if (!added) {
        reset_stream(connection);
    } else if (connection->output.size < HEDDLE_OUTPUT_AT_ONCE) {
        heddle_connection_flush_later(connection);
    } else {
        heddle_connection_has_output(connection);
        int result = heddle_connection_flush(connection);
        if (result != 0 && result != -EAGAIN)
            heddle_sockets_close_connection(connection);
    }
}

/* -- as a subscriber ----------------------------------------------------------------------------------------------- */

static void deliver_message(heddle_subscriber *subscriber, heddle_message *message)
{
    events *events = events_at(subscriber);
    heddle_connection *connection = events->connection;
    VALUE string = heddle_message_encoded(message, events->chunked ? heddle_event_encode_chunk : heddle_event_encode,
                                          0, NULL);
    ssize_t sent = 0;
    if (string && message->newest && !events->lines_size)
        sent = heddle_connection_send_now(connection, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
    if (sent < 0) {
        heddle_sockets_close_connection(connection);
    } else if (!string || sent < RSTRING_LEN(string)) {
        heddle_output *output = &connection->output;
        schedule_output(
            events, string && (message->reset || heddle_output_add_bytes(output, events->lines, events->lines_size)) &&
                        heddle_output_add_string(output, string, (size_t)sent));
    }
}

static bool is_full(const heddle_subscriber *subscriber)
{
    return events_at(subscriber)->connection->output.size > HEDDLE_PENDING_LIMIT;
}

static void end_slow(heddle_subscriber *subscriber)
{
    reset_stream(events_at(subscriber)->connection);
}

static void prefetch_connection(const heddle_subscriber *subscriber, bool is_next)
{
    if (!is_next)
        heddle_connection_prefetch(events_at(subscriber)->connection);
}

static const heddle_subscriber_operations subscriber_operations = {
    .deliver = deliver_message,
    .is_full = is_full,
    .too_slow = end_slow,
    .prefetch = prefetch_connection,
};

/* -- as a protocol ------------------------------------------------------------------------------------------------- */

static void begin_events(heddle_connection *connection)
{
    heddle_connection_set_deadline(connection, heddle_add_duration(heddle_clock_coarse(), HEDDLE_EVENTS_COMMENT));
}

/* Discards the client's input; its end closes the connection. */
static HEDDLE_FATE discard_input(heddle_connection *connection)
{
    events *events = events_of(connection);
    for (;;) {
        ssize_t bytes = heddle_connection_receive(connection, heddle_sockets_scratch(connection->sockets),
                                                  HEDDLE_SCRATCH);
        if (bytes == -EAGAIN) {
            connection->sockets->set.operations->want(&connection->sockets->set, connection, HEDDLE_READING);
            return HEDDLE_ALIVE;
        }
        if (bytes > 0)
            events->discarded += (uint32_t)bytes;
        if (bytes <= 0 || events->discarded > DISCARDED) {
            heddle_sockets_close_connection(connection);
            return HEDDLE_GONE;
        }
    }
}

static void send_more(heddle_connection *connection)
{
    events *events = events_of(connection);
    int result = heddle_connection_flush(connection);
    events->progress = heddle_clock_coarse();
    if (result != 0 && result != -EAGAIN) {
        heddle_sockets_close_connection(connection);
    } else if (result == 0 && events->ending) {
        heddle_sockets_close_connection(connection);
    } else if (result == 0) {
        heddle_output_clear(&connection->output); /* an idle stream keeps no output buffer */
        heddle_subscriber_drained(&events->subscriber);
    }
}

static void handle_event(heddle_connection *connection, uint8_t ready)
{
    if ((ready & (HEDDLE_BROKEN | HEDDLE_HUNG_UP)) || connection->error) {
        heddle_sockets_close_connection(connection);
        return;
    }
    if (!discard_input(connection))
        return;
    if (connection->output.size && heddle_transport_has(&connection->transport, HEDDLE_HAS_ROOM))
        send_more(connection);
}

/* Sends a comment, which keeps proxies from closing the stream. A client that takes nothing for too long is cut off. */
static void handle_deadline(heddle_connection *connection)
{
    events *events = events_of(connection);
    int64_t now = heddle_clock_coarse(), timeout = heddle_h1_engine(connection)->write_timeout;
    heddle_connection_set_deadline(connection, heddle_add_duration(now, HEDDLE_EVENTS_COMMENT));
    if (connection->output.size) {
        if (timeout >= 0 && heddle_add_duration(events->progress, timeout) <= now)
            reset_stream(connection);
        return;
    }
    if (!add_content(events, ":\n\n", 3)) {
        reset_stream(connection);
        return;
    }
    heddle_connection_has_output(connection);
    send_more(connection);
}

/* It can be ended at any time: the client reconnects with the position of the last event. */
static bool is_idle(const heddle_connection *connection)
{
    (void)connection;
    return true;
}

static void end_events(heddle_connection *connection)
{
    events *events = events_of(connection);
    char text[64];
    if (events->ending)
        return;
    heddle_unsubscribe(&events->subscriber);
    events->ending = true;
    bool added = add_content(events, text, heddle_events_farewell(text, sizeof(text))) &&
                 (!events->chunked || heddle_output_add_bytes(&connection->output, "0\r\n\r\n", 5));
    if (!added) {
        reset_stream(connection);
        return;
    }
    heddle_connection_has_output(connection);
    send_more(connection);
}

static int collect_input(const heddle_connection *connection, struct iovec *pieces)
{
    (void)connection;
    (void)pieces;
    return -1;
}

static void release_session(heddle_connection *connection)
{
    events *events = events_of(connection);
    heddle_unsubscribe(&events->subscriber);
    free(events);
}

static void abandon_session(heddle_connection *connection)
{
    heddle_subscriber_abandon(&events_of(connection)->subscriber);
}

/* -- between processes --------------------------------------------------------------------------------------------- */

/* The state that another process needs, followed by the lines, the topic and the position. */
typedef struct {
    bool chunked;
    uint8_t policy;
    uint16_t lines_size, topic_size;
    uint32_t size; /* of the whole description */
} events_words;

_Static_assert(1 + sizeof(events_words) + HEDDLE_EVENTS_LINES + EVENTS_CHUNK + HEDDLE_TOPIC_LIMIT +
                       HEDDLE_POSITION_SIZE <=
                   HEDDLE_SESSION_WORDS,
               "a stream's description has room");

static ssize_t describe_events(heddle_connection *connection, char *words)
{
    heddle_sockets *sockets = connection->sockets;
    uint64_t identity = heddle_sockets_identity(sockets, connection);
    events *events = events_of(connection);
    if (connection->output.size) {
        send_more(connection);
        if (!heddle_sockets_at(sockets, identity))
            return -1;
    }
    heddle_topic_name topic = heddle_subscriber_topic(&events->subscriber);
    if (events->stays || connection->output.size || connection->error || events->ending || events->subscriber.behind ||
        !topic.text)
        return -1;
    events_words head = {.chunked = events->chunked,
                         .policy = events->subscriber.policy,
                         .lines_size = events->lines_size,
                         .topic_size = (uint16_t)topic.size};
    *words++ = HEDDLE_EVENT_STREAMS;
    char *end = words + sizeof(head);
    memcpy(end, events->lines, events->lines_size);
    memcpy(end += events->lines_size, topic.text, topic.size);
    end += topic.size;
    end += heddle_subscriber_position(&events->subscriber, end);
    head.size = (uint32_t)(end - words);
    memcpy(words, &head, sizeof(head));
    return end - words + 1;
}

static const heddle_protocol protocol = {
    .name = "HTTP/1.1 events",
    .stays = true,
    .describe = describe_events,
    .begin = begin_events,
    .handle_event = handle_event,
    .handle_deadline = handle_deadline,
    .is_idle = is_idle,
    .end_idle = end_events,
    .collect_input = collect_input,
    .release = release_session,
    .abandon = abandon_session,
};

/* With room for so many bytes of lines. NULL: no memory. */
static events *allocate_events(heddle_connection *connection, size_t room, heddle_slow_policy policy, bool chunked)
{
    events *events = calloc(1, sizeof(*events) + room);
    if (!events)
        return NULL;
    events->subscriber.operations = &subscriber_operations;
    events->subscriber.policy = (uint8_t)policy;
    events->connection = connection;
    events->chunked = chunked;
    events->progress = heddle_clock_coarse();
    return events;
}

static VALUE find_fanout(VALUE loop)
{
    return (VALUE)heddle_fanout_of((heddle_loop *)loop);
}

static bool read_words(VALUE string, events_words *head)
{
    size_t size = (size_t)RSTRING_LEN(string);
    if (size < sizeof(*head))
        return false;
    memcpy(head, RSTRING_PTR(string), sizeof(*head));
    return head->size == size && sizeof(*head) + head->lines_size + head->topic_size <= size;
}

static void resume_stream(heddle_connection *connection, VALUE words)
{
    heddle_sockets *sockets = connection->sockets;
    events_words head;
    int state = 0;
    heddle_fanout *fanout = (heddle_fanout *)rb_protect(find_fanout, (VALUE)sockets->loop, &state);
    if (state)
        rb_set_errinfo(Qnil);
    events *events = state || !read_words(words, &head)
                         ? NULL
                         : allocate_events(connection, head.lines_size, head.policy, head.chunked);
    if (!events) {
        reset_stream(connection);
        return;
    }
    const char *topic = RSTRING_PTR(words) + sizeof(head) + head.lines_size, *position = topic + head.topic_size;
    memcpy(events->lines, topic - head.lines_size, head.lines_size);
    events->lines_size = head.lines_size;
    uint64_t identity = heddle_sockets_identity(sockets, connection);
    heddle_connection_start(connection, &protocol, events);
    if (!heddle_sockets_at(sockets, identity))
        return;
    heddle_position since = {position, (size_t)(RSTRING_END(words) - position)};
    heddle_subscribe_result result = heddle_subscribe(fanout, &events->subscriber, topic, head.topic_size, since);
    RB_GC_GUARD(words);
    heddle_connection *alive = heddle_sockets_at(sockets, identity);
    if (alive && result != HEDDLE_SUBSCRIBED)
        reset_stream(alive);
    else if (alive && sockets->draining)
        end_events(alive);
}

/* Runs no Ruby code. */
static VALUE load_stream(heddle_engine *engine, VALUE words, int *state)
{
    (void)engine;
    (void)state;
    return words;
}

const heddle_http_protocol heddle_events_http_protocol = {
    .load = load_stream,
    .resume = resume_stream,
};

/* -- from a response to events ------------------------------------------------------------------------------------- */

static events *make_events(heddle_connection *connection, const heddle_events_wish *wish, bool chunked)
{
    size_t size = (size_t)RSTRING_LEN(wish->lines);
    events *events = allocate_events(connection, size ? size + EVENTS_CHUNK : 0, wish->policy, chunked);
    if (!events)
        rb_memerror();
    size_t head = size && chunked ? heddle_chunk_head(events->lines, size) : 0;
    memcpy(events->lines + head, RSTRING_PTR(wish->lines), size);
    if (head)
        memcpy(events->lines + head + size, "\r\n", 2);
    events->lines_size = (uint16_t)(size + head + (head ? 2 : 0));
    events->stays = wish->stays;
    return events;
}

/* Ends the exchange; its connection continues with the protocol of event streams. */
static void change_protocol(heddle_exchange_handle *handle, heddle_connection *connection, events *events, int status)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_engine_count_response(handle->engine, h1->exchange, status);
    heddle_exchange_leave_session(h1->exchange);
    h1->exchange = NULL;
    heddle_connection_drop_handle(connection);
    heddle_connection_end_work(connection);
    heddle_connection_start(connection, &protocol, events);
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
    heddle_sockets *sockets = connection->sockets;
    heddle_fanout *fanout = heddle_fanout_of(sockets->loop);
    if (!heddle_h1_of(connection)->received || heddle_connection_buffered(connection) ||
        connection->waits[HEDDLE_WRITING])
        return Qfalse;
    events *events = make_events(connection, &wish, handle->chunking);
    change_protocol(handle, connection, events, status);
    bool added = add_content(events, RSTRING_PTR(wish.beginning), (size_t)RSTRING_LEN(wish.beginning));
    uint64_t identity = heddle_sockets_identity(sockets, connection);
    heddle_subscribe_result result = heddle_events_subscribe(&wish, fanout, &events->subscriber);
    if (!heddle_sockets_at(sockets, identity))
        return Qtrue; /* it was closed, because it had missed events */
    if (result != HEDDLE_SUBSCRIBED) {
        reset_stream(connection);
        return Qtrue;
    }
    char id[64];
    if (added && NIL_P(wish.since))
        added = add_content(events, id, heddle_events_first_id(&events->subscriber, id, sizeof(id)));
    schedule_output(events, added);
    /* Connections that existed when the server began to stop got connection: close. */
    if ((sockets->draining || handle->engine->draining) && heddle_sockets_at(sockets, identity))
        end_events(connection);
    RB_GC_GUARD(wish.topic);
    RB_GC_GUARD(wish.since);
    RB_GC_GUARD(wish.lines);
    RB_GC_GUARD(wish.beginning);
    RB_GC_GUARD(self);
    return Qtrue;
}

void Init_heddle_h1_events(VALUE exchange_class)
{
    rb_define_method(exchange_class, "stream_events", exchange_stream_events, -1);
}
