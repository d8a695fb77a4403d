#pragma once

/*
 * The server's side of an HTTP/2 connection. Joins a session (the protocol without I/O, h2/session.h) to a connection
 * and to its exchanges (requests with their responses).
 */

#include "http/engine.h"
#include "http/h2/session_state.h"
#include "http/h2/server/tunnel.h"
#include "http/protocols.h"
#include "net/fate.h"
#include "net/sockets.h"

enum {
    /* bytes that are queued for the kernel at once; few, because a change of priority does not affect queued bytes */
    HEDDLE_H2_AT_ONCE = 65536,
};

typedef struct heddle_h2_carrier heddle_h2_carrier;

/* A response's head that is not sent yet. */
typedef struct {
    int status;
    size_t size;  /* the size of `bytes` */
    char bytes[]; /* the fields in the form HEDDLE_AS_FIELDS (http/response_head_writer.h) */
} heddle_h2_held_head;

/* Joins an exchange to its stream. Exists until neither of them needs the carrier. `exchange->carrier` points to it. */
struct heddle_h2_carrier {
    heddle_h2_server *server;
    heddle_h2_stream *stream;
    heddle_exchange *exchange;
    heddle_link link;        /* in the list of all carriers of its server */
    heddle_due due;          /* the time limit of the body, then of waiting for a runner */
    int64_t body_deadline;   /* see heddle_body_next_deadline; each write to the body's file delays it */
    int64_t writing_since;   /* when the writing of the spool's buffer to its file began */
    uint64_t taken;          /* received bytes of the body */
    size_t body_memory;      /* the part of `taken` that is in memory and credited to the connection's window */
    size_t head_memory;      /* bytes of the request without its body; 0 once a runner has taken the request */
    heddle_link turn;        /* in the server's list of carriers that wait to join the ready list */
    bool received;           /* the request was received completely */
    bool streams_body;       /* the application reads the body while it is received */
    bool at_head;            /* the application is called as soon as the head is complete */
    bool expects;            /* the client waits for 100 Continue, which is sent when the application reads */
    /* bytes of the body that came while the spool's buffer was being written, and that are not credited yet */
    size_t uncredited;
    bool gone;               /* the client has reset the stream, or the connection has failed */
    bool blocked;            /* a fiber has content to write, for which the client has made no room yet */
    heddle_h2_held_head *held; /* a head that is sent in the next tick, unless the application fails first; or NULL */
    heddle_wait *waits[2];   /* the fibers that wait to read and to write, by heddle_direction */
};

struct heddle_h2_server {
    heddle_connection *connection; /* NULL: released while the session was in use */
    heddle_h2_session *session;
    heddle_link carriers;
    heddle_link tunnels; /* streams that carry a WebSocket or an event stream, see tunnel.h */
    /*
     * The carrier whose exchange is in the ready list (the queue of requests for runners). There is only one at a time,
     * so that connections take turns.
     */
    heddle_h2_carrier *queued;
    heddle_link waiting; /* carriers that wait to join the ready list */
    uint32_t waiting_count;
    uint32_t held_count, blocked_count; /* carriers with a held head; carriers that are blocked */
    bool ended;     /* the client has sent FIN */
    bool lingers;   /* nothing more is sent, and input is discarded */
    bool swept;     /* no ended carrier is left to be freed */
    size_t body_memory;     /* bytes of all bodies that are in memory and credited to the connection's window */
    size_t held;            /* body_memory, plus the bytes of the heads of waiting requests */
    size_t drawn;           /* the part of `held` that exceeds the connection's own share */
    size_t lent;            /* bytes of this connection's strings that are sent without a copy, see response.c */
    uint64_t lingered;      /* discarded bytes */
    int64_t write_deadline; /* when the kernel must have accepted some output; INT64_MAX: no output, or no limit */
    unsigned depth; /* nested calls into the session */
};

static inline heddle_h2_server *heddle_h2_server_of(const heddle_connection *connection)
{
    return connection->session;
}

static inline heddle_h2_carrier *heddle_h2_carrier_of(const heddle_exchange *exchange)
{
    return exchange->carrier;
}

static inline heddle_h2_carrier *heddle_h2_carrier_at(heddle_link *link)
{
    return link ? HEDDLE_CONTAINER_OF(link, heddle_h2_carrier, link) : NULL;
}

/* Returns NULL if the connection has no carrier. */
static inline heddle_h2_carrier *heddle_h2_first_carrier(const heddle_h2_server *server)
{
    return heddle_h2_carrier_at(heddle_link_first(&server->carriers));
}

/* Returns NULL after the last carrier. */
static inline heddle_h2_carrier *heddle_h2_next_carrier(const heddle_h2_carrier *carrier)
{
    return heddle_h2_carrier_at(heddle_link_after(&carrier->server->carriers, &carrier->link));
}

/* State that the connections of an engine share. */
struct heddle_h2_shared {
    heddle_h2_limits limits;
    heddle_h2_workspace workspace;
    uint64_t memory; /* the limit of `drawn` and of `lent`, in bytes: the option http2_memory */
    uint64_t drawn;  /* bytes of the shared memory that are in use, see heddle_h2_count_memory */
    uint64_t lent;   /* bytes of the strings in `loans` */
    uint32_t blocked_count; /* carriers that are blocked */
    heddle_link loans; /* strings of responses that are sent without a copy, see response.c */
};

/* Notes whether the carrier is blocked. While too many are blocked, no further request begins on their connections. */
static inline void heddle_h2_set_blocked(heddle_h2_carrier *carrier, bool blocked)
{
    uint32_t change = (uint32_t)blocked - carrier->blocked;
    carrier->blocked = blocked;
    carrier->server->blocked_count += change;
    heddle_engine_of_connection(carrier->server->connection)->h2->blocked_count += change;
}

extern const heddle_protocol heddle_h2_protocol;
extern const heddle_exchange_operations heddle_h2_exchange_operations;

/* Its `begin` is called for a connection whose input begins with the preface, or for which ALPN has chosen HTTP/2. */
extern const heddle_http_protocol heddle_h2_http_protocol;
/* Must be called before a call into the session that may end streams. heddle_h2_leave_session ends such a call. */
static inline void heddle_h2_enter_session(heddle_h2_server *server)
{
    server->depth++;
    server->session->now = heddle_clock_coarse();
}
/* Returns HEDDLE_GONE if the connection was freed, with everything that belongs to it. */
HEDDLE_FATE heddle_h2_leave_session(heddle_h2_server *server);

/* -- h2/server/sending.c ------------------------------------------------------------------------------------------- */

/*
 * Sends one part of the session's output. Small output is sent at the beginning of the next tick, together with the
 * output of other streams.
 */
HEDDLE_FATE heddle_h2_send(heddle_h2_server *server);
/* The same as heddle_h2_send, but sends small output now, too. */
HEDDLE_FATE heddle_h2_send_now(heddle_h2_server *server);
/*
 * Sends the connection's output, as far as the kernel accepts it. Each accepted byte restarts the client's time limit.
 * Returns 0 if all is sent, -EAGAIN or another -errno.
 */
int heddle_h2_flush_queue(heddle_h2_server *server);
/*
 * Sends one part of the session's output like heddle_h2_send_now, but never closes the connection. Returns 0 if nothing
 * is left. Returns -EAGAIN if output is left, the session is in use, or the connection waits for its turn to send.
 * Returns -ENOMEM, or another -errno if the connection is broken.
 */
int heddle_h2_flush(heddle_h2_server *server);
/* Ends a call into the session, and sends the session's output: the caller must not use the connection afterwards. */
static inline void heddle_h2_end_call(heddle_h2_server *server)
{
    if (heddle_h2_leave_session(server))
        heddle_last_use(heddle_h2_send(server));
}

/* -- h2/server/reading.c ------------------------------------------------------------------------------------------- */

/*
 * Reads until no more bytes are available, the connection's turn has ended, or the session accepts no more before its
 * output is sent. Then sends a part of the output.
 */
HEDDLE_LAST_USE void heddle_h2_read_and_send(heddle_h2_server *server);
/* Discards input while the client receives the last frame. */
HEDDLE_LAST_USE void heddle_h2_discard_input(heddle_h2_server *server);

/* -- h2/server/exchange_streams.c ---------------------------------------------------------------------------------- */

/* The operations that the session calls for its streams. */
extern const heddle_h2_operations heddle_h2_carrier_operations;
/*
 * Queues the exchange for a runner, unless it is queued already. Admission may reject exchanges, which frees their
 * carriers.
 */
void heddle_h2_queue(heddle_h2_carrier *carrier);

/*
 * Adds `change` bytes to the memory that the connection holds. Each connection has a share of its own, as large as over
 * HTTP/1.1 (ConnectionLimit in Ruby). A connection that needs more uses memory that all connections of the engine
 * share.
 */
void heddle_h2_count_memory(heddle_h2_server *server, ssize_t change);
/*
 * Does the connection exceed its share while three quarters of the shared memory are in use? Then its bodies go to
 * files, and the clients of its WebSockets must wait.
 */
bool heddle_h2_holds_too_much_data(const heddle_h2_server *server);

/*
 * Can the next waiting request of this connection be queued? Returns false if none waits or one is queued already. Also
 * returns false while all connections together have too many lent bytes or blocked carriers, and this one has some.
 */
bool heddle_h2_may_queue(const heddle_h2_server *server);
/* Adds the next exchange to the ready list. Admission may reject exchanges, which frees their carriers. */
HEDDLE_FATE heddle_h2_queue_next(heddle_h2_server *server);

/* Ends an exchange whose stream already has another owner. The caller must call heddle_h2_end_call. */
void heddle_h2_transfer_stream(heddle_h2_carrier *carrier);
/* The operation `taken` of an exchange: called when a runner has taken it. */
void heddle_h2_note_taken(heddle_exchange *exchange);

/*
 * Called when the stream has ended early, and only within a call into the session. If the application is running, it
 * continues until it returns, and the request counts among the client's streams until then. Otherwise the exchange ends
 * at the end of the outermost call into the session.
 */
void heddle_h2_end_carrier(heddle_h2_carrier *carrier);
/* Frees the carrier, but does not release its stream. */
void heddle_h2_free_carrier(heddle_h2_carrier *carrier);
/*
 * Ends an exchange: releases its stream, and frees the carrier. The caller must then queue the next exchange, for
 * example with heddle_h2_send.
 */
void heddle_h2_drop_carrier(heddle_h2_carrier *carrier);
/* Resets the stream of a running exchange: its next read or write raises ClientGoneError. */
void heddle_h2_reset_exchange(heddle_h2_carrier *carrier);

/* -- h2/server/body.c ---------------------------------------------------------------------------------------------- */

/* Begins a body that is received before the application is called: sets its time limit. */
void heddle_h2_begin_body(heddle_h2_carrier *carrier);
/* Stores received bytes of the body. */
HEDDLE_LAST_USE void heddle_h2_take_data(heddle_h2_carrier *carrier, const char *bytes, size_t size);
/* Adds `change` bytes to the body's bytes in memory, see `body_memory`. */
void heddle_h2_count_body(heddle_h2_carrier *carrier, ssize_t change);
/* Called when the body is complete. */
HEDDLE_LAST_USE void heddle_h2_end_body(heddle_h2_carrier *carrier);

/* -- h2/server/response.c ------------------------------------------------------------------------------------------ */

/* Sends a head. `bytes`: the fields in the form HEDDLE_AS_FIELDS. Returns HEDDLE_H2_GONE also when out of memory. */
heddle_h2_write_result heddle_h2_send_head(heddle_h2_carrier *carrier, int status, const char *bytes, size_t size,
                                           bool end);
/* Keeps a head until the next tick. Returns HEDDLE_H2_WRITTEN, or why the head can't be sent. */
heddle_h2_write_result heddle_h2_hold_head(heddle_h2_carrier *carrier, int status, const char *bytes, size_t size);
/* Sends the held head, if there is one. */
void heddle_h2_release_head(heddle_h2_carrier *carrier);
/* Discards the held head. Returns false if there is none. */
bool heddle_h2_drop_head(heddle_h2_carrier *carrier);
/* Sends the held heads of all streams. Must be called within a call into the session (heddle_h2_enter_session). */
void heddle_h2_release_heads(heddle_h2_server *server);
/* Sends the whole response to a rejected request. `retry_after`: the value of the Retry-After field, or NULL. */
void heddle_h2_send_rejection(heddle_h2_server *server, heddle_h2_stream *stream, const heddle_rejection *rejection,
                              bool content, const char *retry_after);

/*
 * Sends one string of a response whose content is complete. Copies a short string if the session has room. Otherwise
 * lends the string to the session, which sends it without a copy. Never waits for the client. Returns false when out of
 * memory, or if the response can't be sent any more.
 */
bool heddle_h2_send_string(heddle_h2_carrier *carrier, VALUE string);
/* Marks the lent strings for the garbage collector. */
void heddle_h2_mark_loans(const heddle_engine *engine);

void Init_heddle_h2_exchange(VALUE h2);
