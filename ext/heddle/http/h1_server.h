#ifndef HEDDLE_HTTP_H1_SERVER_H
#define HEDDLE_HTTP_H1_SERVER_H

/*
 * The server's side of an HTTP/1 connection. While nobody serves it, it is this record, and reads heads and bodies
 * by itself: a client that takes its time costs no fiber.
 */

#include "http/engine.h"
#include "net/fate.h"
#include "net/sockets.h"

typedef enum {
    HEDDLE_H1_IDLE,    /* between requests */
    HEDDLE_H1_HEAD,    /* in a head */
    HEDDLE_H1_BODY,    /* in a body that is read before anybody serves the request */
    HEDDLE_H1_WRITING, /* a part of that body is written to its file; meanwhile nothing is read */
    HEDDLE_H1_READY,   /* waits for a runner, or has one */
    HEDDLE_H1_DISCARD, /* in what the application has left of a body */
    HEDDLE_H1_SENDING, /* the output has to leave before anything else happens */
    HEDDLE_H1_LINGER,  /* the answer was the last one, the client still sends */
} heddle_h1_stage;

/* The next step once all output is sent. */
typedef enum {
    HEDDLE_H1_THEN_IDLE,
    HEDDLE_H1_THEN_LINGER,
    HEDDLE_H1_THEN_CLOSE,
} heddle_h1_next;

typedef struct {
    uint8_t stage;   /* heddle_h1_stage */
    uint8_t next;    /* heddle_h1_next: what follows SENDING */
    uint8_t pipelined; /* requests before this one since the input was used up, at most HEDDLE_LONGEST_TURN */
    bool ended;      /* the client has sent FIN */
    bool answered;   /* a request: what follows is no preface of HTTP/2 */
    bool received;   /* the body is complete, as far as the wire is concerned */
    bool persists;   /* the client means to go on with the connection */
    bool expects;    /* the client waits for 100 Continue */
    bool streams;    /* the application reads the body as it comes */
    uint32_t seen;   /* of a head that is not complete */
    int64_t since;   /* when the body began; later by the time that writing it took */
    int64_t writing_since;
    uint64_t taken;  /* bytes of the body, or while lingering, that came */
    int64_t left;    /* of a body whose length is known */
    heddle_chunked chunked;
    heddle_exchange *exchange; /* the one that is received, waits or runs; NULL: none */
} heddle_h1;

static inline heddle_h1 *heddle_h1_of(const heddle_connection *connection)
{
    return heddle_connection_session(connection);
}

static inline heddle_engine *heddle_h1_engine(const heddle_connection *connection)
{
    return heddle_engine_of_connection(connection);
}

extern const heddle_protocol heddle_h1_protocol;
extern const heddle_exchange_operations heddle_h1_exchange_operations;
/* The connection speaks HTTP/1.1 from here on. */
HEDDLE_LAST_USE void heddle_h1_begin(heddle_connection *connection);
/* It has sent something else: answers with this status, and closes. */
HEDDLE_LAST_USE void heddle_h1_begin_rejecting(heddle_connection *connection, int status, const char *reason);

/* Puts the answer to what is refused into the output; false: there is no memory. `retry_after`: a value, or NULL. */
bool heddle_h1_add_rejection(heddle_connection *connection, const heddle_rejection *rejection, bool content,
                             const char *retry_after);
/* Is what the application has left of the body likely worth reading for the sake of the connection? */
bool heddle_h1_discardable(const heddle_engine *engine, const heddle_h1 *h1);
/* The answer is complete, or on its way: the connection leaves its runner. */
HEDDLE_LAST_USE void heddle_h1_answered(heddle_connection *connection, bool reusable, int status);
/*
 * The head of a response that changes the protocol is written: the connection leaves its runner, and speaks this protocol
 * from here on.
 */
HEDDLE_LAST_USE void heddle_h1_change_protocol(heddle_connection *connection, const heddle_protocol *protocol,
                                               void *session);
/* The same, after which it lingers: the client gets the answer though it still sends. */
HEDDLE_LAST_USE void heddle_h1_rejected(heddle_connection *connection, int status);
/* `watch_disconnect` of the exchange's operations. */
bool heddle_h1_watch_disconnect(heddle_exchange *exchange);

#endif
