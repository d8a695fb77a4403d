#pragma once

/*
 * Listening sockets, which belong to Ruby's TCPServer and UNIXServer objects. Decides when to accept clients, and
 * counts connections by client address.
 */

#include "net/link.h"
#include "net/networks.h"
#include "net/event_set.h"

enum {
    HEDDLE_ACCEPTS_A_TURN = 64, /* the maximum number of clients that are accepted in one tick */
    /*
     * One address may have max_connections / HEDDLE_ADDRESS_SHARE connections, or HEDDLE_ADDRESS_LEAST if that is more.
     * This limit does not apply to trusted proxies.
     */
    HEDDLE_ADDRESS_SHARE = 4,
    HEDDLE_ADDRESS_LEAST = 16,
    /*
     * The limit of an address is multiplied by this for connections that another worker hands off. Closing such a
     * connection may lose a request, so a worker that receives all connections of another one must not reach the limit.
     */
    HEDDLE_ADDRESS_HANDOFFS = 2,
    HEDDLE_CLOSES_A_TURN = 16, /* the maximum number of idle connections that are closed at once to make room */
};

/* The record of a client's address, for all its connections. Several addresses may share it: see listener.c. */
typedef struct heddle_address_share heddle_address_share;
struct heddle_address_share {
    uint32_t connections;   /* open connections: see heddle_address_count */
    uint32_t waiting;       /* its work items (requests and callbacks) that wait in ready lists */
    uint32_t begun;         /* its work items, except health checks, that runners (pooled fibers) serve now */
    uint32_t probes;        /* its health checks that wait or run */
    size_t messages;        /* bytes of its WebSocket messages that wait for their handlers */
    uint32_t round;         /* the round of its last waiting work item: see ready_list.c */
    heddle_link handshakes; /* connections whose TLS handshake can continue */
    heddle_link turn_link;  /* in the list of addresses (handshake.h) while `handshakes` is not empty */
};

/* How long accepting pauses if there are no free descriptors or no memory, in ns. */
#define HEDDLE_ACCEPT_BACK_OFF INT64_C(100000000)
/*
 * How long accepting pauses at max_connections before idle connections are closed for a waiting client, in ns. During
 * longer pauses, clients would wait behind others that open connections and send nothing.
 */
#define HEDDLE_FULL_BACK_OFF INT64_C(10000000)
/*
 * How long a connection must have waited for a request before it may be closed for a new connection, in ns. With 0, a
 * connection could be closed before its first request arrives. While all other connections are busy, clients that
 * always reconnect would then only displace each other.
 */
#define HEDDLE_LEAST_IDLE INT64_C(500000000)

/* The reasons why accepting is paused; 0: it is not paused. */
enum {
    HEDDLE_PAUSED_FULL = 1,     /* max_connections is reached */
    HEDDLE_PAUSED_BACK_OFF = 2, /* an error such as EMFILE */
    HEDDLE_PAUSED_LOADED = 4,   /* another worker has less to do */
    HEDDLE_PAUSED_RESERVE = 8,  /* this is a reserve (standby) worker, and not all other workers are blocked */
};

struct heddle_listener {
    heddle_listener *next;
    heddle_sockets *sockets;
    VALUE io;
    VALUE acceptor;   /* the Heddle::Net::TLS for TLS connections, or Qnil */
    VALUE proxies;    /* the Heddle::Net::Networks of proxies, whose connections begin with a PROXY header; or Qnil */
    int fd;
    bool armed;
    bool own_user; /* only this user's processes and root's may connect */
    heddle_address local;
    heddle_waiter waiter; /* used without epoll */
};

/*
 * Adds a listening socket. Raises an error if it can't be used. heddle_listener describes `acceptor`, `proxies` and
 * `own_user`.
 */
void heddle_listener_add(heddle_sockets *sockets, VALUE io, VALUE acceptor, VALUE proxies, bool own_user);
void heddle_listeners_remove_all(heddle_sockets *sockets);
/* Accepts clients from all readable listeners, up to this tick's limit. Returns true if more clients may be waiting. */
bool heddle_listeners_accept(heddle_sockets *sockets);
/*
 * Accepts the clients that wait now, up to max_connections but regardless of this tick's limit, and then removes the
 * listeners. Called before Ruby code closes the listening sockets.
 */
void heddle_listeners_drain(heddle_sockets *sockets);
/* Returns the record of an address. All IPv6 addresses of a /64 network share one record. */
heddle_address_share *heddle_address_find_share(heddle_sockets *sockets, const heddle_address *address);
/*
 * Returns the number of the address's record, which is 1 or more. Returns 0 if no limit applies: max_connections is 0,
 * or the client is a trusted proxy or on a Unix socket.
 */
uint16_t heddle_address_find_number(heddle_sockets *sockets, const heddle_address *address);
/* Returns how many connections an address may have. */
size_t heddle_address_limit(const heddle_sockets *sockets);
/*
 * Counts the connection for its address. Returns false if the address has reached its limit, multiplied by `shares`.
 * Then the caller must close the connection.
 */
bool heddle_address_count(heddle_sockets *sockets, heddle_connection *connection, size_t shares);
void heddle_address_uncount(heddle_connection *connection);
/* Adds the listeners to the event set again. Called by event sets that remove a listener after one event. */
void heddle_listeners_rearm(heddle_sockets *sockets);
void heddle_listeners_pause(heddle_sockets *sockets, uint8_t reason);
/*
 * Pauses for `duration` ns. If this worker is still full after the pause and a client waits, closes idle connections to
 * make room.
 */
void heddle_listeners_pause_for(heddle_sockets *sockets, uint8_t reason, int64_t duration);
void heddle_listeners_resume(heddle_sockets *sockets, uint8_t reason);
