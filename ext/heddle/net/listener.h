#pragma once

/* Listening sockets, which belong to Ruby's TCPServer and UNIXServer objects, and when to accept from them. */

#include "net/link.h"
#include "net/networks.h"
#include "net/event_set.h"

enum {
    HEDDLE_ACCEPTS_A_TURN = 64,
    /*
     * One address may have max_connections / HEDDLE_ADDRESS_SHARE connections, and always HEDDLE_ADDRESS_LEAST. Trusted
     * proxies have no such limit.
     */
    HEDDLE_ADDRESS_SHARE = 4,
    HEDDLE_ADDRESS_LEAST = 16,
    /*
     * The limit of an address is multiplied by this for handed-off connections. Closing such a connection may lose a
     * request. So a worker that takes over all connections of another one must not reach the limit.
     */
    HEDDLE_ADDRESS_HANDOFFS = 2,
    HEDDLE_CLOSES_A_TURN = 16, /* idle connections that are closed at once for new ones */
};

/* The record of an address, for all its connections. */
typedef struct heddle_address_share heddle_address_share;
struct heddle_address_share {
    uint32_t connections;   /* its open connections: see heddle_address_count */
    uint32_t waiting;       /* work items in ready lists */
    uint32_t begun;         /* work items that runners serve, but for health checks */
    uint32_t probes;        /* health checks, in ready lists and running */
    uint32_t round;         /* the round of its last waiting item: see ready_list.c */
    heddle_link handshakes; /* connections whose TLS handshake can continue */
    heddle_link turn_link;  /* in the list of addresses while `handshakes` is not empty */
};

/* How long accepting pauses when there are no descriptors or no memory, ns. */
#define HEDDLE_ACCEPT_BACK_OFF INT64_C(100000000)
/*
 * How long accepting pauses at max_connections before idle connections are closed for a client that waits, ns. Longer
 * pauses would let clients wait behind those that open connections and send nothing.
 */
#define HEDDLE_FULL_BACK_OFF INT64_C(10000000)
/*
 * A connection that has waited less than this for a request is not closed for a new one, ns. Otherwise clients that
 * reconnect again and again would only displace each other while all connections are busy.
 */
#define HEDDLE_LEAST_IDLE INT64_C(500000000)

/* Why accepting is paused; 0: it is not. */
enum {
    HEDDLE_PAUSED_FULL = 1,     /* max_connections */
    HEDDLE_PAUSED_BACK_OFF = 2, /* EMFILE and the like */
    HEDDLE_PAUSED_LOADED = 4,   /* another worker has less to do */
    HEDDLE_PAUSED_RESERVE = 8,  /* this is a reserve, and the other workers run */
};

struct heddle_listener {
    heddle_listener *next;
    heddle_sockets *sockets;
    VALUE io;
    VALUE acceptor;   /* Heddle::Net::TLS, or Qnil */
    VALUE proxies;    /* the Heddle::Net::Networks whose connections begin with a PROXY header, or Qnil */
    int fd;
    bool armed;
    bool own_user; /* only this user's processes and root's may connect */
    heddle_address local;
    heddle_waiter waiter; /* without epoll */
};

/* Raises when the socket can't be used. `acceptor`, `proxies` and `own_user`: see the record. */
void heddle_listener_add(heddle_sockets *sockets, VALUE io, VALUE acceptor, VALUE proxies, bool own_user);
void heddle_listeners_remove_all(heddle_sockets *sockets);
/* Accepts from all readable listeners, at most this tick's share. Returns true if there may be more clients. */
bool heddle_listeners_accept(heddle_sockets *sockets);
/* Accepts all clients that wait now, regardless of admission, before the sockets are closed. */
void heddle_listeners_drain(heddle_sockets *sockets);
/* The record of an address; all IPv6 addresses of a /64 network share one. */
heddle_address_share *heddle_address_find_share(heddle_sockets *sockets, const heddle_address *address);
/*
 * The number of the address's record, from 1 on. 0 if no limit applies, because max_connections is 0, or the client is
 * a trusted proxy or on a unix socket.
 */
uint16_t heddle_address_find_number(heddle_sockets *sockets, const heddle_address *address);
/*
 * Counts the connection for its address. Returns false if the address is at its limit, `shares` times the ordinary one:
 * then the caller must close the connection.
 */
bool heddle_address_count(heddle_sockets *sockets, heddle_connection *connection, size_t shares);
void heddle_address_uncount(heddle_connection *connection);
/* Called for an event set that removes a listener after one event: adds the listeners again. */
void heddle_listeners_rearm(heddle_sockets *sockets);
void heddle_listeners_pause(heddle_sockets *sockets, uint8_t reason);
void heddle_listeners_resume(heddle_sockets *sockets, uint8_t reason);
