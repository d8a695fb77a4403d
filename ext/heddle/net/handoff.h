#ifndef HEDDLE_HANDOFF_H
#define HEDDLE_HANDOFF_H

/*
 * What becomes of the connections while the loop is held up by something that nothing can interrupt: the watch's thread
 * gives those on which something arrives, and those that wait for a runner, to another process, with what was read of
 * them. It has no GVL and calls no Ruby.
 *
 * Who may touch a record is told by its owner's word. The loop leaves a connection that waits, for input or for a
 * runner, AT_REST; from then on it is whose who first changes that word: the loop, for which that is one
 * compare-and-swap without a lock, or the watch, which does it under the lock, and within the same critical section
 * either puts it back or has given it away: GONE. So a loop that finds it taken waits for the lock and then knows.
 * Records are made and freed under the lock. What the watch's thread has heard of those that it does not give away it
 * writes down for the loop, which is told by its letter.
 */

#include "net/connection.h"
#include "watch/watch.h"

#include <pthread.h>

enum {
    HEDDLE_HANDOFF_BATCH = 64, /* connections that are given, or events that are taken, in one critical section */
};

typedef struct {
    bool on;
    int socket; /* where they are given to whoever reads it, -1: nowhere */
    heddle_rescue rescue;
    pthread_mutex_t lock;
    heddle_connection *first_told, *last_told;
    bool shown; /* on the board, that this one is stuck; the watch's own */
    _Atomic uint64_t given;
} heddle_handoff;

void heddle_handoff_start(heddle_sockets *sockets);
/* From now on; 0, -ENOTSUP: nothing but the loop can hear of these connections, or there are no others; or -errno. */
int heddle_handoff_begin(heddle_sockets *sockets, int socket);
/* The watch touches nothing of it any more. Idempotent. */
void heddle_handoff_end(heddle_sockets *sockets);
/* The same in a child process, where there is no watch. */
void heddle_handoff_abandon(heddle_sockets *sockets);

/* Places change only between these two. */
void heddle_handoff_lock(heddle_sockets *sockets);
void heddle_handoff_unlock(heddle_sockets *sockets);
/* The loop looks at what it was told. */
void heddle_handoff_settle(heddle_sockets *sockets);
/* The record is about to be freed; returns who owned it. */
uint8_t heddle_handoff_forget(heddle_connection *connection);

/* The slow ways of heddle_connection_at_rest and _hold. */
void heddle_handoff_leave(heddle_connection *connection);
bool heddle_handoff_hold(heddle_connection *connection);

/* Is it the loop's alone again? false: another process has it. */
static inline bool heddle_connection_hold(heddle_connection *connection)
{
    uint8_t owner = heddle_transport_owner(&connection->transport);
    return (owner != HEDDLE_OWNER_AT_REST && owner != HEDDLE_OWNER_HANDOFF && owner != HEDDLE_OWNER_GONE) ||
           heddle_handoff_hold(connection);
}

/*
 * Sends a copy of its descriptor, with all that was read of its request, to whoever reads the socket with
 * heddle_sockets_take_over. On the thread that owns it. 0; -EOPNOTSUPP when it can't go whole (TLS, a chunked body that
 * has begun, more than 64 KiB); -EAGAIN when the socket is full; other errors.
 */
int heddle_connection_send(heddle_connection *connection, int socket);

#endif
