#pragma once

/* The listeners and connections of one loop, and the runners that serve them. The loop owns them. */

#include "net/admission.h"
#include "net/balance.h"
#include "net/connection.h"
#include "net/fate.h"
#include "net/fork_guard.h"
#include "net/request_gate.h"
#include "net/handoff.h"
#include "net/listener.h"
#include "net/handshake.h"
#include "net/io_turns.h"
#include "net/reserve_worker.h"
#include "net/protocol.h"
#include "net/ready_list.h"
#include "net/next_tick_call.h"
#include "net/work_rounds.h"
#include "net/runner_pool.h"
#include "net/event_set.h"
#include "net/tls.h"

/*
 * Epoll events carry a slot and its generation, never an address. While a child process holds a copy of the descriptor,
 * events may arrive for a connection that is gone.
 */
typedef struct {
    heddle_connection *connection;
    uint32_t generation;
    uint32_t next_free;
} heddle_connection_slot;

struct heddle_sockets {
    heddle_loop *loop;
    heddle_attachment attachment; /* attaches our Ruby object to the loop */
    VALUE scheduler;
    VALUE block;
    VALUE service_object;
    heddle_service *service; /* chooses the protocol of each connection */
    heddle_event_set set;
    heddle_fork_guard fork_guard;
    /* makes the loop continue in its next tick; allocated early, so that posting can't fail */
    heddle_next_tick_call *message;
    bool opened, closed;
    bool abandoned; /* this is a forked child, and the connections are its parent's */
    bool draining;  /* connections that become idle are closed */
    bool leaving;   /* the server stops soon: probes are rejected, and HTTP/1.1 responses end their connections */

    heddle_connection_slot *slots;
    uint32_t slot_count, free_slot;
    heddle_ready_list ready, probes, callbacks; /* items that wait at the gate, health checks, and all other items */
    /*
     * Items of addresses that have their share of the limit (admission.h), in rounds. They were first in their lists,
     * and go back when an item of their address has ended.
     */
    heddle_ready_list held;
    bool callback_next; /* if both `ready` and `callbacks` have an item, `callbacks` comes next */
    bool probed;        /* the list chosen last is `probes`, so another one comes next */
    heddle_rounds rounds;
    heddle_admission admission;
    heddle_gate gate;
    int64_t tick_began; /* when the current item began to be served, from the coarse clock: ns */
    heddle_ready_list *urgent; /* the list whose first item is for the runner that has just put it there; NULL: none */
    heddle_link unsent;       /* connections with output that the kernel, or the client's window, has not taken yet */
    size_t scheduled_flushes; /* how many of the `unsent` connections send in the next tick */

    uint32_t slow_check; /* the number of the last check of slow readers */

    heddle_listener *listeners;
    heddle_handshakes handshake_queue;
    heddle_turns turns;
    heddle_tls *tls_records; /* the TLS records of all connections */
    uint8_t paused; /* HEDDLE_PAUSED_… */
    heddle_timer back_off;
    heddle_balance balance;
    heddle_handoff handoff;
    heddle_reserve reserve;

    heddle_timer_heap deadlines; /* of records with a heddle_due */
    heddle_timer deadline_timer;

    heddle_runners runners;
    char *scratch; /* a buffer of HEDDLE_SCRATCH bytes, used only between two waits */

    size_t connections, running, max_connections;
    VALUE proxies; /* the Heddle::Net::Networks whose connections are not counted by address, or Qnil */
    heddle_address_share by_address[HEDDLE_ADDRESS_BUCKETS]; /* the index is a keyed hash of the address */
    uint64_t refused; /* connections that were closed because their address had too many */
    uint64_t closed_for_others; /* idle connections that were closed for new ones */
    uint64_t accepted, handoffs_received, clients_gone, handshakes, failed_handshakes;
};

enum {
    HEDDLE_SCRATCH = 65536,
};

void heddle_sockets_start(heddle_sockets *sockets, VALUE object);
/* Raises when the sockets are closed, or used on another thread or in a forked child. */
void heddle_sockets_check(heddle_sockets *sockets);
/*
 * Adds an accepted socket and takes over its descriptor. `listener`: the listener that accepted the socket; NULL if
 * another process sent it, and may have a copy of its descriptor. Returns 0, or -errno: then the descriptor still
 * belongs to the caller.
 */
int heddle_sockets_add(heddle_sockets *sockets, int fd, const heddle_address *remote, const heddle_address *local,
                       const heddle_listener *listener);
/*
 * Adds a connection that another process has handed off after it had read these bytes. `session`: the session that the
 * service has loaded, or nil.
 */
int heddle_sockets_add_shared(heddle_sockets *sockets, int fd, const heddle_address *remote,
                              const heddle_address *local, bool secure, const char *bytes, size_t size, VALUE session);
/* Adds a handed-off connection with the description of its session. May raise; then the descriptor is closed. */
int heddle_sockets_add_session(heddle_sockets *sockets, int fd, const heddle_address *remote,
                               const heddle_address *local, bool secure, const char *description, size_t size);
/* The connection in this slot, or NULL when it is gone. */
static inline heddle_connection *heddle_sockets_at(const heddle_sockets *sockets, uint64_t identity)
{
    const heddle_connection_slot *slot = &sockets->slots[(uint32_t)identity];
    return slot->generation == identity >> 32 ? slot->connection : NULL;
}

uint64_t heddle_sockets_identity(heddle_sockets *sockets, const heddle_connection *connection);
/*
 * Delivers an event of the set; a hang-up is delivered in the connection's turn (io_turns.h). May be called in a
 * selector's callback.
 */
HEDDLE_LAST_USE void heddle_sockets_deliver_event(heddle_sockets *sockets, heddle_connection *connection,
                                                  uint8_t ready);
/* Delivers an event without waiting for a turn. */
HEDDLE_LAST_USE void heddle_sockets_deliver_now(heddle_sockets *sockets, heddle_connection *connection, uint8_t ready);
/* Call this before waiting for an event of the connection in this direction. */
static inline void heddle_connection_want(heddle_connection *connection, heddle_direction direction)
{
    heddle_event_set *set = &connection->sockets->set;
    set->operations->want(set, connection, direction);
}

/* Makes the loop call `resume` of the set at the beginning of its next tick. From any thread. */
void heddle_sockets_schedule_resume(heddle_sockets *sockets);

/*
 * Queues a work item for a runner; `at_front`: before all others. May be called in a selector's callback. The item may
 * be rejected, and its connection freed.
 */
void heddle_sockets_queue(heddle_sockets *sockets, heddle_work *work, bool at_front);
/*
 * Queues a later item of the connection's session. While the connection's turn lasts, the item comes before all others.
 * If the connection's turn in this round is over, the item is deferred to the next round. Otherwise it joins the end of
 * the ready list.
 */
void heddle_sockets_queue_in_turn(heddle_sockets *sockets, heddle_work *work);
/*
 * Sets how many work items the connection's session has in addition to the ready one, which decides how long turns are.
 */
static inline void heddle_connection_set_further(heddle_connection *connection, uint32_t count)
{
    connection->further = count < UINT8_MAX ? (uint8_t)count : UINT8_MAX;
}
/* Called when a runner has taken a work item of this connection. */
void heddle_connection_begin_work(heddle_connection *connection);
/* Called when that item is complete and the connection still exists. */
void heddle_connection_end_work(heddle_connection *connection);
/*
 * Leaves the connection at rest (net/owner.h): it waits for input or a runner, and no call uses it. While the loop is
 * blocked, the watch thread may hand it off. The caller must not touch it afterwards.
 */
static inline void heddle_connection_release(heddle_connection *connection)
{
    if (connection->sockets->handoff.on)
        heddle_handoff_release(connection);
}

/* Does the item wait for a runner? False if a reserve has deferred it. */
static inline bool heddle_rounds_have_listed(const heddle_sockets *sockets, const heddle_work *work)
{
    const heddle_ready_list *list = work->list;
    return list && list != &sockets->reserve.deferred;
}

/* The list that the item waits in when its turn has come. */
static inline heddle_ready_list *heddle_rounds_list_of(heddle_sockets *sockets, const heddle_work *work)
{
    return work->probe ? &sockets->probes : work->operations->waits_at_gate ? &sockets->ready : &sockets->callbacks;
}

/* The record of the address for which the connection is counted, or NULL. */
static inline heddle_address_share *heddle_address_share_of(const heddle_connection *connection)
{
    return connection->address_bucket ? &connection->sockets->by_address[connection->address_bucket - 1] : NULL;
}

/*
 * Called with the item that will be served now: the next item of an address that has none waiting gets a later round.
 */
void heddle_ready_list_note_served(heddle_sockets *sockets, const heddle_work *work);

/* How many work items a runner would find. */
static inline size_t heddle_rounds_count_ready(const heddle_sockets *sockets)
{
    return sockets->ready.count + sockets->probes.count + sockets->callbacks.count;
}

/* How many work items wait for a runner. */
static inline size_t heddle_rounds_count_waiting(const heddle_sockets *sockets)
{
    return heddle_rounds_count_ready(sockets) + sockets->rounds.deferred.count + sockets->held.count;
}

/* Adds without overflow: configured durations have no maximum. */
static inline int64_t heddle_add_duration(int64_t time, int64_t duration)
{
    return duration > INT64_MAX - time ? INT64_MAX : time + duration;
}

/* -- admission.c -------------------------------------------------------------------------------------------------- */

/* Do fewer items run than the limit allows? Health checks don't count, nor items of an address beyond its share. */
static inline bool heddle_admission_has_room(const heddle_sockets *sockets)
{
    const heddle_runners *runners = &sockets->runners;
    return sockets->admission.limit == 0 ||
           runners->serving_count - runners->probing_count - runners->excess_count < sockets->admission.limit;
}

/* May a request begin in this tick? */
static inline bool heddle_admission_open(const heddle_sockets *sockets)
{
    return heddle_admission_has_room(sockets) &&
           heddle_gate_admits(&sockets->gate, sockets->runners.serving_count, sockets->loop->statistics.ticks);
}

/* When an item that became ready at `since` has waited for too long; -1: never. */
static inline int64_t heddle_admission_deadline(const heddle_sockets *sockets, const heddle_work *work, int64_t since)
{
    int64_t timeout = sockets->admission.queue_timeout;
    return timeout < 0 || work->probe ? -1 : heddle_add_duration(since, timeout);
}

/* Does a work item wait that must be served before any connection's next request? */
static inline bool heddle_admission_contended(const heddle_sockets *sockets)
{
    return heddle_rounds_count_waiting(sockets) && !heddle_admission_open(sockets);
}

/* If items wait, a runner is summoned for them at the end of the tick, as soon as admission allows it. */
static inline void heddle_admission_request(heddle_sockets *sockets)
{
    if (heddle_rounds_count_waiting(sockets))
        sockets->loop->work_waits = true;
}

/* Sets how many items are served at once; 0: any number. */
void heddle_admission_set_limit(heddle_sockets *sockets, size_t limit);
/* Counts an item that begins for its address. */
void heddle_admission_count_begun(heddle_sockets *sockets, heddle_address_share *share);
/* The item has ended. */
void heddle_admission_count_ended(heddle_sockets *sockets, heddle_address_share *share);
/*
 * The list whose first item is served next; NULL if none may be served now. Sets aside items of addresses that have
 * their share.
 */
heddle_ready_list *heddle_admission_choose_list(heddle_sockets *sockets);
/* The attachment's operation `begin_work`: judges the gate, and summons a runner or shares the next request. */
void heddle_admission_begin_work(heddle_attachment *attachment);

/* Called before the item is queued: makes a health check an ordinary request if there are too many. */
void heddle_admission_limit_probe(heddle_sockets *sockets, heddle_work *work);
/* Queues the item. Rejects it instead if the queue is full, or if it is a health check and the server stops. */
HEDDLE_FATE heddle_admission_admit(heddle_sockets *sockets, heddle_work *work);
/*
 * Rejects the item if the queue, which has `waiting` items, is full, or if its address has as many as there are free
 * places. Returns true if the item was rejected.
 */
HEDDLE_MUST_CHECK bool heddle_admission_reject_full(heddle_sockets *sockets, heddle_work *work, size_t waiting);
/* Rejects an item that has waited for too long. */
HEDDLE_LAST_USE void heddle_admission_reject_late(heddle_sockets *sockets, heddle_work *work);
/* Called when the item's turn has come. Returns true if it was rejected because its client has left. */
HEDDLE_MUST_CHECK bool heddle_admission_drop_abandoned(heddle_sockets *sockets, heddle_work *work, int64_t now);
/* Rejects all waiting items. */
void heddle_admission_end_queue(heddle_sockets *sockets);

/* -- balance.c: one worker among others --------------------------------------------------------------------------- */

void heddle_balance_join(heddle_sockets *sockets, VALUE object, const heddle_scoreboard *scoreboard, uint32_t slot);
/* Removes this worker from the scoreboard. Idempotent. */
void heddle_balance_leave(heddle_sockets *sockets);
/* Called instead in a forked child: the slot belongs to the parent. */
void heddle_balance_abandon(heddle_sockets *sockets);
/* Updates `accepting` on the scoreboard. */
void heddle_balance_show_accepting(heddle_sockets *sockets);
/* Should another worker accept the next connection? */
bool heddle_balance_should_defer(heddle_sockets *sockets);
/* Stops accepting for now, and notifies the others. */
void heddle_balance_stop_accepting(heddle_sockets *sockets);
/* Resumes accepting if no other worker has less to do. */
void heddle_balance_try_resume(heddle_sockets *sockets);
/* Does a request with this item's label block a worker now? Then this item would probably block its worker, too. */
bool heddle_balance_blocks_a_worker(const heddle_sockets *sockets, const heddle_work *work);

/* -- handoff_messages.c -------------------------------------------------------------------------------------------- */

/*
 * Hands the idle connections off to the process that reads the socket. Returns 0 after all of them, -EAGAIN if the
 * socket is full, or another -errno.
 */
int heddle_handoff_send_idle(heddle_sockets *sockets, int socket);
/*
 * Accepts one handed-off connection. Returns 0, -EAGAIN if there is none, -EDQUOT if there is no room for it here,
 * -EBUSY if another worker should take it, or another -errno.
 */
int heddle_handoff_receive(heddle_sockets *sockets, int socket);

/* -- deadlines.c: time limits of connections without a runner ------------------------------------------------------ */

void heddle_deadlines_start(heddle_sockets *sockets);
/* Sets a deadline; < 0: none. The protocol's handle_deadline is called up to 64 ms after it. */
void heddle_connection_set_deadline(heddle_connection *connection, int64_t deadline);
/* Sets a deadline `duration` ns from now. */
void heddle_connection_set_time_limit(heddle_connection *connection, int64_t duration);
/* When the current time limit was set, if that has this duration; INT64_MAX: there is no time limit. */
static inline int64_t heddle_connection_limited_since(const heddle_connection *connection, int64_t duration)
{
    return duration < 0 || connection->due.at < 0 ? INT64_MAX : connection->due.at - duration;
}

/* The operation `passed` of connection->due. */
void heddle_connection_handle_deadline(heddle_due *due);

/* -- sending.c ---------------------------------------------------------------------------------------------------- */

/* Called when output was queued. */
void heddle_connection_has_output(heddle_connection *connection);
/*
 * Sends as much as possible now. Returns 0 if nothing is left, -EAGAIN if output is left, or another -errno if the
 * connection is broken. If the protocol has turns, sends at most HEDDLE_OUTPUT_PART bytes; the rest waits for the
 * connection's turn. Sends nothing while the connection waits for its turn.
 */
int heddle_connection_flush(heddle_connection *connection);
/* Sends at the beginning of the loop's next tick. */
void heddle_connection_flush_later(heddle_connection *connection);
/*
 * Sends bytes without the output queue, and returns how many were sent: 0 if other output is queued or there is no
 * room, -errno if the connection is broken. The caller queues the rest and flushes it later.
 */
ssize_t heddle_connection_send_now(heddle_connection *connection, const char *bytes, size_t size)
    __attribute__((warn_unused_result));
void heddle_connection_drop_output(heddle_connection *connection);
void heddle_sockets_flush(heddle_sockets *sockets);

/* -- slow_readers.c ------------------------------------------------------------------------------------------------ */

/*
 * Cuts off clients with a waiting response that took fewer than `rate` bytes a second in the last `span` (ns). Then
 * cuts off the slowest clients, as long as more than `budget` bytes wait. Returns the number of clients cut off. Called
 * a few times a second.
 */
size_t heddle_sockets_cut_slow_readers(heddle_sockets *sockets, uint64_t budget, double rate, int64_t span);

/* Closes an idle connection, unless another thread has just taken it. */
void heddle_sockets_close_idle(heddle_connection *connection);
/* Closes a connection in any state and frees its record. */
void heddle_sockets_close_connection(heddle_connection *connection);
/* Removes the connection and frees its record, but returns the descriptor, which stays open. */
int heddle_sockets_detach(heddle_connection *connection);
/*
 * Closes connections that have waited for a request for longer than `age`, ns. With 0, also closes connections that
 * become idle later.
 */
void heddle_sockets_shutdown_idle(heddle_sockets *sockets, int64_t age);
/*
 * Closes the connections that have waited longest for a request, so that new ones can be accepted. If there are none,
 * closes the connections whose client has done nothing for longest, in a handshake, a request or a response. WebSockets
 * and event streams come last, because their clients would reconnect at once.
 */
void heddle_sockets_close_longest_idle(heddle_sockets *sockets);
void heddle_sockets_close(heddle_sockets *sockets);
/* Called by the garbage collector: the loop may be freed already. */
void heddle_sockets_free(heddle_sockets *sockets);

void Init_heddle_sockets(VALUE net);
