#ifndef HEDDLE_SOCKETS_H
#define HEDDLE_SOCKETS_H

/* The server's sockets of one worker: listeners, connections, and their runners. One loop owns them. */

#include "net/admission.h"
#include "net/balance.h"
#include "net/connection.h"
#include "net/fate.h"
#include "net/fork_guard.h"
#include "net/handoff.h"
#include "net/listener.h"
#include "net/handshake.h"
#include "net/input_turns.h"
#include "net/reserve.h"
#include "net/protocol.h"
#include "net/ready_list.h"
#include "net/rounds.h"
#include "net/runners.h"
#include "net/socket_set.h"
#include "net/tls.h"

/* Epoll events name a slot and its generation, never an address: a descriptor that a child process still holds
 * may bring events of a connection that is gone. */
typedef struct {
    heddle_connection *connection;
    uint32_t generation;
    uint32_t next_free;
} heddle_connection_slot;

/* Not part of the record, which may be gone before a message that was posted is opened. */
typedef struct {
    heddle_loop_message base;
    heddle_sockets *sockets; /* NULL: closed meanwhile */
    _Atomic bool posted;     /* by the loop itself, or by the watch */
} heddle_sockets_message;

struct heddle_sockets {
    heddle_loop *loop;
    heddle_attachment attachment; /* … to the loop: our own object */
    VALUE scheduler;
    VALUE block;
    VALUE service_object;
    heddle_service *service; /* chooses the protocol of each connection */
    heddle_socket_set set;
    heddle_fork_guard fork_guard;
    heddle_sockets_message *message; /* continues in the loop's next tick; allocated early: posting can't fail */
    bool opened, closed;
    bool abandoned; /* this is a child process, they are its parent's */
    bool draining;  /* a connection that becomes idle is closed */

    heddle_connection_slot *slots;
    uint32_t slot_count, free_slot;
    heddle_ready_list ready;
    heddle_rounds rounds;
    heddle_admission admission;
    int64_t tick_began; /* when the one that is served now got its turn, coarsely: ns */
    bool urgent;               /* the first of them is for the runner that has just put it there */
    heddle_link unsent;       /* connections with output that the kernel has not taken yet */
    size_t scheduled_flushes; /* of them: those whose output leaves in the next tick */

    heddle_listener *listeners;
    heddle_handshakes handshake_queue;
    heddle_input_turns input_turns;
    heddle_tls *private; /* the connections over TLS */
    uint8_t paused; /* HEDDLE_PAUSED_… */
    heddle_timer back_off;
    heddle_balance balance;
    heddle_handoff handoff;
    heddle_reserve reserve;

    heddle_idle_wheel wheel;
    heddle_timer wheel_timer;
    int64_t idle_timeout; /* ns, < 0: none */

    heddle_runners runners;
    char *scratch; /* the buffer of recv, before it becomes a String */

    size_t connections, running, max_connections;
    uint64_t accepted, taken_over, closed_idle, left_early, accept_failures, handshakes, failed_handshakes;
};

enum {
    HEDDLE_SCRATCH = 65536,
};

void heddle_sockets_start(heddle_sockets *sockets, VALUE object, bool pooled);
/* Raises when it is closed, or used on another thread or in a child process. */
void heddle_sockets_check(heddle_sockets *sockets);
/*
 * An accepted socket, which is ours from now on; `listener`: the listener that accepted it; NULL: another process sent
 * it, and may have a copy of its descriptor. 0 or -errno (then it is still the caller's).
 */
int heddle_sockets_add(heddle_sockets *sockets, int fd, const heddle_address *remote, const heddle_address *local,
                       const heddle_listener *listener);
/* The same for one of which these bytes were read already, by another process. */
int heddle_sockets_add_read(heddle_sockets *sockets, int fd, const heddle_address *remote, const heddle_address *local,
                            bool secure, const char *bytes, size_t size);
/* The handoff calls these for a Sockets. */
extern const heddle_handoff_operations heddle_sockets_handoff;

/* The same for one within a session, which its service has loaded. */
int heddle_sockets_add_session(heddle_sockets *sockets, int fd, const heddle_address *remote, const heddle_address *local,
                               bool secure, VALUE loaded);
/* The connection in this slot, NULL when it is gone. */
static inline heddle_connection *heddle_sockets_at(const heddle_sockets *sockets, uint64_t identity)
{
    const heddle_connection_slot *slot = &sockets->slots[(uint32_t)identity];
    return slot->generation == identity >> 32 ? slot->connection : NULL;
}

uint64_t heddle_sockets_identity(heddle_sockets *sockets, const heddle_connection *connection);
/* The set has heard something. Callable from a selector's callback. */
HEDDLE_LAST_USE void heddle_sockets_deliver_event(heddle_sockets *sockets, heddle_connection *connection, uint8_t ready);
/* Whether this system's set tells of an end of input as of any input. */
static inline bool heddle_sockets_hide_input_end(const heddle_sockets *sockets)
{
    return sockets->set.operations->hides_input_end;
}
/* The loop's next turn begins with `resume` of the set. From any thread. */
void heddle_sockets_schedule_resume(heddle_sockets *sockets);

/*
 * A work item waits for a runner from now on; `next`: before all others. Callable from a selector's callback. It may be
 * rejected, and its connection gone, afterwards.
 */
void heddle_sockets_queue(heddle_sockets *sockets, heddle_work *work, bool next);
/*
 * The same for an item that has waited in its connection: it is put into the ready list when this connection's turn of
 * the next round comes.
 */
void heddle_sockets_queue_in_turn(heddle_sockets *sockets, heddle_work *work);
/* So many work items wait in the connection's session for the ready list. */
static inline void heddle_connection_set_further(heddle_connection *connection, uint32_t count)
{
    connection->further = count < UINT8_MAX ? (uint8_t)count : UINT8_MAX;
}
/* A runner has taken a work item of this connection. */
void heddle_connection_begin_work(heddle_connection *connection);
/* It is done with the connection, which lives on. */
void heddle_connection_end_work(heddle_connection *connection);
/* An event of a connection whose work item waits or runs: sends output and wakes the fibers that wait. */
void heddle_connection_go_on(heddle_connection *connection, uint8_t ready);
/*
 * It waits, for input or for a runner, and nothing of it is under way: while the loop is held up, another process may
 * have it. To be the last thing that is done to it.
 */
static inline void heddle_connection_leave_at_rest(heddle_connection *connection)
{
    if (connection->sockets->handoff.on)
        heddle_handoff_leave(connection);
}

/* Does the item wait for a runner, and is it held back by no reserve? */
static inline bool heddle_rounds_have_listed(const heddle_sockets *sockets, const heddle_work *work)
{
    return work->list == &sockets->ready || work->list == &sockets->rounds.deferred;
}

/* How many work items wait for a runner. */
static inline size_t heddle_rounds_count_waiting(const heddle_sockets *sockets)
{
    return sockets->ready.count + sockets->rounds.deferred.count;
}

/* So long after a time; without overflow, as nothing says how long a configured duration may be. */
static inline int64_t heddle_add_duration(int64_t time, int64_t duration)
{
    return duration > INT64_MAX - time ? INT64_MAX : time + duration;
}

/* -- admission.c -------------------------------------------------------------------------------------------------- */

/* May one more be served now? */
static inline bool heddle_admission_open(const heddle_sockets *sockets)
{
    return sockets->admission.limit == 0 || sockets->runners.serving_count < sockets->admission.limit;
}

/* Does a work item wait that comes before any connection's next request? */
static inline bool heddle_admission_contended(const heddle_sockets *sockets)
{
    return heddle_rounds_count_waiting(sockets) && !heddle_admission_open(sockets);
}

/* It may wait, or, where the queue is full, is rejected. */
HEDDLE_FATE heddle_admission_admit(heddle_sockets *sockets, heddle_work *work);
/* Fewer wait than before: accepts connections again where that may go on. */
void heddle_admission_resume_accepting(heddle_sockets *sockets);
/* This one has waited for too long: rejects it. */
HEDDLE_LAST_USE void heddle_admission_reject_late(heddle_sockets *sockets, heddle_work *work);
/* The limits have changed. */
void heddle_admission_apply_limits(heddle_sockets *sockets);
/* Rejects all that wait. */
void heddle_admission_end_queue(heddle_sockets *sockets);

/* -- balance.c: one worker among others --------------------------------------------------------------------------- */

void heddle_balance_join(heddle_sockets *sockets, VALUE object, const heddle_scoreboard *scoreboard, uint32_t slot);
/* It shows up on the scoreboard no more. Idempotent. */
void heddle_balance_leave(heddle_sockets *sockets);
/* The same in a child process: the slot is its parent's. */
void heddle_balance_abandon(heddle_sockets *sockets);
/* Whether anything else is accepted has changed. */
void heddle_balance_tell_accepting(heddle_sockets *sockets);
/* Is the next connection rather another worker's? */
bool heddle_balance_should_defer(heddle_sockets *sockets);
/* It is: accepts nothing for now, and makes the others look. */
void heddle_balance_stop_accepting(heddle_sockets *sockets);
/* Accepts again if it is not. */
void heddle_balance_try_resume(heddle_sockets *sockets);

/*
 * -- handoff_messages.c
 * --------------------------------------------------------------------------------------------------
 */

/*
 * Hands the idle connections off to the process that reads the socket. 0: all of them, -EAGAIN: it is full, other
 * errors.
 */
int heddle_handoff_send_idle(heddle_sockets *sockets, int socket);
/* Takes one. 0, -EAGAIN when there is none, -EDQUOT when there is no room for it here, other errors. */
int heddle_handoff_receive(heddle_sockets *sockets, int socket);

/* -- deadlines.c: while nobody serves a connection ---------------------------------------------------------------- */

void heddle_deadlines_start(heddle_sockets *sockets);
/* Its protocol handles the deadline's passing, some 64 ms late; < 0: it has none. */
void heddle_connection_set_deadline(heddle_connection *connection, int64_t deadline);
/* The `passed` of connection->due. */
void heddle_connection_handle_deadline(heddle_due *due);

/* -- sending.c ---------------------------------------------------------------------------------------------------- */

/* Its output has got something. */
void heddle_connection_has_output(heddle_connection *connection);
/* Sends what can be sent now. 0: all of it, -EAGAIN: some is left, other errors: the connection is broken. */
int heddle_connection_flush(heddle_connection *connection);
/* The same, but at the beginning of the loop's next turn. */
void heddle_connection_flush_later(heddle_connection *connection);
/*
 * Sends bytes past the output queue: how many have left. 0 where other output is queued, or there is no room: the caller
 * queues the rest, and flushes it later. Negative: the connection is broken.
 */
ssize_t heddle_connection_send_now(heddle_connection *connection, const char *bytes, size_t size)
    __attribute__((warn_unused_result));
void heddle_connection_drop_output(heddle_connection *connection);
void heddle_sockets_flush(heddle_sockets *sockets);

/* HEDDLE_SCRATCH bytes that nobody counts on after a wait. */
static inline char *heddle_sockets_scratch(heddle_sockets *sockets)
{
    return sockets->scratch;
}

/* Ends one that nobody serves, unless somebody has just taken it. */
void heddle_sockets_close_idle(heddle_connection *connection);
/* Ends it, whatever its state; the record is gone. */
void heddle_sockets_close_connection(heddle_connection *connection);
/* The same, but the descriptor lives on: returned. */
int heddle_sockets_detach(heddle_connection *connection);
/* Closes those that have waited for a request for longer than this, ns; with 0 those that come to rest later, too. */
void heddle_sockets_shutdown_idle(heddle_sockets *sockets, int64_t age);
void heddle_sockets_close(heddle_sockets *sockets);
/* By the garbage collector: the loop may be gone already. */
void heddle_sockets_free(heddle_sockets *sockets);
size_t heddle_sockets_memory_size(const heddle_sockets *sockets);

void Init_heddle_sockets(VALUE net);

#endif
