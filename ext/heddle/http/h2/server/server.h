#pragma once

/* The server's side of an HTTP/2 connection: a session between a connection and its exchanges. */

#include "http/engine.h"
#include "http/h2/session_state.h"
#include "http/h2/server/tunnel.h"
#include "http/protocols.h"
#include "net/fate.h"
#include "net/sockets.h"

enum {
    /* bytes that are queued for the kernel; no more, because a later change of priority does not affect queued bytes */
    HEDDLE_H2_AT_ONCE = 65536,
};

typedef struct heddle_h2_carrier heddle_h2_carrier;

/* The head of a response, with fields packed by HEDDLE_AS_FIELDS. */
typedef struct {
    int status;
    size_t size;
    char bytes[];
} heddle_h2_held_head;

/* Joins an exchange to its stream; exchange->carrier. It exists until both no longer need it. */
struct heddle_h2_carrier {
    heddle_h2_server *server;
    heddle_h2_stream *stream;
    heddle_exchange *exchange;
    heddle_link link;        /* in the list of all carriers of its server */
    heddle_due due;          /* the time limit of the body, or of waiting for a runner */
    int64_t body_deadline;   /* see heddle_body_next_deadline; moved later by the time that writing took */
    int64_t writing_since;
    uint64_t taken;          /* bytes of the body that came */
    size_t body_memory;      /* the part of `taken` that is in memory and credited to the client's windows */
    size_t head_memory;      /* bytes of the request without its body, until a runner takes it */
    heddle_link turn;        /* in the server's list of carriers that wait for the ready list */
    bool received;           /* the request was received completely */
    bool streams_body;       /* the application reads the body while it is received */
    bool at_head;            /* the application is called before the body is complete */
    size_t uncredited;       /* bytes of the body that were not yet credited to the client's windows */
    bool gone;               /* the client has reset the stream, or the connection has failed */
    heddle_h2_held_head *held; /* a head that is sent in the next tick, unless the application fails before; or NULL */
    heddle_wait *waits[2]; /* the waiting fibers, by heddle_direction */
};

struct heddle_h2_server {
    heddle_connection *connection; /* NULL: released while the session was in use */
    heddle_h2_session *session;
    heddle_link carriers;
    heddle_link tunnels;
    /* The exchange in the ready list. There is only one at a time, so that connections take turns. */
    heddle_h2_carrier *queued;
    heddle_link waiting; /* carriers that wait for the ready list */
    uint32_t waiting_count;
    uint32_t held_count; /* carriers with a held head */
    bool ended;     /* the client has sent FIN */
    bool lingers;   /* nothing more is sent, and input is discarded */
    bool swept;     /* no ended carrier must be freed */
    size_t body_memory;     /* bytes of all bodies that are in memory and credited */
    size_t held;            /* body_memory, and bytes of the heads of waiting requests */
    size_t drawn;           /* the part of `held` that exceeds the connection's own share */
    size_t lent;            /* bytes of lent strings that its streams have not sent yet */
    uint64_t lingered;      /* discarded bytes */
    int64_t write_deadline; /* by when the kernel must have taken some output; INT64_MAX: there is no output */
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

/* NULL if there is none. */
static inline heddle_h2_carrier *heddle_h2_first_carrier(const heddle_h2_server *server)
{
    return heddle_h2_carrier_at(heddle_link_first(&server->carriers));
}

/* NULL after the last one. */
static inline heddle_h2_carrier *heddle_h2_next_carrier(const heddle_h2_carrier *carrier)
{
    return heddle_h2_carrier_at(heddle_link_after(&carrier->server->carriers, &carrier->link));
}

/* State that the connections of an engine share. */
struct heddle_h2_shared {
    heddle_h2_limits limits;
    heddle_h2_workspace workspace;
    uint64_t memory; /* the limit of `drawn` and of `lent`, in bytes */
    uint64_t drawn;  /* memory in use, see heddle_h2_count_memory */
    uint64_t lent;   /* bytes of the strings in `loans` */
    heddle_link loans; /* strings of responses that clients take slowly, see response.c */
};

extern const heddle_protocol heddle_h2_protocol;
extern const heddle_exchange_operations heddle_h2_exchange_operations;

/* `begin`: on a connection whose input begins with the preface. */
extern const heddle_http_protocol heddle_h2_http_protocol;
/*
 * Called when a call into the session has ended. The fate covers the connection and everything that belongs to it.
 */
HEDDLE_FATE heddle_h2_leave_session(heddle_h2_server *server);

/* -- h2/server/sending.c ------------------------------------------------------------------------------------------- */

/*
 * Sends one part of the session's output. Small output is sent later in this tick, together with the output of other
 * streams.
 */
HEDDLE_FATE heddle_h2_send(heddle_h2_server *server);
/* Like heddle_h2_send, but sends small output at once, too. */
HEDDLE_FATE heddle_h2_send_now(heddle_h2_server *server);
/*
 * Sends what was pulled, as far as the kernel takes it. Each byte taken restarts the client's time limit. Returns 0,
 * -EAGAIN or another -errno.
 */
int heddle_h2_flush_queue(heddle_h2_server *server);
/*
 * Sends at most HEDDLE_H2_AT_ONCE bytes, and never closes the connection. Returns 0 if nothing is left, -EAGAIN if
 * output is left or the session is in use, or another -errno if the connection is broken.
 */
int heddle_h2_flush(heddle_h2_server *server);
/* Does the remaining output wait forever, because its windows are closed and the client has ended its side? */
bool heddle_h2_is_stuck(const heddle_h2_server *server);
/* Ends a call into the session, and sends the session's output: the caller must not use the connection afterwards. */
static inline void heddle_h2_end_call(heddle_h2_server *server)
{
    if (heddle_h2_leave_session(server))
        heddle_last_use(heddle_h2_send(server));
}

/* -- h2/server/reading.c ------------------------------------------------------------------------------------------- */

/*
 * Reads until all received bytes are read, the connection's turn has ended, or the session takes no more before its
 * output is sent. Then sends a part of the output.
 */
HEDDLE_LAST_USE void heddle_h2_read_and_send(heddle_h2_server *server);
/* Discards input while the client receives the last frame. */
HEDDLE_LAST_USE void heddle_h2_discard_input(heddle_h2_server *server);
/* -- h2/server/exchange_streams.c ---------------------------------------------------------------------------------- */

/* The operations that the session calls for its streams. */
extern const heddle_h2_operations heddle_h2_carrier_operations;
/* Queues the exchange for a runner, unless it is queued. Carriers may be rejected and freed. */
void heddle_h2_queue(heddle_h2_carrier *carrier);

/*
 * Adds `change` to the memory of waiting requests. Each connection has a share of its own, as large as over HTTP/1.1
 * (ConnectionLimit in Ruby). A connection that needs more uses the memory that all connections of the engine share.
 */
void heddle_h2_count_memory(heddle_h2_server *server, ssize_t change);
/*
 * Does the connection exceed its share while three quarters of the shared memory are in use? Then bodies go to files,
 * and clients of WebSockets must wait.
 */
bool heddle_h2_holds_too_much_data(const heddle_h2_server *server);

/*
 * May a request of this connection begin? Returns false while lent strings exceed http2_memory, and this connection has
 * one of them.
 */
bool heddle_h2_may_queue(const heddle_h2_server *server);
/* Puts the next exchange into the ready list. Carriers may be rejected and freed. */
HEDDLE_FATE heddle_h2_queue_next(heddle_h2_server *server);

/* Ends the exchange, whose stream already has another owner. The caller must call heddle_h2_end_call. */
void heddle_h2_transfer_stream(heddle_h2_carrier *carrier);
/* The operation `taken`: a runner has taken the exchange. */
void heddle_h2_note_taken(heddle_exchange *exchange);

/*
 * Called when the stream has ended early, and only within a call into the session. A running application continues
 * until it returns, and its request counts among the client's streams until then. All other exchanges end here.
 */
void heddle_h2_end_carrier(heddle_h2_carrier *carrier);
/* Frees the carrier. If the carrier still has a stream, the session keeps the stream. */
void heddle_h2_free_carrier(heddle_h2_carrier *carrier);
/* Frees the carrier of a complete exchange. The caller must call heddle_h2_send, which queues the next exchange. */
void heddle_h2_drop_carrier(heddle_h2_carrier *carrier);
/* Resets the stream of a running exchange: its next read or write raises ClientGoneError. */
void heddle_h2_reset_exchange(heddle_h2_carrier *carrier);

/* -- h2/server/body.c ---------------------------------------------------------------------------------------------- */

/* Begins a body, with a time limit unless the application reads it while it is received. */
void heddle_h2_begin_body(heddle_h2_carrier *carrier);
HEDDLE_LAST_USE void heddle_h2_take_data(heddle_h2_carrier *carrier, const char *bytes, size_t size);
HEDDLE_LAST_USE void heddle_h2_end_body(heddle_h2_carrier *carrier);

/* -- h2/server/response.c ------------------------------------------------------------------------------------------ */

/* Sends a head, whose fields are packed by HEDDLE_AS_FIELDS. Also returns HEDDLE_H2_GONE without memory. */
heddle_h2_write_result heddle_h2_send_head(heddle_h2_carrier *carrier, int status, const char *bytes, size_t size,
                                           bool end);
/* Keeps a head until the next tick. Returns HEDDLE_H2_WRITTEN, or why the head can't be sent. */
heddle_h2_write_result heddle_h2_hold_head(heddle_h2_carrier *carrier, int status, const char *bytes, size_t size);
/* Sends the held head, if there is one. */
void heddle_h2_release_head(heddle_h2_carrier *carrier);
/* Discards the held head. Returns false if there is none. */
bool heddle_h2_drop_head(heddle_h2_carrier *carrier);
/* Sends the held heads of all streams. The session must be in use (`depth`). */
void heddle_h2_release_heads(heddle_h2_server *server);
/* Sends the whole response to a rejected request. `retry_after`: the value of that field, or NULL. */
void heddle_h2_send_rejection(heddle_h2_server *server, heddle_h2_stream *stream, const heddle_rejection *rejection,
                              bool content, const char *retry_after);

/*
 * Sends a part of a response's content. Copies it if the session has room, and otherwise lends it to the session as a
 * frozen String. As over HTTP/1.1, no fiber waits. Returns false without memory, or if the response can't be sent any
 * more.
 */
bool heddle_h2_send_string(heddle_h2_carrier *carrier, VALUE string);
void heddle_h2_mark_loans(const heddle_engine *engine);

void Init_heddle_h2_exchange(VALUE h2);
