#pragma once

/*
 * The topics of a push session. The loop's fan-out (which delivers messages to the loop's subscribers) adds the topics'
 * messages to the session's output. A message is encoded once for all sessions with the same form and envelope.
 */

#include "http/push/session.h"
#include "pubsub/fanout.h"

/* The form in which messages are sent. Forms that are registered later have numbers from HEDDLE_PUSH_FORMS on. */
typedef enum {
    HEDDLE_PUSH_AS_TEXT,    /* the payload; a binary frame if it is not UTF-8 */
    HEDDLE_PUSH_AS_BINARY,  /* the payload */
    HEDDLE_PUSH_AS_JSON,    /* a text frame: an object with topic, position, and data or reset */
    HEDDLE_PUSH_TO_HANDLER, /* no frame is sent: on_publication is called */
    HEDDLE_PUSH_AS_EVENT,   /* event streams have this form or the following one */
    HEDDLE_PUSH_AS_EVENT_CHUNK,
    HEDDLE_PUSH_FORMS,
    HEDDLE_PUSH_MOST_FORMS = HEDDLE_PUSH_FORMS + 2,
} heddle_push_form;

typedef struct {
    const char *name; /* the value of the argument `as`; NULL: applications can't choose this form */
    /* the smallest size of an envelope in bytes; 0: the form has no envelopes. Encoders get the envelope as `key` */
    size_t min_envelope_size;
    bool sends_reset; /* a reset (messages are lost) is sent to the client; otherwise on_reset is called */
    /* encodes a message as a frame; `context`: the deflater, or NULL for sockets without permessage-deflate */
    heddle_message_encoder *encode;
} heddle_push_form_definition;

/* Called before the first WebSocket exists. The definition is static. */
void heddle_push_register_form(const heddle_push_form_definition *form);
/* Returns the number of the form with this name, or -1. */
int heddle_push_find_form(const char *name, size_t size);
const heddle_push_form_definition *heddle_push_form_of(unsigned form);

/* -- for encoders -------------------------------------------------------------------------------------------------- */

/* Appends a JSON string (RFC 8259, section 7). In text that is not valid UTF-8, U+FFFD replaces each non-ASCII byte. */
void heddle_push_add_json(VALUE json, const char *bytes, size_t size);
/* Returns a text frame, a frozen String. `deflater`: NULL for sockets without permessage-deflate. */
VALUE heddle_push_text_frame(VALUE text, heddle_deflater **deflater);

struct heddle_push_subscription {
    heddle_subscriber subscriber;
    heddle_push_session *session;
    heddle_push_subscription *next; /* in the socket's list */
    uint8_t form;                        /* heddle_push_form */
    bool reset_due;                      /* messages are lost, and on_reset was not called yet */
    bool was_reset;                      /* the client was sent a reset */
    VALUE envelope; /* an interned String, marked by the WebSocket::Session; nil: the form has none */
    uint32_t size;       /* bytes of the topic's name */
    uint16_t lines_size; /* bytes of the lines that are added to each event */
    char name[]; /* the topic's name, then the lines that are added to each event */
};

/*
 * The functions below are called on the loop's thread, or, once the loop has a fan-out, on another thread that has the
 * GVL.
 */

/* The arguments of a subscription. A session may subscribe to a topic once for each envelope. */
typedef struct {
    const char *name; /* the topic's name */
    size_t size;
    const char *lines; /* added to each event */
    size_t lines_size;
    VALUE envelope;
    heddle_push_form form;
    heddle_slow_policy policy;
} heddle_push_topic;

/* Returns NULL if there is no subscription to this topic with this envelope. */
heddle_push_subscription *heddle_push_find_subscription(const heddle_push_session *session, const char *name,
                                                        size_t size, VALUE envelope);
/*
 * Subscribes to messages after `since`. Replaces an earlier subscription to this topic with this envelope. The session
 * must be held (heddle_push_hold).
 */
heddle_subscribe_result heddle_push_subscribe(heddle_push_session *session, heddle_fanout *fanout,
                                              const heddle_push_topic *topic, heddle_position since);
/* Converts :close, :coalesce or :drop. Raises ArgumentError for other values. */
heddle_slow_policy heddle_push_policy_named(VALUE name);
/* Returns false if there was no such subscription. */
bool heddle_push_unsubscribe(heddle_push_session *session, const char *name, size_t size, VALUE envelope);
