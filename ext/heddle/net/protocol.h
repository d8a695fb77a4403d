#pragma once

/*
 * The protocol of a connection, and the service that chooses it. When its handshake stage is complete, a connection
 * gets a protocol and a session, which is the protocol's own record. Both may change while the connection lives.
 */

#include "net/connection.h"
#include "net/fate.h"
#include "net/work_item.h"

enum {
    HEDDLE_INPUT_PIECES = 3,
    HEDDLE_SESSION_DESCRIPTION = 2048, /* the largest number of bytes that `describe` writes */
};

/*
 * All operations but `collect_input` and `label` run in the loop, with the GVL, and never raise. The connection may be
 * freed by `begin`, `handle_event` and `handle_deadline`.
 */
struct heddle_protocol {
    bool stays; /* connections of this protocol are never handed off by the watch thread: they are never at rest */
    bool waits_for_turns; /* its connections get their events in turns to read (io_turns.h) */
    /*
     * Bytes that make the client reconnect, and are valid between any two frames. The watch thread sends them while the
     * loop is blocked. NULL if there are none. heddle_connection_start reads this member.
     */
    const char *farewell;
    size_t farewell_size;
    /* Called when the connection begins to use this protocol; unused input may be buffered. */
    HEDDLE_LAST_USE void (*begin)(heddle_connection *connection);
    /*
     * Called for events, in every state of the connection. `ready`: HEDDLE_HAS_INPUT and so on, already noted in the
     * transport.
     */
    HEDDLE_LAST_USE void (*handle_event)(heddle_connection *connection, uint8_t ready);
    /*
     * Called for the connection's turn to read or to send (io_turns.h). NULL if this protocol has no turns: then all of
     * its output is sent at once.
     */
    HEDDLE_LAST_USE void (*take_turn)(heddle_connection *connection);
    /* Called after output queued by heddle_connection_flush_later was offered to the kernel. May be NULL. */
    void (*flushed)(heddle_connection *connection);
    /* Called when the time set by heddle_connection_set_deadline has passed. */
    HEDDLE_LAST_USE void (*handle_deadline)(heddle_connection *connection);
    /* True between requests: the connection may be closed or handed off without loss of data. */
    bool (*is_idle)(const heddle_connection *connection);
    /* When an idle connection began to wait for a request: CLOCK_MONOTONIC, ns. NULL if that is not known. */
    int64_t (*idle_since)(const heddle_connection *connection);
    /*
     * When the client last sent or read something: CLOCK_MONOTONIC, ns. Called for a connection that is not idle and
     * that no runner serves. Returns INT64_MAX if the connection must not be closed. NULL if connections of this
     * protocol must never be closed.
     */
    int64_t (*heard_at)(const heddle_connection *connection);
    /*
     * Notifies the client and closes the connection at once, to make room for others. If NULL, the connection is closed
     * without a notice.
     */
    HEDDLE_LAST_USE void (*yield_room)(heddle_connection *connection);
    /*
     * True while a request is received, or the rest of a response is sent. Called only while no runner serves the
     * connection. NULL if connections of this protocol are never in transit.
     */
    bool (*is_in_transit)(const heddle_connection *connection);
    /*
     * The number of bytes that wait for the client (slow_readers.c). NULL: all of them are in the connection's output.
     */
    size_t (*count_waiting)(const heddle_connection *connection);
    /*
     * Called for an idle connection when the server stops: notifies the client, and then closes the connection. If
     * NULL, the connection is closed at once.
     */
    HEDDLE_LAST_USE void (*end_idle)(heddle_connection *connection);
    /*
     * Fills `pieces`, at most HEDDLE_INPUT_PIECES, with the raw bytes of the request that waits for a runner, so that
     * another process can serve it. Returns the number of pieces, or -1 if part of the request is no longer buffered as
     * it was received. Called on any thread that owns the connection, without the GVL. NULL means -1.
     */
    int (*collect_input)(const heddle_connection *connection, struct iovec *pieces);
    /*
     * Writes at most HEDDLE_SESSION_DESCRIPTION bytes that describe the session, so that another process can continue
     * it (see load_session). Returns the number of bytes, or -1 if the session can't be handed off or the connection is
     * gone. Called in the loop, during a drain. NULL if this protocol's sessions are never handed off in this way.
     */
    ssize_t (*describe)(heddle_connection *connection, char *bytes);
    /*
     * The hashed label of the request that has arrived, even if the request is still in the kernel's buffer; 0 if it is
     * unknown. NULL if there are no labels. Called on any thread that owns the connection, without the GVL.
     */
    uint32_t (*label)(const heddle_connection *connection);
    /* Frees the session. Called when the connection is closed or detached, or changes its protocol. */
    void (*release)(heddle_connection *connection);
    /* Called in a forked child: marks the connection closed for code that still serves it. Must take no lock. */
    void (*abandon)(heddle_connection *connection);
};

/* Errors in the first bytes of a connection. */
typedef enum {
    HEDDLE_NO_PROXY_HEADER, /* the listener expects a PROXY header */
    HEDDLE_NO_TLS,          /* the listener expects a TLS handshake */
} heddle_handshake_error;

/*
 * A service chooses the protocol of the connections of a Sockets. HTTP's engine is one; net/ knows it by this table
 * alone. It is the C part of a Ruby object, and may exist longer than the object.
 */
typedef struct heddle_service heddle_service;
typedef struct {
    /*
     * Called once, when the handshake stage is complete: starts the first protocol with heddle_connection_start. A
     * protocol may replace itself later, as HTTP/1.1 does when it reads the preface of HTTP/2.
     */
    HEDDLE_LAST_USE void (*choose_protocol)(heddle_connection *connection);
    /*
     * Called when the first bytes of the client are not what the listener expects: sends a response and closes the
     * connection.
     */
    HEDDLE_LAST_USE void (*reject_handshake)(heddle_connection *connection, heddle_handshake_error error);
    /*
     * Called when the client has not begun the expected TLS handshake. Does its first byte begin one of the service's
     * protocols without TLS?
     */
    bool (*is_plaintext)(char first);
    /*
     * Loads the session of a connection that another process has handed off: makes the argument of resume_session from
     * the String `description`, with the GVL. May wait. Sets `*state` like rb_protect; the caller raises the exception.
     * If it returns nil, the session ends.
     */
    VALUE (*load_session)(heddle_service *service, VALUE description, int *state);
    /* Called instead of choose_protocol. */
    HEDDLE_LAST_USE void (*resume_session)(heddle_connection *connection, VALUE loaded);
    void (*free)(heddle_service *service);
} heddle_service_operations;

struct heddle_service {
    const heddle_service_operations *operations;
    size_t holders; /* references: its Ruby object, and each Sockets */
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

/* The parent data type of all services' Ruby objects. */
extern const rb_data_type_t heddle_service_type;

/* Gives the connection a protocol and its session, which replace the earlier ones. */
HEDDLE_LAST_USE void heddle_connection_start(heddle_connection *connection, const heddle_protocol *protocol,
                                             void *session);
