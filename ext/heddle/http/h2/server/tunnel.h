#pragma once

/*
 * A tunnel: a stream of HTTP/2 that continues after its exchange, without a fiber. It carries a WebSocket (RFC 8441) or
 * the events of a topic. The owner embeds the record.
 */

#include "http/exchange.h"
#include "http/h2/session.h"
#include "net/deadlines.h"
#include "net/link.h"

typedef struct heddle_h2_server heddle_h2_server;
typedef struct heddle_h2_tunnel heddle_h2_tunnel;

/* All these operations run in the loop, and may close the tunnel. */
typedef struct {
    /* Takes received bytes, which it may overwrite. The owner calls heddle_h2_tunnel_consume when it has used them. */
    void (*take_data)(heddle_h2_tunnel *tunnel, char *bytes, size_t size);
    /* The client has ended its output. */
    void (*end_input)(heddle_h2_tunnel *tunnel);
    /* The stream was reset. */
    void (*handle_reset)(heddle_h2_tunnel *tunnel);
    /* Called after some or all output was sent, or when another thread has asked for this call. */
    void (*flushed)(heddle_h2_tunnel *tunnel);
    /* Does the server stop, and was `retire` not called yet? */
    bool (*has_to_retire)(const heddle_h2_tunnel *tunnel);
    void (*retire)(heddle_h2_tunnel *tunnel);
    /* Frees the record. Called when the tunnel is closed, or its connection is gone. */
    void (*release)(heddle_h2_tunnel *tunnel);
    /* Called in a forked child. */
    void (*abandon)(heddle_h2_tunnel *tunnel);
} heddle_h2_tunnel_operations;

struct heddle_h2_tunnel {
    bool flushed_due; /* `flushed` is to be called */
    bool closing; /* the stream is being ended */
    bool input_ended; /* the client has sent FIN, and `end_input` was called */
    const heddle_h2_tunnel_operations *operations;
    heddle_h2_server *server;
    heddle_h2_stream *stream;
    heddle_link link; /* in the server's list */
    heddle_due due;   /* `passed` is the owner's function */
};

/*
 * Makes a tunnel of the exchange's stream, and ends the exchange. The head of its response was sent, and `operations`
 * is set.
 */
void heddle_h2_tunnel_begin(heddle_h2_tunnel *tunnel, heddle_exchange *exchange);
/* Copies both pieces. Returns false if the stream has ended, or without memory. May be called on any thread. */
bool heddle_h2_tunnel_write(heddle_h2_tunnel *tunnel, const char *bytes, size_t size, const char *more,
                            size_t more_size);
/*
 * Do more than `limit` bytes wait, or more than the tunnel's share of the connection's buffer? May be called on any
 * thread.
 */
bool heddle_h2_tunnel_is_full(const heddle_h2_tunnel *tunnel, uint64_t limit);
void heddle_h2_tunnel_consume(heddle_h2_tunnel *tunnel, size_t size);
/*
 * Called for bytes that the owner has not used yet. They block only this stream: the client may send on other streams.
 */
void heddle_h2_tunnel_keep(heddle_h2_tunnel *tunnel, size_t size);
/* Ends the output after the bytes that were written. */
void heddle_h2_tunnel_finish(heddle_h2_tunnel *tunnel);
/* Ends the stream, see heddle_h2_end_tunnel, and calls `release`. */
void heddle_h2_tunnel_close(heddle_h2_tunnel *tunnel, bool abrupt);
/* Sets the time limit in ns; < 0: none. */
void heddle_h2_tunnel_set_deadline(heddle_h2_tunnel *tunnel, int64_t at);

/* -- for the server ------------------------------------------------------------------------------------------------ */

/* Returns NULL if the stream belongs to an exchange, or to no record. */
heddle_h2_tunnel *heddle_h2_tunnel_of(const heddle_h2_stream *stream);
/* Returns NULL if there is none. */
heddle_h2_tunnel *heddle_h2_first_tunnel(const heddle_h2_server *server);
/* Calls `flushed` of each tunnel with `flushed_due`. */
void heddle_h2_tunnels_handle_flushed(heddle_h2_server *server);
/* Called when the client has ended its output, on all streams. */
void heddle_h2_tunnels_end_input(heddle_h2_server *server);
bool heddle_h2_tunnels_have_to_retire(const heddle_h2_server *server);
void heddle_h2_tunnels_retire(heddle_h2_server *server);
/* Called when the connection is gone. */
void heddle_h2_tunnels_release(heddle_h2_server *server);
void heddle_h2_tunnels_abandon(heddle_h2_server *server);
