#pragma once

/*
 * The transitions between a session's stages, and the functions that the following files share. Each of these files
 * calls only the files above it in this list:
 *
 *   session.c   queues a request, sends the rest of a response, rejects, lingers
 *   body.c      stores the body of a request
 *   reading.c   receives bytes and parses them until a request is complete
 *   server.c    handles events and time limits, ends exchanges
 */

#include "http/h1/server/server.h"
#include "net/fate.h"
#include "selector/assert.h"

/* One row for each stage, one bit for each stage that may follow. A session may end in any stage. */
static inline bool heddle_h1_may_enter(uint8_t from, uint8_t to)
{
    enum {
        IDLE = 1 << HEDDLE_H1_IDLE,
        HEAD = 1 << HEDDLE_H1_HEAD,
        BODY = 1 << HEDDLE_H1_BODY,
        SPOOLING = 1 << HEDDLE_H1_SPOOLING,
        READY = 1 << HEDDLE_H1_READY,
        DISCARD = 1 << HEDDLE_H1_DISCARD,
        SENDING = 1 << HEDDLE_H1_SENDING,
        LINGER = 1 << HEDDLE_H1_LINGER,
        REJECTED = SENDING | LINGER,
    };
    static const uint8_t allowed[] = {
        [HEDDLE_H1_IDLE] = IDLE | HEAD | BODY | READY | DISCARD | REJECTED,
        [HEDDLE_H1_HEAD] = BODY | READY | REJECTED,
        [HEDDLE_H1_BODY] = SPOOLING | READY | REJECTED,
        [HEDDLE_H1_SPOOLING] = BODY | REJECTED,
        [HEDDLE_H1_READY] = IDLE | REJECTED,
        [HEDDLE_H1_DISCARD] = IDLE | REJECTED,
        [HEDDLE_H1_SENDING] = IDLE | LINGER,
        [HEDDLE_H1_LINGER] = 0,
    };
    return allowed[from] >> to & 1;
}

static inline void heddle_h1_enter(heddle_h1 *h1, heddle_h1_stage stage)
{
    HEDDLE_ASSERT(heddle_h1_may_enter(h1->stage, stage));
    h1->stage = stage;
}

/* The result of parsing more bytes. */
typedef enum {
    HEDDLE_H1_MORE,    /* more bytes are needed */
    HEDDLE_H1_SERVE,   /* the request is ready to be queued for a runner */
    HEDDLE_H1_SPOOLS,  /* nothing can be parsed until a part of the body is written to its file */
    HEDDLE_H1_DISCARDED, /* a discarded body has ended; the response must be sent before the next request is parsed */
    HEDDLE_H1_ENDED,   /* the session is over: the connection is closing or gone, or has changed to HTTP/2 */
} heddle_h1_progress;

/* -- h1/server/session.c ------------------------------------------------------------------------------------------- */

/*
 * Queues the request for a runner (a pooled fiber that calls the application). `at_front`: before all other work items,
 * so that the runner of the connection's previous request serves it.
 */
void heddle_h1_queue_request(heddle_connection *connection, bool at_front);
/* Sends the rest of the output. As soon as all of it is sent, the session continues with `next`. */
HEDDLE_LAST_USE void heddle_h1_send_rest(heddle_connection *connection, heddle_h1_next next);
/* Called when all output has been sent: continues with h1->after_sending. */
HEDDLE_LAST_USE void heddle_h1_proceed(heddle_connection *connection);
/*
 * Discards input after the last response. Closes the connection when the client leaves or has sent linger_limit bytes;
 * otherwise the session waits for more input, until linger_timeout has passed.
 */
HEDDLE_LAST_USE void heddle_h1_linger(heddle_connection *connection);
/*
 * Sends the response to a request that does not reach the application, then lingers and closes. `retry_after`: the
 * value of the Retry-After field, or NULL.
 */
HEDDLE_LAST_USE void heddle_h1_reject(heddle_connection *connection, const heddle_rejection *rejection,
                                      const char *retry_after);

static inline HEDDLE_LAST_USE heddle_h1_progress heddle_h1_give_up(heddle_connection *connection)
{
    heddle_sockets_close_idle(connection);
    return HEDDLE_H1_ENDED;
}

/* -- h1/server/body.c ---------------------------------------------------------------------------------------------- */

/* Called when the head of a request with a body is complete. `begun`: bytes of the body came with it. */
HEDDLE_MUST_CHECK heddle_h1_progress heddle_h1_begin_body(heddle_connection *connection, bool begun);
/* Parses bytes of a body. Sets `*used` to the number of bytes that it has parsed. May overwrite `bytes`. */
HEDDLE_MUST_CHECK heddle_h1_progress heddle_h1_parse_body(heddle_connection *connection, char *bytes, size_t size,
                                                          size_t *used);
/*
 * Returns the memory into which the next bytes of a body of known length must be received, and sets `*size` to the
 * size of this memory. Returns NULL if memory can't be allocated.
 */
char *heddle_h1_find_body_room(heddle_connection *connection, size_t *size);
/* Called when all received bytes of the body are parsed: sets the deadline for the next bytes. */
void heddle_h1_await_body(heddle_connection *connection);

/* -- h1/server/reading.c ------------------------------------------------------------------------------------------- */

/* Receives bytes and parses them until a request is complete, or until no more bytes are available. */
HEDDLE_LAST_USE void heddle_h1_read_input(heddle_connection *connection);
/* The same as heddle_h1_read_input, but first parses the bytes that were received earlier. */
HEDDLE_LAST_USE void heddle_h1_parse_buffered(heddle_connection *connection);
/*
 * Parses the next pipelined request and queues it before all other work items, if the connection may serve another
 * request in its turn. The responses of a turn are sent together. Returns true if the request was queued, or if the
 * connection may be gone. Returns false in two cases:
 *
 * - No request was parsed, because there is no input, the turn has ended, much output is queued or other requests wait
 *   for admission. The stage is unchanged.
 * - The request is incomplete. The stage is IDLE, BODY or SPOOLING. The caller must receive the rest.
 */
HEDDLE_MUST_CHECK bool heddle_h1_queue_pipelined(heddle_connection *connection);
/*
 * Returns how many ns a connection may be idle: idle_timeout, but before its first response at most head_timeout. This
 * limits how long a client that only opens connections can occupy memory and descriptors. A `shared` connection always
 * gets idle_timeout, because another process may have sent responses over it.
 */
int64_t heddle_h1_idle_timeout(const heddle_connection *connection);
/* Have bytes of a head been received? Empty lines before a request are ignored (RFC 9112, section 2.2). */
bool heddle_h1_has_begun(const heddle_connection *connection);
