#pragma once

/*
 * The protocol of a connection, and the service that chooses it. A protocol is a table of operations. When the
 * handshake stage of a connection is complete, the connection gets a protocol and a session, which is the protocol's
 * own record of the connection. Both may be replaced while the connection lives.
 */

#include "net/connection.h"
#include "net/fate.h"
#include "net/work_item.h"

enum {
    HEDDLE_INPUT_PIECES = 3,
    HEDDLE_SESSION_DESCRIPTION = 2048, /* the maximum number of bytes that `describe` writes */
};

/*
 * All operations except `collect_input`, `label` and `abandon` run in the loop, with the GVL. None of them raises. The
 * operations with the mark HEDDLE_LAST_USE may free the connection.
 */
struct heddle_protocol {
    bool stays; /* its connections are never at rest (owner.h), so the watch thread never hands them off */
    bool waits_for_turns; /* its connections read in turns (io_turns.h) */
    /*
     * Bytes that make the client open a new connection. They are valid between any two frames. The watch thread sends
     * them while the loop is blocked. NULL: no farewell is sent.
     */
    const char *farewell;
    size_t farewell_size;
    /* Called when the connection begins to use this protocol. Unused input may be buffered. */
    HEDDLE_LAST_USE void (*begin)(heddle_connection *connection);
    /*
     * Called for events, in every state of the connection. `ready` is a mask of HEDDLE_HAS_INPUT and so on. The events
     * are already noted in the transport.
     */
    HEDDLE_LAST_USE void (*handle_event)(heddle_connection *connection, uint8_t ready);
    /*
     * Called in the connection's turn to read or to send (io_turns.h), unless events wait for that turn: then
     * handle_event is called. NULL: only events wait for turns, and all output is sent at once.
     */
    HEDDLE_LAST_USE void (*take_turn)(heddle_connection *connection);
    /* Called after the loop has sent output that heddle_connection_flush_later deferred, or part of it. May be NULL. */
    void (*flushed)(heddle_connection *connection);
    /* Called when the time set by heddle_connection_set_deadline has passed. */
    HEDDLE_LAST_USE void (*handle_deadline)(heddle_connection *connection);
    /*
     * Returns whether the connection is between requests, so that it may be closed or handed off without loss of data.
     */
    bool (*is_idle)(const heddle_connection *connection);
    /* Returns when an idle connection began to wait for a request: CLOCK_MONOTONIC in ns. NULL: this is not known. */
    int64_t (*idle_since)(const heddle_connection *connection);
    /*
     * Returns when the client last sent or received something: CLOCK_MONOTONIC in ns. Not called while a runner (a
     * pooled fiber) serves the connection. Returns INT64_MAX if the connection must not be closed now. NULL: only idle
     * connections of this protocol are closed to make room.
     */
    int64_t (*heard_at)(const heddle_connection *connection);
    /*
     * Notifies the client and closes the connection at once, to make room for others. NULL: the connection is closed
     * without a notification.
     */
    HEDDLE_LAST_USE void (*yield_room)(heddle_connection *connection);
    /*
     * Returns whether a request is being received, or the rest of a response is being sent. The result has no meaning
     * while a runner serves the connection. NULL: this never happens.
     */
    bool (*is_in_transit)(const heddle_connection *connection);
    /*
     * Returns the number of bytes that wait for the client (slow_readers.c). NULL: all of them are in the connection's
     * output.
     */
    size_t (*count_waiting)(const heddle_connection *connection);
    /*
     * Called for an idle connection when the server stops. Notifies the client, and then closes the connection. NULL:
     * the connection is closed at once.
     */
    HEDDLE_LAST_USE void (*end_idle)(heddle_connection *connection);
    /*
     * Sets `pieces` (at most HEDDLE_INPUT_PIECES) to the raw bytes of the request that waits for a runner, so that
     * another process can serve it. Returns the number of pieces, or -1 if the request is no longer buffered completely
     * as it was received. Called on the thread that owns the connection, perhaps without the GVL. NULL means -1.
     */
    int (*collect_input)(const heddle_connection *connection, struct iovec *pieces);
    /*
     * Writes a description of the session, at most HEDDLE_SESSION_DESCRIPTION bytes, with which another process can
     * continue the session (see load_session). Returns the number of bytes. Returns -1 if the session can't be handed
     * off or the connection was closed. Called in the loop when the worker drains. NULL: sessions of this protocol are
     * never handed off in this way.
     */
    ssize_t (*describe)(heddle_connection *connection, char *bytes);
    /*
     * Returns the hash of the label (method and path without IDs) of the request that has arrived, even if the request
     * is still in the kernel's buffer; 0 if it is unknown. Called without the GVL, on the thread that owns the
     * connection. NULL: there are no labels.
     */
    uint32_t (*label)(const heddle_connection *connection);
    /* Frees the session. Called when the connection is closed or detached, or changes its protocol. */
    void (*release)(heddle_connection *connection);
    /* Called in a forked child. Marks the connection as closed for code that still uses it. Must lock nothing. */
    void (*abandon)(heddle_connection *connection);
};

/* Errors in the first bytes of a connection. */
typedef enum {
    HEDDLE_NO_PROXY_HEADER, /* the listener expects a PROXY header */
    HEDDLE_NO_TLS,          /* the listener expects a TLS handshake */
} heddle_handshake_error;

/*
 * A service chooses the protocol for the connections of a heddle_sockets. The only one is HTTP's engine; net/ uses it
 * only through this table. A service is the C part of a Ruby object, and may exist longer than the object.
 */
typedef struct heddle_service heddle_service;
typedef struct {
    /*
     * Called once, when the handshake stage is complete. Starts the first protocol with heddle_connection_start. A
     * protocol may replace itself later, as HTTP/1.1 does when it reads the preface of HTTP/2.
     */
    HEDDLE_LAST_USE void (*choose_protocol)(heddle_connection *connection);
    /*
     * Called when the first bytes of the client are not what the listener expects. Sends a response and closes the
     * connection.
     */
    HEDDLE_LAST_USE void (*reject_handshake)(heddle_connection *connection, heddle_handshake_error error);
    /*
     * Called with the first byte of a client from which a TLS handshake is expected. Returns whether this byte can
     * begin a protocol that the service uses without TLS.
     */
    bool (*is_plaintext)(char first);
    /*
     * Converts a session's description, which another process has sent with the connection, to the argument of
     * resume_session. Called with the GVL. May wait. If an exception was raised, sets `*state` like rb_protect, and the
     * caller raises the exception. Returns nil if the session can't continue.
     */
    VALUE (*load_session)(heddle_service *service, VALUE description, int *state);
    /* Called instead of choose_protocol for a connection whose session was loaded. */
    HEDDLE_LAST_USE void (*resume_session)(heddle_connection *connection, VALUE loaded);
    void (*free)(heddle_service *service);
} heddle_service_operations;

struct heddle_service {
    const heddle_service_operations *operations;
    size_t holders; /* the number of references: from its Ruby object and from each heddle_sockets */
};

static inline void heddle_service_retain(heddle_service *service)
{
    service->holders++;
}

static inline void heddle_service_release(heddle_service *service)
{
    if (--service->holders == 0)
        service->operations->free(service);
}

/* The parent data type of the Ruby objects of all services. */
extern const rb_data_type_t heddle_service_type;

/* Starts a protocol with its session, which replace the connection's previous ones. */
HEDDLE_LAST_USE void heddle_connection_start(heddle_connection *connection, const heddle_protocol *protocol,
                                             void *session);
