#ifndef HEDDLE_HTTP_EVENT_STREAM_H
#define HEDDLE_HTTP_EVENT_STREAM_H

/*
 * Server-sent events (HTML standard, section 9.2) of a topic, without a fiber: the response's head is sent, the exchange
 * is over, and the messages of the topic follow until the client leaves. The part that all protocols share.
 */

#include "http/answer_head.h"
#include "net/connection.h"
#include "net/fate.h"
#include "pubsub/fanout.h"

#define HEDDLE_EVENTS_COMMENT INT64_C(15000000000) /* ns between two comments, for proxies that close what is silent */

enum {
    HEDDLE_EVENTS_LINES = 512, /* bytes of the lines that a stream adds to each event */
    HEDDLE_EVENTS_RETRY = 3000, /* ms: when the server stops, clients come back within this time */
};

/* The application's settings of a stream. */
typedef struct {
    VALUE topic, since; /* since: nil: from now on */
    VALUE lines;        /* before each event, such as "event: price\n"; a String */
    VALUE beginning;    /* what is sent first, such as "retry: 1000\n\n"; a String */
    heddle_slow_policy policy;
    bool stays; /* its client comes back when this process is replaced; else the stream goes to the next one */
} heddle_events_wish;

/* Reads the arguments [topic, since, lines, beginning, policy, handoff]; raises. */
heddle_events_wish heddle_events_wish_of(int count, const VALUE *arguments);
/* Subscribes to the wish's topic, from its position on. */
heddle_subscribe_result heddle_events_subscribe(const heddle_events_wish *wish, heddle_fanout *fanout,
                                                heddle_subscriber *subscriber);

/*
 * A stream of HTTP/1.1 that another process has handed off goes on here. The words of a stream begin with this byte,
 * those of a WebSocket with that of Ruby's Marshal, 4.
 */
#define HEDDLE_EVENTS_WORDS 'e'
HEDDLE_LAST_USE void heddle_events_resume(heddle_connection *connection, VALUE words);

/* Encoders of messages: an event, and the same as a chunk of HTTP/1.1. */
VALUE heddle_event_encode(heddle_message *message, VALUE key, void *context);
VALUE heddle_event_encode_chunk(heddle_message *message, VALUE key, void *context);

/* "id: position\n\n": where a client goes on that has not had an event yet. How many bytes. */
size_t heddle_events_first_id(const heddle_subscriber *subscriber, char *text, size_t room);
/* "retry: …\n\n" with a random time, so that not all clients come back at once. */
size_t heddle_events_farewell(char *text, size_t room);

#endif
