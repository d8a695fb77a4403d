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
} heddle_websocket_form;

struct heddle_websocket_subscription {
    heddle_subscriber subscriber;
    heddle_websocket *socket;
    heddle_websocket_subscription *next; /* of the socket's */
    uint8_t form;                        /* heddle_websocket_form */
    bool reset;                          /* the handler has to know: messages are lost */
    uint32_t size;
    char name[]; /* of the topic */
};

/* All are called in the loop, or on another thread that has the GVL once the loop has a fan-out. Held. */

/* NULL: the name is not subscribed. */
heddle_websocket_subscription *heddle_websocket_find_subscription(const heddle_websocket *socket, const char *name,
                                                                  size_t size);
/* In place of an earlier one of this topic. */
heddle_subscribe_result heddle_websocket_subscribe(heddle_websocket *socket, heddle_fanout *fanout, const char *name,
                                                   size_t size, heddle_position since, heddle_websocket_form form,
                                                   heddle_slow_policy policy);
/* false: it was none. */
bool heddle_websocket_unsubscribe(heddle_websocket *socket, const char *name, size_t size);

#endif
