#pragma once

/*
 * The server's side of an HTTP/1.1 connection. The loop receives heads and bodies without a fiber, and keeps its
 * progress in a `heddle_h1`. A runner (a pooled fiber that calls the application) is used only while a request is
 * served.
 */

#include "http/engine.h"
#include "http/protocols.h"
#include "net/fate.h"
#include "net/sockets.h"

typedef enum {
    HEDDLE_H1_IDLE,    /* between requests */
    HEDDLE_H1_HEAD,    /* receives a head */
    HEDDLE_H1_BODY,    /* receives a body before the request is served */
    HEDDLE_H1_SPOOLING, /* a part of the body is written to its file; nothing is received meanwhile */
    HEDDLE_H1_READY,   /* the request waits for a runner, or a runner serves it */
    HEDDLE_H1_DISCARD, /* receives the rest of a body that the application did not read */
    HEDDLE_H1_SENDING, /* sends the rest of its output, then continues with heddle_h1.after_sending */
    HEDDLE_H1_LINGER,  /* the last response was sent; discards what the client still sends */
} heddle_h1_stage;

/* How the session continues when all output has been sent. */
typedef enum {
    HEDDLE_H1_THEN_IDLE,   /* parses the next request */
    HEDDLE_H1_THEN_LINGER,
    HEDDLE_H1_THEN_CLOSE,
} heddle_h1_next;

typedef struct {
    uint8_t stage;   /* a heddle_h1_stage */
    uint8_t after_sending; /* a heddle_h1_next */
    uint8_t pipelined; /* number of pipelined requests before this one, at most HEDDLE_LONGEST_TURN */
    uint8_t reads;   /* how often a streamed body was read since its fiber last waited */
    bool ended;      /* the client has sent FIN */
    bool answered;   /* a response was sent, so no preface of HTTP/2 can follow */
    bool asks_for_head; /* the incomplete or rejected head belongs to a HEAD request */
    bool received;   /* the body was received completely, or there is none */
    bool persists;   /* the client wants to keep the connection open */
    bool expects;    /* the client waits for 100 Continue */
    bool streams_body; /* the application reads the body while it is received */
    uint32_t seen;   /* bytes of an incomplete head that were already parsed */
    int64_t head_began; /* when the first bytes of an incomplete head were received; all times: CLOCK_MONOTONIC, ns */
    int64_t body_deadline; /* see heddle_body_next_deadline; the time for writing to the body's file is added */
    int64_t body_heard;    /* when the last bytes of the body were received, or the response ended before them */
    int64_t writing_since; /* when the writing of a part of the body to its file began */
    uint64_t taken;  /* bytes of the body that were received; in the stage LINGER, discarded bytes */
    int64_t left;    /* bytes of the body that are still to come; or HEDDLE_CHUNKED_BODY, HEDDLE_NO_BODY */
    heddle_chunked chunked;
    heddle_exchange *exchange; /* the request that is being received, queued or served, and its response; or NULL */
} heddle_h1;

static inline heddle_h1 *heddle_h1_of(const heddle_connection *connection)
{
    return connection->session;
}

extern const heddle_protocol heddle_h1_protocol;
extern const heddle_exchange_operations heddle_h1_exchange_operations;
extern const heddle_http_protocol heddle_h1_http_protocol;

/*
 * Queues the response to a rejected request. Returns false if there is no memory for it. `content`: false for a HEAD
 * request, whose response has no content. `retry_after`: the value of the Retry-After field, or NULL.
 */
bool heddle_h1_add_rejection(heddle_connection *connection, const heddle_rejection *rejection, bool content,
                             const char *retry_after);
/*
 * May the connection be kept open after the current response? Returns false while the server stops. Also returns false
 * if the unread rest of the request's body can't be received and discarded, for example because it is too large, or
 * because the client waits for 100 Continue before it sends the body.
 */
bool heddle_h1_may_persist(const heddle_connection *connection);
/*
 * Called when the whole response is sent or queued. The runner must not use the connection afterwards. `reusable`: the
 * response allows the connection to stay open.
 */
HEDDLE_LAST_USE void heddle_h1_complete_response(heddle_connection *connection, bool reusable, int status);
/*
 * Called when the response that changes the protocol was written; `status` is its status. Starts `protocol` on the
 * connection. The runner must not use the connection afterwards.
 */
HEDDLE_LAST_USE void heddle_h1_change_protocol(heddle_connection *connection, const heddle_protocol *protocol,
                                               void *session, int status);
/*
 * Like heddle_h1_complete_response, but the connection lingers afterwards, so that a client that is still sending gets
 * the response.
 */
HEDDLE_LAST_USE void heddle_h1_complete_rejection(heddle_connection *connection, int status);
/* The operation `watch_disconnect` of an exchange: see http/exchange.h. */
bool heddle_h1_watch_disconnect(heddle_exchange *exchange);
