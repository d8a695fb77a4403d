#ifndef HEDDLE_HTTP_WEBSOCKET_SUBSCRIPTIONS_H
#define HEDDLE_HTTP_WEBSOCKET_SUBSCRIPTIONS_H

/* The topics of a WebSocket: their messages go from the fan-out into its output, encoded once for all sockets. */

#include "http/websocket/session.h"
#include "pubsub/fanout.h"

/* How a message looks on the wire. */
typedef enum {
    HEDDLE_WEBSOCKET_AS_TEXT,   /* the payload; binary where it is not UTF-8 */
    HEDDLE_WEBSOCKET_AS_BINARY, /* the payload */
    HEDDLE_WEBSOCKET_AS_JSON,   /* text: an object with topic, position, and data or reset */
    /* Text for a client of Action Cable: the payload is JSON. The envelope is how it begins, up to the payload. */
    HEDDLE_WEBSOCKET_AS_CABLE,
    HEDDLE_WEBSOCKET_AS_EXTENDED_CABLE, /* the same with stream_id, epoch and offset; a reset is a rejected history */
    HEDDLE_WEBSOCKET_TO_HANDLER,        /* nothing: on_publication is called */
    HEDDLE_WEBSOCKET_FORMS,
} heddle_websocket_form;

struct heddle_websocket_subscription {
    heddle_subscriber subscriber;
    heddle_websocket *socket;
    heddle_websocket_subscription *next; /* of the socket's */
    uint8_t form;                        /* heddle_websocket_form */
    bool reset;                          /* the handler has to know: messages are lost */
    bool was_reset;                      /* the client knows */
    VALUE envelope; /* an interned String, marked by the Client; nil: the form has none */
    uint32_t size;
    char name[]; /* of the topic */
};

/* All are called in the loop, or on another thread that has the GVL once the loop has a fan-out. Held. */

/* A topic of a socket, and the form of its messages. A topic may be there once for each envelope. */
typedef struct {
    const char *name; /* of the topic */
    size_t size;
    VALUE envelope;
    heddle_websocket_form form;
    heddle_slow_policy policy;
} heddle_websocket_topic;

/* NULL: the name is not subscribed with this envelope. */
heddle_websocket_subscription *heddle_websocket_find_subscription(const heddle_websocket *socket, const char *name,
                                                                  size_t size, VALUE envelope);
/* In place of an earlier one of this topic with this envelope. */
heddle_subscribe_result heddle_websocket_subscribe(heddle_websocket *socket, heddle_fanout *fanout,
                                                   const heddle_websocket_topic *topic, heddle_position since);
/* false: it was none. */
bool heddle_websocket_unsubscribe(heddle_websocket *socket, const char *name, size_t size, VALUE envelope);

#endif
