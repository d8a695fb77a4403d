#ifndef HEDDLE_HTTP_H2_TUNNEL_H
#define HEDDLE_HTTP_H2_TUNNEL_H

/*
 * A stream of HTTP/2 that goes on after its exchange: it carries a WebSocket (RFC 8441) or the events of a topic, without
 * a fiber. The owner embeds the record.
 */

#include "http/exchange.h"
#include "http/h2/session.h"
#include "net/due.h"
#include "net/link.h"

typedef struct heddle_h2_server heddle_h2_server;
typedef struct heddle_h2_tunnel heddle_h2_tunnel;

/* The owner of a stream. */
typedef struct {
    bool is_tunnel; /* else an exchange's carrier */
} heddle_h2_stream_owner;

/* All run in the loop, and may close the tunnel. */
typedef struct {
    /* Bytes that have come, and may be written on. The owner calls heddle_h2_tunnel_consume when it has used them. */
    void (*take_data)(heddle_h2_tunnel *tunnel, char *bytes, size_t size);
    /* The client sends nothing more. */
    void (*end_input)(heddle_h2_tunnel *tunnel);
    /* The stream has ended before its time. */
    void (*handle_reset)(heddle_h2_tunnel *tunnel);
    /* After output was sent: all of it may be, or another thread has asked for this. */
    void (*flushed)(heddle_h2_tunnel *tunnel);
    /* The server stops, and `retire` has not been called for that yet. */
    bool (*has_to_retire)(const heddle_h2_tunnel *tunnel);
    void (*retire)(heddle_h2_tunnel *tunnel);
    /* It is closed, or its connection is gone: frees the record. */
    void (*release)(heddle_h2_tunnel *tunnel);
    /* In a child process after fork. */
    void (*abandon)(heddle_h2_tunnel *tunnel);
} heddle_h2_tunnel_operations;

struct heddle_h2_tunnel {
    heddle_h2_stream_owner owner;
    bool noted;   /* `flushed` is due */
    bool closing; /* what becomes of the stream is known */
    bool input_ended; /* the client has sent FIN, and `end_input` was called for that */
    const heddle_h2_tunnel_operations *operations;
    heddle_h2_server *server;
    heddle_h2_stream *stream;
    heddle_link link; /* in the server's list */
    heddle_due due;   /* `passed` is the owner's */
};

/* The exchange is over, its response's head is sent, and its stream is the tunnel's, which has its `operations`. */
void heddle_h2_tunnel_begin(heddle_h2_tunnel *tunnel, heddle_exchange *exchange);
/* Copies both pieces. false: the stream is gone, or there is no memory. On any thread. */
bool heddle_h2_tunnel_write(heddle_h2_tunnel *tunnel, const char *bytes, size_t size, const char *more, size_t more_size);
/* Do more than `limit` bytes wait, or more than its share of what the connection may keep? On any thread. */
bool heddle_h2_tunnel_is_full(const heddle_h2_tunnel *tunnel, uint64_t limit);
void heddle_h2_tunnel_consume(heddle_h2_tunnel *tunnel, size_t size);
/* Bytes that the owner has not used, but holds back the stream alone for: others may send. */
void heddle_h2_tunnel_keep(heddle_h2_tunnel *tunnel, size_t size);
/* The end of the output follows what was written. */
void heddle_h2_tunnel_finish(heddle_h2_tunnel *tunnel);
/* Ends the stream, see heddle_h2_end_tunnel, and calls `release`. */
void heddle_h2_tunnel_close(heddle_h2_tunnel *tunnel, bool abrupt);
/* Time limits; ns, < 0: none. */
void heddle_h2_tunnel_set_deadline(heddle_h2_tunnel *tunnel, int64_t at);
heddle_connection *heddle_h2_tunnel_connection(const heddle_h2_tunnel *tunnel);

/* -- for the server ------------------------------------------------------------------------------------------------ */

/* NULL: the stream is an exchange's, or nobody's. */
heddle_h2_tunnel *heddle_h2_tunnel_of(const heddle_h2_stream *stream);
/* NULL: there is none. */
heddle_h2_tunnel *heddle_h2_first_tunnel(const heddle_h2_server *server);
/* Calls `flushed` where that is due. */
void heddle_h2_tunnels_flushed(heddle_h2_server *server);
/* The client sends nothing more on any stream. */
void heddle_h2_tunnels_end_input(heddle_h2_server *server);
bool heddle_h2_tunnels_have_to_retire(const heddle_h2_server *server);
void heddle_h2_tunnels_retire(heddle_h2_server *server);
/* The connection is gone. */
void heddle_h2_tunnels_release(heddle_h2_server *server);
void heddle_h2_tunnels_abandon(heddle_h2_server *server);

#endif
