#ifndef HEDDLE_PROTOCOL_H
#define HEDDLE_PROTOCOL_H

/*
 * The protocol of a connection, and the service that chooses it. A connection has a protocol from the end of its
 * handshake stage on, and a session, which is that protocol's own record of it. Both may change while the connection
 * lives.
 */

#include "net/connection.h"
#include "net/fate.h"
#include "net/work.h"

enum {
    HEDDLE_INPUT_PIECES = 3,
    HEDDLE_SESSION_WORDS = 2048, /* bytes, at most, that `describe` writes */
};

/*
 * All operations but `collect_input` and `label` run in the loop, with the GVL, and never raise. The connection may be
 * gone after `begin`, `handle_event` and `handle_deadline`.
 */
struct heddle_protocol {
    const char *name;
    bool stays; /* the watch thread never moves its connections to another process: they are never at rest */
    /*
     * Bytes that make the client reconnect. They are valid between any two frames. The
     * watch thread sends it while the loop is held up. NULL: there are no such words. heddle_connection_start uses it.
     */
    const char *farewell;
    size_t farewell_size;
    /* The connection speaks this protocol from here on; input may be buffered. */
    HEDDLE_LAST_USE void (*begin)(heddle_connection *connection);
    /* `ready`: HEDDLE_HAS_INPUT and so on, noted in the transport already. Delivered whatever the connection does. */
    HEDDLE_LAST_USE void (*handle_event)(heddle_connection *connection, uint8_t ready);
    /* It is the connection's turn to read (input_turns.h). NULL: this protocol asks for none. */
    HEDDLE_LAST_USE void (*read_on)(heddle_connection *connection);
    /* Output that was put off with heddle_connection_flush_later was offered to the kernel. NULL: it needs not know. */
    void (*flushed)(heddle_connection *connection);
    /* The time set with heddle_connection_set_deadline has passed. */
    HEDDLE_LAST_USE void (*handle_deadline)(heddle_connection *connection);
    /* True when the connection is between requests: it may be closed or handed off without a loss of data. */
    bool (*is_idle)(const heddle_connection *connection);
    /*
     * It is idle, and the sockets stop: tells the client so, and closes when that has been sent. NULL: it is closed
     * without a word.
     */
    HEDDLE_LAST_USE void (*end_idle)(heddle_connection *connection);
    /*
     * Fills `pieces`, at most HEDDLE_INPUT_PIECES, with the raw bytes of the request that no runner has taken, so that
     * another process can continue it. Returns their number, or -1 when a part of it is not buffered as it came. On any
     * thread that owns the connection, without the GVL.
     */
    int (*collect_input)(const heddle_connection *connection, struct iovec *pieces);
    /*
     * Writes at most HEDDLE_SESSION_WORDS bytes that describe the session: another process goes on with them (see
     * load_session). Returns how many, or -1: the session stays, or the connection is gone. In the loop, during a drain.
     * NULL: sessions stay, or are handed off by other means.
     */
    ssize_t (*describe)(heddle_connection *connection, char *words);
    /*
     * The label, hashed, of the request that has come or is about to, including what the kernel still has. 0: unknown.
     * NULL: there are no labels. On any thread that owns the connection, without the GVL.
     */
    uint32_t (*label)(const heddle_connection *connection);
    /* The connection is closed, detached or changes its protocol: frees the session. */
    void (*release)(heddle_connection *connection);
    /* In a child process after fork: marks the connection closed for code that still serves it. Must take no lock. */
    void (*abandon)(heddle_connection *connection);
};

/* Errors in the first bytes of a connection. */
typedef enum {
    HEDDLE_NO_PROXY_HEADER, /* its listener expects the header of the PROXY protocol */
    HEDDLE_NO_TLS,          /* its listener expects a TLS handshake */
} heddle_handshake_error;

/* The purpose of the connections of a Sockets. The C part of a Ruby object, which it may outlive. */
typedef struct heddle_service heddle_service;
typedef struct {
    /*
     * Called once, when the handshake stage is complete: starts the first protocol with heddle_connection_start. That
     * one may replace itself later, as HTTP/1.1 does when it reads the preface of HTTP/2.
     */
    HEDDLE_LAST_USE void (*choose_protocol)(heddle_connection *connection);
    /* The client does not send what its listener expects first: answers and closes. */
    HEDDLE_LAST_USE void (*reject_handshake)(heddle_connection *connection, heddle_handshake_error error);
    /*
     * True when this first byte, where a TLS handshake is expected, begins one of the service's own protocols. NULL:
     * the service recognizes none.
     */
    bool (*is_plaintext)(char first);
    /*
     * Another process has handed off a session, which these words, a String, describe: makes of them what resume_session
     * needs, with the GVL. It may wait. `*state`: what rb_protect says; an exception is raised on. nil: the session ends.
     * NULL: no session of this service moves.
     */
    VALUE (*load_session)(heddle_service *service, VALUE words, int *state);
    /* Called in place of choose_protocol. */
    HEDDLE_LAST_USE void (*resume_session)(heddle_connection *connection, VALUE loaded);
    void (*free)(heddle_service *service); /* NULL: static */
} heddle_service_operations;

struct heddle_service {
    const heddle_service_operations *operations;
    size_t holders; /* its Ruby object, and each Sockets */
};

static inline void heddle_service_hold(heddle_service *service)
{
    service->holders++;
}

static inline void heddle_service_release(heddle_service *service)
{
    if (--service->holders == 0 && service->operations->free)
        service->operations->free(service);
}

/* The parent of the data type of a service's Ruby object. */
extern const rb_data_type_t heddle_service_type;

/* Bytes as they come: the work item is queued when the connection becomes readable. */
extern heddle_service heddle_raw_service;

/*
 * Gives the connection a protocol and its session, in place of those that it has had.
 */
HEDDLE_LAST_USE void heddle_connection_start(heddle_connection *connection, const heddle_protocol *protocol, void *session);

static inline void *heddle_connection_session(const heddle_connection *connection)
{
    return connection->session;
}

#endif
