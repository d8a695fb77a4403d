#ifndef HEDDLE_HTTP_H2_SERVER_H
#define HEDDLE_HTTP_H2_SERVER_H

/* The server's side of an HTTP/2 connection: an h2 session between a connection and its exchanges. */

#include "http/engine.h"
#include "http/h2/session.h"
#include "http/h2_tunnel.h"
#include "net/fate.h"
#include "net/sockets.h"

enum {
    HEDDLE_H2_AT_ONCE = 65536, /* bytes that wait for the kernel: more would not obey a priority that changes */
};

typedef struct heddle_h2_carrier heddle_h2_carrier;

/* A fiber that waits for its stream, on that fiber's stack. */
typedef struct {
    heddle_park park;
    heddle_h2_carrier *carrier; /* NULL: the stream is gone */
    heddle_direction direction;
    int64_t deadline;
} heddle_h2_wait;

/* Carries an exchange over a stream; exchange->carrier. It lives as long as both have to do with each other. */
struct heddle_h2_carrier {
    heddle_h2_stream_owner owner; /* no tunnel; first, as in heddle_h2_tunnel */
    heddle_h2_server *server;
    heddle_h2_stream *stream;
    heddle_exchange *exchange;
    heddle_link link;        /* in the list of all carriers of its server */
    heddle_due due;          /* how long the body may take, or the exchange may wait for a runner */
    int64_t since;           /* when the body began; later by the time that writing it took */
    int64_t writing_since, last_data;
    uint64_t taken;          /* bytes of the body */
    size_t body_memory;      /* of these, in memory and credited */
    size_t head_memory;      /* bytes of the request without its body, until a runner takes it */
    heddle_link turn;        /* in the server's list of those that wait for the ready list */
    bool received;           /* the request is complete, as far as the wire is concerned */
    bool streams;            /* the application reads the body as it comes */
    bool at_head;            /* … and is called before the body is complete */
    size_t uncredited;       /* bytes of the body that the client may not replace yet */
    bool gone;               /* the client has given up, or the connection has failed */
    heddle_h2_wait *waits[2]; /* by heddle_direction */
};

struct heddle_h2_server {
    heddle_connection *connection; /* NULL: released while the session was at work */
    heddle_h2_session *session;
    heddle_link carriers;
    heddle_link tunnels;
    /* One exchange at a time is in the ready list: runners take them in turn with those of other connections. */
    heddle_h2_carrier *queued;
    heddle_link waiting; /* carriers */
    uint32_t waiting_count;
    bool ended;     /* the client has sent FIN */
    bool lingers;   /* nothing more is sent, and what the client still sends is thrown away */
    bool swept;     /* no carrier that was given up is still listed */
    size_t body_memory;     /* bytes of all bodies that are in memory and credited */
    size_t held;            /* the same, and the heads of requests that wait */
    size_t drawn;           /* of these, what is more than the connection's own share */
    size_t lent;            /* bytes of strings that its streams have yet to send */
    uint64_t lingered;      /* bytes that were thrown away */
    int64_t write_deadline; /* until when the kernel has to take some of the output; INT64_MAX: there is none */
    unsigned depth; /* of calls into the session */
};

static inline heddle_h2_server *heddle_h2_server_of(const heddle_connection *connection)
{
    return heddle_connection_session(connection);
}

static inline heddle_h2_carrier *heddle_h2_carrier_of(const heddle_exchange *exchange)
{
    return exchange->carrier;
}

static inline heddle_h2_carrier *heddle_h2_carrier_at(heddle_link *link)
{
    return link ? HEDDLE_CONTAINER_OF(link, heddle_h2_carrier, link) : NULL;
}

/* NULL: there is none. */
static inline heddle_h2_carrier *heddle_h2_first_carrier(const heddle_h2_server *server)
{
    return heddle_h2_carrier_at(heddle_link_first(&server->carriers));
}

/* NULL at the end. */
static inline heddle_h2_carrier *heddle_h2_next_carrier(const heddle_h2_carrier *carrier)
{
    return heddle_h2_carrier_at(heddle_link_after(&carrier->server->carriers, &carrier->link));
}

extern const heddle_protocol heddle_h2_protocol;
extern const heddle_exchange_operations heddle_h2_exchange_operations;

/* The connection, whose input begins with the preface, speaks HTTP/2 from here on. */
HEDDLE_LAST_USE void heddle_h2_begin(heddle_connection *connection);
/* Sends what the session has. */
HEDDLE_FATE heddle_h2_send(heddle_h2_server *server);
/*
 * Sends what the kernel takes now, and closes nothing. 0: all of it, -EAGAIN: some is left, or the session is at work;
 * other errors: the connection is broken.
 */
int heddle_h2_flush(heddle_h2_server *server);
/* Does what is left wait for windows that a client that has ended can't open? */
bool heddle_h2_is_stuck(const heddle_h2_server *server);
/* A call into the session has ended. Of the connection, and all that belongs to it. */
HEDDLE_FATE heddle_h2_leave_session(heddle_h2_server *server);
/* The same, and sends what the session has: the last thing that is done to it. */
static inline void heddle_h2_end_call(heddle_h2_server *server)
{
    if (heddle_h2_leave_session(server))
        heddle_last_use(heddle_h2_send(server));
}
/* The limits of the engine's configuration, where HTTP/1.1 has them, too; once, when the engine is made. */
void heddle_h2_apply_limits(heddle_engine *engine);

/* -- h2_carrier.c --------------------------------------------------------------------------------------------------- */

/* The operations that the session calls for its streams. */
extern const heddle_h2_operations heddle_h2_carrier_operations;
/* The exchange waits for a runner from now on, unless it does already. Carriers may be refused, and gone, afterwards. */
void heddle_h2_queue(heddle_h2_carrier *carrier);

/*
 * So much more, or less, of the requests that wait is in memory. Each connection has a share, as large as what one over
 * HTTP/1.1 may use (ConnectionLimit in Ruby), and draws what it needs beyond from what all connections of the engine have.
 */
void heddle_h2_hold(heddle_h2_server *server, ssize_t change);
/* Is the connection beyond its share while nothing is left to be drawn? Then its requests are refused. */
bool heddle_h2_holds_too_much(const heddle_h2_server *server);
/* The same for bodies and frames of WebSockets, earlier: bodies go to files then, and frames wait at the client. */
bool heddle_h2_holds_too_much_data(const heddle_h2_server *server);

/*
 * While strings of more than http2_memory wait for slow clients, a connection with one of them has no further request
 * begun. Could one be begun again?
 */
bool heddle_h2_may_queue(const heddle_h2_server *server);
/* Puts the next exchange into the ready list. Carriers may be refused, and gone, afterwards. The server's fate. */
HEDDLE_FATE heddle_h2_queue_next(heddle_h2_server *server);

/* The exchange is over, and its stream somebody else's, whose owner is set. heddle_h2_end_call is to follow. */
void heddle_h2_hand_over_stream(heddle_h2_carrier *carrier);
/* A runner has taken it: `taken` of the operations. */
void heddle_h2_exchange_taken(heddle_exchange *exchange);

/*
 * Its stream has ended early. A running application goes on, and counts among the client's streams, until it returns.
 * Others are given up within a call into the session alone.
 */
void heddle_h2_give_up(heddle_h2_carrier *carrier);
/* Its stream, if there is one, is the session's alone. */
void heddle_h2_free_carrier(heddle_h2_carrier *carrier);
/* The exchange is complete, or nobody's any more. heddle_h2_send, which queues the next one, is to follow. */
void heddle_h2_drop_carrier(heddle_h2_carrier *carrier);
/* Resets the stream of one whose application runs: its next read or write raises ClientGone. */
void heddle_h2_cut_off(heddle_h2_carrier *carrier);

/* -- h2_body.c ------------------------------------------------------------------------------------------------------ */

/* A body follows: it is to come fast enough, unless the application reads it as it comes. */
void heddle_h2_begin_body(heddle_h2_carrier *carrier);
HEDDLE_LAST_USE void heddle_h2_take_data(heddle_h2_carrier *carrier, const char *bytes, size_t size);
HEDDLE_LAST_USE void heddle_h2_end_body(heddle_h2_carrier *carrier);

/* -- h2_response.c --------------------------------------------------------------------------------------------------- */

/*
 * Sends a head: its fields as HEDDLE_AS_FIELDS packs them. HEDDLE_H2_GONE where there is no memory, either.
 */
heddle_h2_write_result heddle_h2_send_head(heddle_h2_carrier *carrier, int status, const char *bytes, size_t size,
                                           bool end);
/* The whole answer to what is refused. `retry_after`: the value of that field, or NULL. */
void heddle_h2_send_rejection(heddle_h2_server *server, heddle_h2_stream *stream, const heddle_rejection *rejection,
                              bool content, const char *retry_after);

/*
 * Part of a response's content: copied as long as there is room, else kept as a frozen String until it is sent. No fiber
 * waits for it, as over HTTP/1.1. false: there is no memory, or the stream takes nothing.
 */
bool heddle_h2_send_string(heddle_h2_carrier *carrier, VALUE string);
void heddle_h2_mark_loans(const heddle_engine *engine);

void Init_heddle_h2_exchange(VALUE h2);
void Init_heddle_h2_events(VALUE exchange_class);

#endif
