#ifndef HEDDLE_HANDSHAKE_H
#define HEDDLE_HANDSHAKE_H

/*
 * The handshake stage of a connection, before its protocol begins: the header of the PROXY protocol, a TLS handshake,
 * or both. It takes no fiber. All handshakes together take a bounded part of each tick.
 */

#include "net/connection.h"
#include "net/fate.h"

typedef enum {
    HEDDLE_STAGE_COMPLETE, /* its protocol has begun */
    HEDDLE_STAGE_PROXY_HEADER,
    HEDDLE_STAGE_TLS,
} heddle_handshake_stage;

/* A row for each stage, a bit for each one that may follow it. A new connection is COMPLETE until it enters another. */
static inline bool heddle_handshake_may_enter(uint8_t from, uint8_t to)
{
    static const uint8_t allowed[] = {
        [HEDDLE_STAGE_COMPLETE] = 1 << HEDDLE_STAGE_PROXY_HEADER | 1 << HEDDLE_STAGE_TLS,
        [HEDDLE_STAGE_PROXY_HEADER] = 1 << HEDDLE_STAGE_TLS | 1 << HEDDLE_STAGE_COMPLETE,
        [HEDDLE_STAGE_TLS] = 1 << HEDDLE_STAGE_COMPLETE,
    };
    return allowed[from] >> to & 1;
}

typedef struct heddle_listener heddle_listener;

typedef struct {
    heddle_link due;       /* connections whose TLS handshake can go on */
    int64_t timeout;       /* of all of it, ns; < 0: none */
} heddle_handshakes;

void heddle_handshake_init(heddle_handshakes *queue);
/* A new connection. false: this listener expects nothing first, its protocol may begin. */
bool heddle_handshake_begin(heddle_connection *connection, const heddle_listener *listener);
/* An event of a connection in this stage. */
HEDDLE_LAST_USE void heddle_handshake_handle_event(heddle_connection *connection);
/* This tick's share of TLS handshakes. */
void heddle_handshake_run_queued(heddle_sockets *sockets);
/* Has its client sent nothing yet? */
bool heddle_handshake_is_idle(const heddle_connection *connection);

void Init_heddle_handshake(VALUE net);

#endif
