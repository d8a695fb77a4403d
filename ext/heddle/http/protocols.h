#pragma once

/*
 * The protocols of the engine's connections. Each protocol registers a table of operations when the extension is
 * loaded. The engine calls a protocol only through its table. HTTP/1.1 begins HTTP/2 on its connection through the
 * table of HTTP/2.
 */

#include "net/protocol.h"

typedef struct heddle_engine heddle_engine;

/* The number of a protocol is also the first byte of the message that hands off a session to another process. */
typedef enum {
    HEDDLE_HTTP_1, /* HTTP/1.1, with which every connection begins */
    HEDDLE_HTTP_2,
    HEDDLE_WEBSOCKETS,
    HEDDLE_EVENT_STREAMS,
    HEDDLE_HTTP_PROTOCOLS, /* the number of protocols */
} heddle_http_protocol_number;

typedef struct {
    /*
     * Begins this protocol on a connection that has no protocol yet, or replaces the connection's protocol. NULL for
     * WebSockets and event streams, which begin when the application accepts a request for one.
     */
    HEDDLE_LAST_USE void (*begin)(heddle_connection *connection);
    /*
     * Sends a response with this status, and closes the connection. Called when the client's first bytes are not what
     * the listener expects. Only HTTP/1.1 has this operation.
     */
    HEDDLE_LAST_USE void (*begin_rejecting)(heddle_connection *connection, int status, const char *reason);
    /*
     * Loads a session that another process has handed off, see heddle_service_operations. `description` begins after
     * the protocol's number. NULL if sessions of this protocol are never handed off.
     */
    VALUE (*load)(heddle_engine *engine, VALUE description, int *state);
    HEDDLE_LAST_USE void (*resume)(heddle_connection *connection, VALUE loaded);
    /* Sets up the state that connections of this protocol share within an engine. NULL if they share none. */
    void (*configure)(heddle_engine *engine, VALUE configuration); /* may raise */
    void (*mark)(const heddle_engine *engine);
    void (*release)(heddle_engine *engine);
} heddle_http_protocol;

/* Called once for each protocol, before the first engine exists. The table is static. */
void heddle_http_register(heddle_http_protocol_number number, const heddle_http_protocol *protocol);
const heddle_http_protocol *heddle_http_protocol_of(heddle_http_protocol_number number);
