#ifndef HEDDLE_PRELUDE_H
#define HEDDLE_PRELUDE_H

/*
 * What a listener may want of a connection before its protocol begins: the header of a proxy, a TLS handshake. It takes
 * no fiber, and all connections together take no more than a part of each turn.
 */

#include "net/ready_list.h"

typedef enum {
    HEDDLE_PRELUDE_OVER,
    HEDDLE_PRELUDE_PROXY_HEADER,
    HEDDLE_PRELUDE_HANDSHAKE,
} heddle_prelude_stage;

typedef struct heddle_listener heddle_listener;

typedef struct {
    heddle_ready_list due; /* those whose handshake can go on */
    int64_t timeout;       /* of all of it, ns; < 0: none */
} heddle_prelude_queue;

void heddle_prelude_start(heddle_prelude_queue *queue);
/* A new connection. false: this listener wants nothing of it, its protocol may begin. It may be gone afterwards. */
bool heddle_prelude_begin(heddle_connection *connection, const heddle_listener *listener);
/* There is news of one that is in its prelude. It may be gone afterwards. */
void heddle_prelude_event(heddle_connection *connection);
/* This turn's share of handshakes. */
void heddle_prelude_go_on(heddle_sockets *sockets);
/* Has its client said nothing yet? */
bool heddle_prelude_at_rest(const heddle_connection *connection);

void Init_heddle_prelude(VALUE net);

#endif
