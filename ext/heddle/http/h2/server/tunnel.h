#pragma once

/*
 * A tunnel: a stream of HTTP/2 that continues after its exchange (request and response), without a fiber. It carries a
 * WebSocket (RFC 8441) or an event stream. The code that uses a tunnel, its owner, embeds this record in its own.
 */

#include "http/exchange.h"
#include "http/h2/session.h"
#include "net/deadlines.h"
#include "net/link.h"

typedef struct heddle_h2_server heddle_h2_server;
typedef struct heddle_h2_tunnel heddle_h2_tunnel;

/* The operations of the owner. All run in the loop, and may close the tunnel. */
typedef struct {
    /*
     * Handles received bytes, and may overwrite them. The owner must call heddle_h2_tunnel_consume when they are used.
     */
    void (*take_data)(heddle_h2_tunnel *tunnel, char *bytes, size_t size);
    /* Called when the client has ended its output. */
    void (*end_input)(heddle_h2_tunnel *tunnel);
    /* Called when the stream was reset. */
    void (*handle_reset)(heddle_h2_tunnel *tunnel);
    /* Called when all output was pulled from the session, and after another thread has written output. */
    void (*flushed)(heddle_h2_tunnel *tunnel);
    /* Must `retire` be called? True while the server stops, until `retire` was called. */
    bool (*has_to_retire)(const heddle_h2_tunnel *tunnel);
    /* Begins to end the tunnel, because the server stops. */
    void (*retire)(heddle_h2_tunnel *tunnel);
    /* Frees the owner's record. Called when the tunnel is closed, or its connection is gone. */
    void (*release)(heddle_h2_tunnel *tunnel);
    /* Called in a forked child, which must not use the connection. */
    void (*abandon)(heddle_h2_tunnel *tunnel);
} heddle_h2_tunnel_operations;

struct heddle_h2_tunnel {
    bool flushed_due; /* `flushed` must be called */
    bool closing; /* heddle_h2_tunnel_close has begun */
    bool input_ended; /* the client has sent FIN, and `end_input` was called for that */
    const heddle_h2_tunnel_operations *operations;
    heddle_h2_server *server;
    heddle_h2_stream *stream;
    heddle_link link; /* in the server's list of tunnels */
    heddle_due due;   /* the time limit; the owner sets `passed` */
};

/*
 * Makes a tunnel of the exchange's stream, and ends the exchange. The head of the response must have been sent, and
 * `operations` must be set.
 */
void heddle_h2_tunnel_begin(heddle_h2_tunnel *tunnel, heddle_exchange *exchange);
/*
 * Queues copies of both pieces. Returns false if the stream has ended, or when out of memory. May be called on any
 * thread.
 */
bool heddle_h2_tunnel_write(heddle_h2_tunnel *tunnel, const char *bytes, size_t size, const char *more,
                            size_t more_size);
/*
 * Are more than `limit` bytes queued, or more than the tunnel's share of the connection's output? May be called on any
 * thread.
 */
bool heddle_h2_tunnel_is_full(const heddle_h2_tunnel *tunnel, uint64_t limit);
/* Must be called when `size` received bytes were used, so that the client may send more. */
void heddle_h2_tunnel_consume(heddle_h2_tunnel *tunnel, size_t size);
/*
 * Called for bytes that the owner has not used yet. They block only this stream: the client may send on other streams.
 */
void heddle_h2_tunnel_keep(heddle_h2_tunnel *tunnel, size_t size);
/* Ends the output, after the bytes that are already queued. */
void heddle_h2_tunnel_finish(heddle_h2_tunnel *tunnel);
/* Ends the stream (see heddle_h2_end_tunnel), and calls `release`. */
void heddle_h2_tunnel_close(heddle_h2_tunnel *tunnel, bool abrupt);
/* Sets the time limit: CLOCK_MONOTONIC, ns; negative: no limit. */
void heddle_h2_tunnel_set_deadline(heddle_h2_tunnel *tunnel, int64_t at);

/* -- for the server ------------------------------------------------------------------------------------------------ */

/* Returns NULL if the stream belongs to an exchange, or to no record. */
heddle_h2_tunnel *heddle_h2_tunnel_of(const heddle_h2_stream *stream);
/* Returns NULL if the connection has no tunnel. */
heddle_h2_tunnel *heddle_h2_first_tunnel(const heddle_h2_server *server);
/* Calls `flushed` of each tunnel with `flushed_due`. */
void heddle_h2_tunnels_handle_flushed(heddle_h2_server *server);
/* Called when the client has sent FIN: calls `end_input` of each tunnel. */
void heddle_h2_tunnels_end_input(heddle_h2_server *server);
bool heddle_h2_tunnels_have_to_retire(const heddle_h2_server *server);
void heddle_h2_tunnels_retire(heddle_h2_server *server);
/* Called when the connection is gone. */
void heddle_h2_tunnels_release(heddle_h2_server *server);
void heddle_h2_tunnels_abandon(heddle_h2_server *server);
