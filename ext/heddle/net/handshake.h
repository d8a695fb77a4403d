#pragma once

/*
 * The handshake stage of a connection comes before its protocol: a PROXY header, a TLS handshake, or both. It needs no
 * fiber. The time for handshakes in each tick is limited, and the addresses take turns in using it. So a client that
 * begins hundreds of handshakes does not delay the handshakes of others.
 */

#include "net/connection.h"
#include "net/fate.h"
#include "selector/transitions.h"

typedef enum {
    HEDDLE_STAGE_COMPLETE, /* the protocol has begun */
    HEDDLE_STAGE_PROXY_HEADER,
    HEDDLE_STAGE_TLS,
} heddle_handshake_stage;

/* The allowed transitions. A new connection is COMPLETE until it enters another stage. */
HEDDLE_TRANSITIONS(heddle_handshake_may_enter,
    [HEDDLE_STAGE_COMPLETE] = 1 << HEDDLE_STAGE_PROXY_HEADER | 1 << HEDDLE_STAGE_TLS,
    [HEDDLE_STAGE_PROXY_HEADER] = 1 << HEDDLE_STAGE_TLS | 1 << HEDDLE_STAGE_COMPLETE,
    [HEDDLE_STAGE_TLS] = 1 << HEDDLE_STAGE_COMPLETE)

typedef struct heddle_listener heddle_listener;

typedef struct {
    /* addresses (heddle_address_share) with TLS handshakes that can continue, in the order of their turns */
    heddle_link due;
    int64_t timeout; /* the time limit of the whole stage, ns; < 0: no limit */
} heddle_handshakes;

/*
 * Begins the stage for a new connection. Returns false if the listener needs no handshake stage, so that the protocol
 * may begin.
 */
bool heddle_handshake_begin(heddle_connection *connection, const heddle_listener *listener);
/* Handles an event of a connection in this stage. */
HEDDLE_LAST_USE void heddle_handshake_handle_event(heddle_connection *connection);
/* Continues TLS handshakes until this tick's time for them is used up. */
void heddle_handshake_run_queued(heddle_sockets *sockets);
/* Returns whether nothing from the client was read yet, apart from a complete PROXY header. */
bool heddle_handshake_is_idle(const heddle_connection *connection);

void Init_heddle_handshake(VALUE net);
