#pragma once

/*
 * Handoff of connections to another process. A loop hands off its own connections at a drain (handoff_messages.c), and
 * its requests when it has too much to do (work_sharing.h). The rest of this comment is about loops that can't run,
 * because native code holds the GVL.
 *
 * Then the watch thread sends two kinds of connections, with their unused input, to another process: connections on
 * which input arrives, and connections whose work item waits for a runner. The clients of connections that can't be
 * handed off are asked to reconnect for their next requests (heddle_wire). The watch thread has no GVL and calls no
 * Ruby.
 *
 * The owner word (net/owner.h) tells which thread may touch a record. The loop leaves a waiting connection AT_REST;
 * from then on the thread that wins the compare-and-swap owns it. The loop swaps without a lock. The watch thread swaps
 * under the lock, and before it releases the lock it sets the owner to AT_REST again or, when the connection was sent,
 * to RELEASED. A loop whose swap fails takes the lock and reads the final owner. Records are made and freed under the
 * lock. Events of connections that stay are noted for the loop, which handles them in its next tick.
 */

#include "net/connection.h"
#include "watch/watch.h"

enum {
    HEDDLE_HANDOFF_VERSION = 5, /* the version of the messages that hand off a connection */
    HEDDLE_HANDOFF_BATCH = 64, /* connections sent, or events harvested, in one critical section */
};

typedef struct {
    bool on;
    int socket; /* the socket from which the receiving processes read; -1: none */
    heddle_rescue rescue;
    pthread_mutex_t lock;
    heddle_link notified; /* connections with watch_events, or handed off by the watch thread: the loop handles them */
    uint32_t next_farewell; /* the slot of the next connection that gets a farewell; used by the watch thread alone */
    bool alarmed; /* the master knows of this stall; used by the watch thread alone */
    bool shown; /* the scoreboard shows that this worker is stuck; used by the watch thread alone */
    int64_t shared_at; /* when the loop itself last handed a request off (net/work_sharing.h) */
    _Atomic uint64_t sent_count;
} heddle_handoff;

void heddle_handoff_start(heddle_sockets *sockets);
/*
 * Enables handoff over `socket`. Returns 0 or -errno: -ENOTSUP if these sockets have no slot on the scoreboard, or no
 * epoll set, which the watch thread needs.
 */
int heddle_handoff_begin(heddle_sockets *sockets, int socket);
/* After this call the watch thread does not touch these sockets. Idempotent. */
void heddle_handoff_end(heddle_sockets *sockets);
/* Called instead in a forked child, which has no watch thread. */
void heddle_handoff_abandon(heddle_sockets *sockets);

/* The table of connections changes only while this lock is held. */
void heddle_handoff_lock(heddle_sockets *sockets);
void heddle_handoff_unlock(heddle_sockets *sockets);
/* Called in the loop: handles the events that the watch thread has noted. */
void heddle_handoff_process_noted(heddle_sockets *sockets);
/* Call this before the record is freed. */
void heddle_handoff_forget(heddle_connection *connection);

/* The slow paths of heddle_connection_release and heddle_connection_acquire. They take the lock. */
void heddle_handoff_release(heddle_connection *connection);
bool heddle_handoff_acquire(heddle_connection *connection);

/* Makes the loop the owner of a connection at rest. Returns false if another process has the connection. */
static inline bool heddle_connection_acquire(heddle_connection *connection)
{
    uint8_t owner = heddle_transport_owner(&connection->transport);
    return owner == HEDDLE_OWNER_LOOP || heddle_handoff_acquire(connection);
}

/*
 * Sends a copy of the connection's descriptor, and its unused input, to the process that reads `socket` with
 * heddle_handoff_receive. Called on the thread that owns the connection. Returns 0, -EOPNOTSUPP if it can't be sent as
 * a whole (TLS, a chunked body that has begun, more than 64 KiB), -EAGAIN if the socket is full, or another -errno.
 * `shared_at` is 0, except for a worker that runs and receives connections from the same socket. Such a worker passes
 * the current time, and leaves this connection to the others for the next 20 ms.
 */
int heddle_connection_send(heddle_connection *connection, int socket, int64_t shared_at);
/*
 * Sends a connection that the loop owns, and drops the record. Returns 0, -EBUSY if output is unsent, or the error of
 * heddle_connection_send: then the loop still owns the connection. Called in the loop.
 */
int heddle_connection_hand_off(heddle_connection *connection, int socket, int64_t shared_at);
/* Sends a connection and the description of its session, see `describe` in net/protocol.h. Called in the loop. */
int heddle_connection_send_session(heddle_connection *connection, int socket, const char *description, size_t size);
