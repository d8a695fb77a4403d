#pragma once

/*
 * Server-sent events (HTML standard, section 9.2) of a topic, without a fiber: when the response's head is sent, the
 * exchange ends, and the topic's messages are sent until the client leaves. This is the text of the events; events.c
 * has the streams.
 */

#include "http/protocols.h"
#include "pubsub/fanout.h"

#define HEDDLE_EVENTS_COMMENT INT64_C(15000000000) /* the interval of comments, ns: proxies close silent connections */

enum {
    HEDDLE_EVENTS_LINES = 512, /* bytes of the lines that are added to each event */
    HEDDLE_EVENTS_TEXT = 64,   /* bytes of the server's own short texts */
    HEDDLE_EVENTS_RETRY = 3000, /* ms: when the server stops, clients reconnect within this time */
};

/* Of streams over HTTP/1.1, which another process can continue. */
extern const heddle_http_protocol heddle_events_http_protocol;

/* Encode a message: as an event, and as an event in a chunk of HTTP/1.1. */
VALUE heddle_event_encode(heddle_message *message, VALUE key, void *context);
VALUE heddle_event_encode_chunk(heddle_message *message, VALUE key, void *context);

/* An event with this data, a frozen String. */
VALUE heddle_event_text(VALUE data);
/* The text as a chunk of HTTP/1.1, a frozen String; empty as it is. */
VALUE heddle_event_chunk(VALUE text);

/* Writes "id: position\n\n", from which a client continues that has not had an event yet. Returns the size. */
size_t heddle_events_first_id(const heddle_subscriber *subscriber, char *text, size_t room);
/* Writes "retry: …\n\n" with a random time, so that clients don't reconnect all at once. */
size_t heddle_events_farewell(char *text, size_t room);

void Init_heddle_events(void);
