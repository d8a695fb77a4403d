#pragma once

/*
 * The text of server-sent events (HTML standard, section 9.2). event_framing.c sends it: when the response's head
 * is sent, the exchange ends. From then on the messages of a topic are sent without a fiber, until the client leaves.
 */

#include "http/protocols.h"
#include "pubsub/fanout.h"

enum {
    HEDDLE_EVENTS_LINES = 512, /* bytes of the lines that are added to each event */
    HEDDLE_EVENTS_TEXT = 64,   /* bytes of the server's own short texts */
    HEDDLE_EVENTS_RETRY = 3000, /* ms: when the server stops, clients reconnect within this time */
};

/* The protocol of event streams over HTTP/1.1, which another process can continue. */
extern const heddle_http_protocol heddle_events_http_protocol;

/* Encode a message as an event; the second function also puts the event into a chunk of HTTP/1.1. */
VALUE heddle_event_encode(heddle_message *message, VALUE key, void *context);
VALUE heddle_event_encode_chunk(heddle_message *message, VALUE key, void *context);

/* An event with this data, a frozen String. */
VALUE heddle_event_text(VALUE data);
/*
 * The text as a chunk of HTTP/1.1, a frozen String. An empty text stays empty, because an empty chunk would end the
 * body.
 */
VALUE heddle_event_chunk(VALUE text);

/*
 * Writes "id: position\n\n", so that a client that has got no event yet reconnects with this position. Returns the
 * size.
 */
size_t heddle_events_first_id(const heddle_subscriber *subscriber, char *text, size_t room);
/* Writes "retry: …\n\n" with a random time, so that clients don't reconnect all at once. */
size_t heddle_events_farewell(char *text, size_t room);

void Init_heddle_events(void);
