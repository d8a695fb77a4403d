#pragma once

/*
 * The handoff of connections to another process. There are three cases:
 *
 * - A worker that drains (finishes its requests and accepts no new ones) hands off its idle connections
 *   (handoff_messages.c).
 * - A loop that has too much to do hands off requests (work_sharing.h).
 * - The watch thread hands off connections of a loop that can't run because native code holds the GVL. The rest of this
 *   comment describes this case.
 *
 * The watch thread sends two kinds of connections, with their unused input, to another process: connections on which
 * input arrives, and connections with a work item (a request, for example) that waits for a runner (a pooled fiber).
 * The clients of other connections get a farewell: bytes that ask them to open a new connection (heddle_wire). The
 * watch thread has no GVL and calls no Ruby.
 *
 * The owner word (net/owner.h) says which thread may use a connection's record. When a connection waits, the loop sets
 * its owner to AT_REST. From then on, the thread that wins the compare-and-swap of this word owns the connection. The
 * loop swaps without a lock. The watch thread swaps with the lock held. Before it releases the lock, it sets the owner
 * to RELEASED if the connection was sent, or else to AT_REST again. If the loop's swap fails, the loop takes the lock,
 * after which the owner is one of these two, and swaps again.
 *
 * Records are allocated and freed with the lock held. The watch thread notes the events of connections that it does not
 * hand off. The loop handles these events in its next tick.
 */

#include "net/connection.h"
#include "watch/watch.h"

enum {
    HEDDLE_HANDOFF_VERSION = 5, /* the version of the messages in handoff_messages.c */
    HEDDLE_HANDOFF_BATCH = 64, /* at most this many connections are sent, and events received, while the lock is held */
};

typedef struct {
    bool on;    /* handoff is enabled */
    int socket; /* one end of a socket pair; other processes receive connections from the other end; -1: none */
    heddle_rescue rescue;
    pthread_mutex_t lock;
    heddle_link notified; /* connections that have watch_events, or were handed off; the loop must handle them */
    uint32_t next_farewell; /* the slot of the next connection to which the watch thread sends a farewell */
    bool alarmed; /* the master was notified of this stall; used by the watch thread alone */
    bool shown; /* the scoreboard (scoreboard.h) shows that this worker is stuck; used by the watch thread alone */
    int64_t shared_at; /* when the loop itself last handed off a request (net/work_sharing.h) */
    _Atomic uint64_t sent_count;
} heddle_handoff;

void heddle_handoff_start(heddle_sockets *sockets);
/*
 * Enables handoff over a copy of the descriptor `socket`. Returns 0 or -errno: -ENOTSUP if handoff is enabled already,
 * or if these sockets have no slot on the scoreboard, or no epoll set, which the watch thread needs.
 */
int heddle_handoff_begin(heddle_sockets *sockets, int socket);
/* Disables handoff. The watch thread does not use these sockets afterwards. May be called repeatedly. */
void heddle_handoff_end(heddle_sockets *sockets);
/* Called instead of heddle_handoff_end in a forked child, which has no watch thread. */
void heddle_handoff_abandon(heddle_sockets *sockets);

/* Lock and unlock the mutex that must be held to change the table of connections. Do nothing while handoff is off. */
void heddle_handoff_lock(heddle_sockets *sockets);
void heddle_handoff_unlock(heddle_sockets *sockets);
/*
 * Handles the events that the watch thread has noted, and frees the records of the connections that it has sent. Called
 * in the loop.
 */
void heddle_handoff_process_noted(heddle_sockets *sockets);
/* Sets the owner to RELEASED, and forgets the noted events of the connection. Called before the record is freed. */
void heddle_handoff_forget(heddle_connection *connection);

/* The slow paths of heddle_connection_release and heddle_connection_acquire. */
void heddle_handoff_release(heddle_connection *connection);
bool heddle_handoff_acquire(heddle_connection *connection);

/* Makes the loop the owner of a connection at rest. Returns false if another process has the connection. */
static inline bool heddle_connection_acquire(heddle_connection *connection)
{
    uint8_t owner = heddle_transport_owner(&connection->transport);
    return owner == HEDDLE_OWNER_LOOP || heddle_handoff_acquire(connection);
}

/*
 * Sends a copy of the connection's descriptor, and its unused input, to the process that calls heddle_handoff_receive
 * on the other end of `socket`. Called on the thread that owns the connection. Returns 0; -EOPNOTSUPP if the connection
 * can't be handed off (TLS, a chunked body that has begun, more than 64 KiB of input); -EAGAIN if the socket is full;
 * or another -errno.
 *
 * `shared_at`: the current time if the sender shares its work (work_sharing.h); otherwise 0. A worker that shares work
 * itself receives connections from the other end. It leaves this connection to the other workers for 20 ms.
 */
int heddle_connection_send(heddle_connection *connection, int socket, int64_t shared_at);
/*
 * Sends a connection that the loop owns, and then frees the record. Returns 0, -EBUSY if there is unsent output, or the
 * error of heddle_connection_send. After an error the loop still owns the connection. Called in the loop.
 */
int heddle_connection_hand_off(heddle_connection *connection, int socket, int64_t shared_at);
/* Sends a connection and the description of its session (`describe` in net/protocol.h). Called in the loop. */
int heddle_connection_send_session(heddle_connection *connection, int socket, const char *description, size_t size);
