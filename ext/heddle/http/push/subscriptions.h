#ifndef HEDDLE_HTTP_WEBSOCKET_SUBSCRIPTIONS_H
#define HEDDLE_HTTP_WEBSOCKET_SUBSCRIPTIONS_H

/* The topics of a WebSocket: their messages go from the fan-out into its output, encoded once for all sockets. */

#include "http/push/session.h"
#include "pubsub/fanout.h"

/* The form of a message. Further forms are registered; they have the numbers from HEDDLE_WEBSOCKET_FORMS on. */
typedef enum {
    HEDDLE_WEBSOCKET_AS_TEXT,   /* the payload; a binary frame if it is not UTF-8 */
    HEDDLE_WEBSOCKET_AS_BINARY, /* the payload */
    HEDDLE_WEBSOCKET_AS_JSON,   /* text: an object with topic, position, and data or reset */
    HEDDLE_WEBSOCKET_TO_HANDLER, /* no frame: on_publication is called */
    HEDDLE_WEBSOCKET_AS_EVENT,   /* the only forms of an event stream */
    HEDDLE_WEBSOCKET_AS_EVENT_CHUNK,
    HEDDLE_WEBSOCKET_FORMS,
    HEDDLE_WEBSOCKET_MOST_FORMS = HEDDLE_WEBSOCKET_FORMS + 2,
} heddle_websocket_form;

typedef struct {
    const char *name; /* of the argument `as`; NULL: applications can't choose it */
    /* each subscription has an envelope of at least so many bytes, which its encoders get as key; 0: none has */
    size_t least_envelope;
    bool tells_reset; /* the client gets a reset as a message; otherwise the handler is called */
    heddle_message_encoder *encode, *deflate; /* as a frame; `deflate` gets the deflater as context */
} heddle_websocket_form_definition;

/* Called before the first WebSocket exists. The definition is static. */
void heddle_websocket_register_form(const heddle_websocket_form_definition *form);
/* The number of the form with this name; -1: there is none. */
int heddle_websocket_find_form(const char *name, size_t size);
const heddle_websocket_form_definition *heddle_websocket_form_of(unsigned form);

/* -- for encoders -------------------------------------------------------------------------------------------------- */

bool heddle_websocket_is_utf8(const char *bytes, size_t size);
/* Adds a string of JSON (RFC 8259, section 7). What is not UTF-8 becomes U+FFFD. */
void heddle_websocket_add_json(VALUE json, const char *bytes, size_t size);
/* A frame with this text, a frozen String. `deflater`: NULL for sockets without permessage-deflate. */
VALUE heddle_websocket_text_frame(VALUE text, heddle_deflater **deflater);

struct heddle_websocket_subscription {
    heddle_subscriber subscriber;
    heddle_websocket *socket;
    heddle_websocket_subscription *next; /* in the socket's list */
    uint8_t form;                        /* heddle_websocket_form */
    bool reset;                          /* messages are lost, and the handler was not called yet */
    bool was_reset;                      /* the client got a reset */
    VALUE envelope; /* an interned String, marked by the Client; nil: the form has none */
    uint32_t size;
    uint16_t lines_size;
    char name[]; /* of the topic, and behind it the lines that are sent before each event */
};

/* All are called in the loop, or, once the loop has a fan-out, on another thread that has the GVL. Held. */

/* A topic of a socket, and the form of its messages. A socket may have a topic once for each envelope. */
typedef struct {
    const char *name; /* of the topic */
    size_t size;
    const char *lines; /* sent before each event */
    size_t lines_size;
    VALUE envelope;
    heddle_websocket_form form;
    heddle_slow_policy policy;
} heddle_websocket_topic;

/* NULL: the topic is not subscribed with this envelope. */
heddle_websocket_subscription *heddle_websocket_find_subscription(const heddle_websocket *socket, const char *name,
                                                                  size_t size, VALUE envelope);
/* Replaces an earlier subscription of this topic with this envelope. */
heddle_subscribe_result heddle_websocket_subscribe(heddle_websocket *socket, heddle_fanout *fanout,
                                                   const heddle_websocket_topic *topic, heddle_position since);
/* :close, :coalesce or :drop; raises ArgumentError. */
heddle_slow_policy heddle_websocket_policy_named(VALUE name);
/* False: there was no such subscription. */
bool heddle_websocket_unsubscribe(heddle_websocket *socket, const char *name, size_t size, VALUE envelope);

#endif
