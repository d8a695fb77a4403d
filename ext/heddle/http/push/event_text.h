#pragma once

/* The text of server-sent events (HTML standard, section 9.2), which event_framing.c sends. */

#include "http/protocols.h"
#include "pubsub/fanout.h"

enum {
    HEDDLE_EVENTS_LINES = 512, /* the maximum size, in bytes, of the lines that are added to each event */
    HEDDLE_EVENTS_TEXT = 64,    /* room in bytes for a line with `id` or `retry`, or for the head of a chunk */
    HEDDLE_EVENTS_RETRY = 3000, /* ms; a farewell makes the client reconnect after a random time below this */
};

/* The protocol of event streams over HTTP/1.1, which another process can continue. */
extern const heddle_http_protocol heddle_events_http_protocol;

/* Encode a message of a topic as an event. The second function also encodes the event as a chunk of HTTP/1.1. */
VALUE heddle_event_encode(heddle_message *message, VALUE key, void *context);
VALUE heddle_event_encode_chunk(heddle_message *message, VALUE key, void *context);

/* Returns an event with this data, a frozen String. */
VALUE heddle_event_text(VALUE data);
/*
 * Returns the text as a chunk of HTTP/1.1, a frozen String. Returns an empty text unchanged, because an empty chunk
 * would end the body.
 */
VALUE heddle_event_chunk(VALUE text);

/*
 * Writes "id: position\n\n", so that a client that has not received any event reconnects with this position. Returns
 * the size.
 */
size_t heddle_events_first_id(const heddle_subscriber *subscriber, char *text, size_t room);
/* Writes "retry: …\n\n" with a random time, so that clients don't reconnect all at once. */
size_t heddle_events_farewell(char *text, size_t room);

void Init_heddle_events(void);
