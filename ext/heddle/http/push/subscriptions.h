#ifndef HEDDLE_HTTP_WEBSOCKET_SUBSCRIPTIONS_H
#define HEDDLE_HTTP_WEBSOCKET_SUBSCRIPTIONS_H

/* The topics of a WebSocket: their messages go from the fan-out into its output, encoded once for all sockets. */

#include "http/push/session.h"
#include "pubsub/fanout.h"

/* The form of a message in a frame. */
typedef enum {
    HEDDLE_WEBSOCKET_AS_TEXT,   /* the payload; a binary frame if it is not UTF-8 */
    HEDDLE_WEBSOCKET_AS_BINARY, /* the payload */
    HEDDLE_WEBSOCKET_AS_JSON,   /* text: an object with topic, position, and data or reset */
    /* Text for a client of Action Cable: the payload is JSON. The envelope is the text before the payload. */
    HEDDLE_WEBSOCKET_AS_CABLE,
    HEDDLE_WEBSOCKET_AS_EXTENDED_CABLE, /* the same with stream_id, epoch and offset; a reset is a rejected history */
    HEDDLE_WEBSOCKET_TO_HANDLER,        /* no frame: on_publication is called */
    HEDDLE_WEBSOCKET_FORMS,             /* the number of forms that a WebSocket may have */
    HEDDLE_WEBSOCKET_AS_EVENT = HEDDLE_WEBSOCKET_FORMS, /* the only forms of an event stream */
    HEDDLE_WEBSOCKET_AS_EVENT_CHUNK,
} heddle_websocket_form;

/* Has each subscription of this form an envelope? */
static inline bool heddle_websocket_has_envelope(heddle_websocket_form form)
{
    return form == HEDDLE_WEBSOCKET_AS_CABLE || form == HEDDLE_WEBSOCKET_AS_EXTENDED_CABLE;
}

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
/* False: there was no such subscription. */
bool heddle_websocket_unsubscribe(heddle_websocket *socket, const char *name, size_t size, VALUE envelope);

#endif
