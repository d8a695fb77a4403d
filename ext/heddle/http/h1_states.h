#ifndef HEDDLE_HTTP_H1_STATES_H
#define HEDDLE_HTTP_H1_STATES_H

/*
 * How the states of a session follow each other: h1_reading.c up to a request, h1_body.c within its body, h1_server.c
 * after its response.
 */

#include "http/h1_server.h"
#include "net/fate.h"
#include "selector/assert.h"

/* A row for each state, a bit for each state that may follow it. A session may end in any state. */
static inline bool heddle_h1_may_enter(uint8_t from, uint8_t to)
{
    enum {
        IDLE = 1 << HEDDLE_H1_IDLE,
        HEAD = 1 << HEDDLE_H1_HEAD,
        BODY = 1 << HEDDLE_H1_BODY,
        WRITING = 1 << HEDDLE_H1_WRITING,
        READY = 1 << HEDDLE_H1_READY,
        DISCARD = 1 << HEDDLE_H1_DISCARD,
        SENDING = 1 << HEDDLE_H1_SENDING,
        LINGER = 1 << HEDDLE_H1_LINGER,
        REFUSED = SENDING | LINGER,
    };
    static const uint8_t allowed[] = {
        [HEDDLE_H1_IDLE] = IDLE | HEAD | BODY | READY | DISCARD | REFUSED,
        [HEDDLE_H1_HEAD] = BODY | READY | REFUSED,
        [HEDDLE_H1_BODY] = WRITING | READY | REFUSED,
        [HEDDLE_H1_WRITING] = BODY | REFUSED,
        [HEDDLE_H1_READY] = IDLE | REFUSED,
        [HEDDLE_H1_DISCARD] = IDLE | REFUSED,
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
    HEDDLE_H1_MORE,    /* all of it is used that can be, more is needed */
    HEDDLE_H1_SERVE,   /* a request is to be served */
    HEDDLE_H1_WRITES,  /* nothing more is used before a part of the body is written */
    HEDDLE_H1_DROPPED, /* a body that nobody wanted has ended: its answer leaves before the next request is looked at */
    HEDDLE_H1_ENDED,    /* this session reads no more: the connection closes, or HTTP/2 has taken its place */
} heddle_h1_progress;

/* -- h1_body.c; the connection may be gone after those with a progress ---------------------------------------------- */

/* The head of a request with a body is complete; has the client `begun` to send it? */
heddle_h1_progress heddle_h1_begin_body(heddle_connection *connection, bool begun);
heddle_h1_progress heddle_h1_take_body(heddle_connection *connection, char *bytes, size_t size, size_t *used);
/* Where the next bytes of a body of known length belong, `*size` of them; NULL without memory. */
char *heddle_h1_body_room(heddle_connection *connection, size_t *size);
/* Nothing of the body is here for now: sets the deadline for the next bytes. */
void heddle_h1_body_waits(heddle_connection *connection);
/* When the body is too slow, if no more of it comes. */
int64_t heddle_h1_body_deadline(const heddle_engine *engine, const heddle_h1 *h1);

/* -- h1_reading.c ----------------------------------------------------------------------------------------------- */

/* Reads until a request is complete, or nothing more is there. */
HEDDLE_LAST_USE void heddle_h1_read_on(heddle_connection *connection);
/* The same, but what came ahead is looked at first. */
HEDDLE_LAST_USE void heddle_h1_take_buffered(heddle_connection *connection);
/*
 * The next of several requests that came together: they are answered without a look at other connections and with one
 * write, but not for ever. false: there is none now.
 */
bool heddle_h1_take_pipelined(heddle_connection *connection);
/* Queues the request for a runner; `next`: before all others, so that the runner of the last request takes it. */
void heddle_h1_serve(heddle_connection *connection, bool next);
/* Has a head begun? Empty lines before a request are ignored. */
bool heddle_h1_has_begun(const heddle_connection *connection);

/* -- h1_server.c ------------------------------------------------------------------------------------------------- */

HEDDLE_LAST_USE void heddle_h1_close(heddle_connection *connection);
/* Its deadline is so many nanoseconds from now. */
void heddle_h1_due_in(heddle_connection *connection, int64_t duration);
/* As soon as everything is sent. */
HEDDLE_LAST_USE void heddle_h1_after_output(heddle_connection *connection, heddle_h1_next next);
/* Answers by itself what never becomes a request of the application, and closes. `retry_after`: a value, or NULL. */
HEDDLE_LAST_USE void heddle_h1_reject(heddle_connection *connection, const heddle_rejection *rejection,
                                      const char *retry_after);

#endif
