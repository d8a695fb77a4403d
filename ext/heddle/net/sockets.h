#pragma once

/*
 * The listeners and connections of one loop, and the runners (pooled fibers) that serve the connections. Only the loop
 * may use all of these, apart from what net/handoff.h describes.
 */

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
 * A slot of the table of connections. Epoll events identify a connection by slot and generation, never by address:
 * while a child process has a copy of the descriptor, events may arrive for a connection that no longer exists.
 */
typedef struct {
    heddle_connection *connection;
    uint32_t generation;
    uint32_t next_free;
} heddle_connection_slot;

struct heddle_sockets {
    heddle_loop *loop;
    heddle_attachment attachment; /* attaches the Ruby object to the loop */
    VALUE scheduler;
    VALUE block; /* the Ruby block that serves the work items without an operation `serve` (work_item.h) */
    VALUE service_object;
    heddle_service *service; /* chooses the protocol of each connection */
    heddle_event_set set;
    heddle_fork_guard fork_guard;
    /* Makes the loop continue postponed work in its next tick. Allocated early, so that posting it can't fail. */
    heddle_next_tick_call *message;
    bool opened, closed;
    bool abandoned; /* this process is a forked child, and the connections belong to its parent */
    bool draining;  /* connections are closed when they become idle */
    /* the server stops soon: health checks are rejected, and HTTP/1.1 connections end after their next response */
    bool leaving;

    heddle_connection_slot *slots;
    uint32_t slot_count, free_slot;
    /* the work items that wait for a runner: requests, which also wait for the gate; health checks; all other items */
    heddle_ready_list ready, probes, callbacks;
    /*
     * Items of addresses that have used up their share of the limit (admission.c), in the order of their rounds. The
     * items of an address return to their former lists when a running item of the address has ended.
     */
    heddle_ready_list held;
    bool callback_next; /* if both `ready` and `callbacks` have items, the next one is from `callbacks` */
    bool probed;        /* `probes` was chosen last, so another list comes next */
    heddle_rounds rounds;
    heddle_admission admission;
    heddle_gate gate;
    int64_t tick_began; /* when a runner last took an item that was not `urgent`: ns, coarse clock */
    /* the list whose first item is served next, because it was queued with `at_front`; NULL: none */
    heddle_ready_list *urgent;
    /* connections with unsent output: the kernel has not accepted it, or the client's HTTP/2 window is used up */
    heddle_link unsent;
    size_t scheduled_flushes; /* how many connections in `unsent` send in the next tick */

    uint32_t slow_check; /* the number of the last check of slow readers */

    heddle_listener *listeners;
    heddle_handshakes handshake_queue;
    heddle_turns turns;
    heddle_tls *tls_records; /* the list of the heddle_tls of all connections */
    uint8_t paused; /* HEDDLE_PAUSED_… */
    heddle_timer back_off;
    heddle_balance balance;
    heddle_handoff handoff;
    heddle_reserve reserve;

    heddle_timer_heap deadlines; /* the time limits (heddle_due) of connections, exchanges and other records */
    heddle_timer deadline_timer;

    heddle_runners runners;
    char *scratch; /* a buffer of HEDDLE_SCRATCH bytes; its contents are lost when a fiber waits */

    /* open connections; those for which runners serve work items now; the maximum number of connections, 0: no limit */
    size_t connections, running, max_connections;
    size_t room_wanted; /* connections to close after their response, because clients wait and none was idle */
    VALUE proxies; /* the Heddle::Net::Networks of proxies, whose connections are not counted by address; or Qnil */
    heddle_address_share by_address[HEDDLE_ADDRESS_BUCKETS]; /* the index is a hash of the address with a secret key */
    uint64_t refused; /* connections that were closed because their address had too many */
    uint64_t closed_for_others; /* connections that heddle_sockets_close_longest_idle has closed */
    uint64_t accepted, handoffs_received, clients_gone, handshakes, failed_handshakes;
};

enum {
    HEDDLE_SCRATCH = 65536,
};

void heddle_sockets_start(heddle_sockets *sockets, VALUE object);
/*
 * Opens the sockets at first use. Raises an error if they are closed, or if this is another thread or a forked child.
 */
void heddle_sockets_check(heddle_sockets *sockets);
/*
 * Adds an accepted socket and takes ownership of its descriptor. `listener` has accepted the socket. If it is NULL,
 * other code has accepted the socket, and may keep a copy of the descriptor. Returns 0, -EPERM if the client's address
 * has too many connections, or another -errno. After an error the caller still owns the descriptor.
 */
int heddle_sockets_add(heddle_sockets *sockets, int fd, const heddle_address *remote, const heddle_address *local,
                       const heddle_listener *listener);
/*
 * Adds a connection that another process has handed off, with the input that the other process had read. `session` is
 * the session that the service has loaded, or nil. Returns the same values as heddle_sockets_add.
 */
int heddle_sockets_add_shared(heddle_sockets *sockets, int fd, const heddle_address *remote,
                              const heddle_address *local, bool secure, const char *bytes, size_t size, VALUE session);
/*
 * Adds a connection that another process has handed off with the description of its session. Returns the same values as
 * heddle_sockets_add. If it raises, it has closed the descriptor.
 */
int heddle_sockets_add_session(heddle_sockets *sockets, int fd, const heddle_address *remote,
                               const heddle_address *local, bool secure, const char *description, size_t size);
/* Returns the connection with this identity, or NULL if it no longer exists. */
static inline heddle_connection *heddle_sockets_at(const heddle_sockets *sockets, uint64_t identity)
{
    const heddle_connection_slot *slot = &sockets->slots[(uint32_t)identity];
    return slot->generation == identity >> 32 ? slot->connection : NULL;
}

/* Returns the connection's slot and generation as one number. */
uint64_t heddle_sockets_identity(heddle_sockets *sockets, const heddle_connection *connection);
/*
 * Delivers an event of the event set. These events wait for the connection's turn (io_turns.h): a hang-up, all events
 * after it, and every event of a protocol with `waits_for_turns`. May be called in a selector's callback.
 */
HEDDLE_LAST_USE void heddle_sockets_deliver_event(heddle_sockets *sockets, heddle_connection *connection,
                                                  uint8_t ready);
/* Delivers an event at once, without waiting for a turn. */
HEDDLE_LAST_USE void heddle_sockets_deliver_now(heddle_sockets *sockets, heddle_connection *connection, uint8_t ready);
/* Called before a wait for input or for room for output. */
static inline void heddle_connection_want(heddle_connection *connection, heddle_direction direction)
{
    heddle_event_set *set = &connection->sockets->set;
    set->operations->want(set, connection, direction);
}

/*
 * Makes the loop send deferred output and continue other postponed work at the beginning of its next tick. Any thread
 * may call this.
 */
void heddle_sockets_schedule_resume(heddle_sockets *sockets);

/*
 * Queues a work item for a runner. With `at_front` the item comes before all other items except health checks. Without
 * it, admission may reject the item, which may free the item's connection. May be called in a selector's callback.
 */
void heddle_sockets_queue(heddle_sockets *sockets, heddle_work *work, bool at_front);
/*
 * Queues a further item of the connection's session. While the connection's turn lasts (work_rounds.h), the item is
 * added at the front. If the connection has had its turn in this round, the item is deferred to the next round, unless
 * it is a health check. In all other cases the item is queued like any other.
 */
void heddle_sockets_queue_in_turn(heddle_sockets *sockets, heddle_work *work);
/* Sets how many work items the connection's session has besides the queued one. The length of turns depends on it. */
static inline void heddle_connection_set_further(heddle_connection *connection, uint32_t count)
{
    connection->further = count < UINT8_MAX ? (uint8_t)count : UINT8_MAX;
}
/* Called when a runner begins to serve a work item of this connection. */
void heddle_connection_begin_work(heddle_connection *connection);
/* Called when a work item of this connection has ended and the connection still exists. */
void heddle_connection_end_work(heddle_connection *connection);
/*
 * Puts the connection at rest (net/owner.h): it waits for input or for a runner, and no function uses it. While the
 * loop is blocked, the watch thread may hand off the connection. The caller must not use the record afterwards.
 */
static inline void heddle_connection_release(heddle_connection *connection)
{
    if (connection->sockets->handoff.on)
        heddle_handoff_release(connection);
}

/* Returns whether the item waits for a runner. Returns false if a reserve worker has deferred it. */
static inline bool heddle_rounds_have_listed(const heddle_sockets *sockets, const heddle_work *work)
{
    const heddle_ready_list *list = work->list;
    return list && list != &sockets->reserve.deferred;
}

/* Returns the list in which an item of this kind waits for a runner. */
static inline heddle_ready_list *heddle_rounds_list_of(heddle_sockets *sockets, const heddle_work *work)
{
    return work->probe ? &sockets->probes : work->operations->waits_at_gate ? &sockets->ready : &sockets->callbacks;
}

/* Returns the record of the address for which the connection is counted, or NULL. */
static inline heddle_address_share *heddle_address_share_of(const heddle_connection *connection)
{
    return connection->address_bucket ? &connection->sockets->by_address[connection->address_bucket - 1] : NULL;
}

/*
 * Called with the item that will be served next. If the item's round of addresses (ready_list.c) is later than that of
 * every item served before, records this round in `rounds.served`.
 */
void heddle_ready_list_note_served(heddle_sockets *sockets, const heddle_work *work);

/* Returns how many work items a runner could serve now. */
static inline size_t heddle_rounds_count_ready(const heddle_sockets *sockets)
{
    return sockets->ready.count + sockets->probes.count + sockets->callbacks.count;
}

/* Returns how many work items wait for a runner, including those in `rounds.deferred` and `held`. */
static inline size_t heddle_rounds_count_waiting(const heddle_sockets *sockets)
{
    return heddle_rounds_count_ready(sockets) + sockets->rounds.deferred.count + sockets->held.count;
}

/* Adds without overflow, because configured durations have no maximum. */
static inline int64_t heddle_add_duration(int64_t time, int64_t duration)
{
    return duration > INT64_MAX - time ? INT64_MAX : time + duration;
}

/* -- admission.c -------------------------------------------------------------------------------------------------- */

/*
 * Returns how many further items the limit allows to run. Health checks don't count, nor do items that exceed the share
 * of their address (`excess_count` of heddle_runners).
 */
static inline size_t heddle_admission_room(const heddle_sockets *sockets)
{
    const heddle_runners *runners = &sockets->runners;
    size_t limit = sockets->admission.limit ? sockets->admission.limit : HEDDLE_UNLIMITED_ITEMS;
    size_t begun = runners->serving_count - runners->probing_count - runners->excess_count;
    return begun < limit ? limit - begun : 0;
}

/* Returns whether a request may begin in this tick. */
static inline bool heddle_admission_open(const heddle_sockets *sockets)
{
    return heddle_admission_room(sockets) &&
           heddle_gate_admits(&sockets->gate, sockets->runners.serving_count, sockets->loop->statistics.ticks);
}

/* Returns the time at which an item that became ready at `since` is rejected if it still waits; -1: never. */
static inline int64_t heddle_admission_deadline(const heddle_sockets *sockets, const heddle_work *work, int64_t since)
{
    int64_t timeout = sockets->admission.queue_timeout;
    return timeout < 0 || work->probe ? -1 : heddle_add_duration(since, timeout);
}

/* Returns whether work items wait and no request may begin in this tick, so that a further request would wait, too. */
static inline bool heddle_admission_contended(const heddle_sockets *sockets)
{
    return heddle_rounds_count_waiting(sockets) && !heddle_admission_open(sockets);
}

/* If items wait, makes the loop summon a runner at the end of the first tick in which an item may begin. */
static inline void heddle_admission_request(heddle_sockets *sockets)
{
    if (heddle_rounds_count_waiting(sockets))
        sockets->loop->work_waits = true;
}

/* Sets how many items may be served at the same time; 0: no limit. */
void heddle_admission_set_limit(heddle_sockets *sockets, size_t limit);
/* Counts an item of this address that begins. */
void heddle_admission_count_begun(heddle_sockets *sockets, heddle_address_share *share);
/* Counts an item of this address that has ended. */
void heddle_admission_count_ended(heddle_sockets *sockets, heddle_address_share *share);
/*
 * Returns the list whose first item is served next, or NULL if no item may be served now. Moves the items of addresses
 * that have used up their share to the list `held`.
 */
heddle_ready_list *heddle_admission_choose_list(heddle_sockets *sockets);
/*
 * The operation `begin_work` of `attachment`, called at the end of a tick. Opens or closes the gate, and summons a
 * runner or hands off the next request.
 */
void heddle_admission_begin_work(heddle_attachment *attachment);

/* Called before the item is queued. Makes a health check an ordinary request if there are too many health checks. */
void heddle_admission_limit_probe(heddle_sockets *sockets, heddle_work *work);
/*
 * Called before the item is queued. Rejects the item if it must wait and the queue is full, or if it is a health check
 * and the server stops.
 */
HEDDLE_FATE heddle_admission_admit(heddle_sockets *sockets, heddle_work *work);
/*
 * Rejects the item if the queue, which has `waiting` items, is full. Also rejects the item if its address has at least
 * as many waiting items as the queue has free places. `room` of the waiting items may begin now, so the queue has as
 * many more places. Returns true if the item was rejected.
 */
HEDDLE_MUST_CHECK bool heddle_admission_reject_full(heddle_sockets *sockets, heddle_work *work, size_t waiting,
                                                    size_t room);
/* Rejects an item that has waited for too long. */
HEDDLE_LAST_USE void heddle_admission_reject_late(heddle_sockets *sockets, heddle_work *work);
/* Called just before the item is served. Rejects it if its client has left. Returns true if it was rejected. */
HEDDLE_MUST_CHECK bool heddle_admission_drop_abandoned(heddle_sockets *sockets, heddle_work *work, int64_t now);
/* Rejects all waiting items. */
void heddle_admission_end_queue(heddle_sockets *sockets);

/* -- balance.c ----------------------------------------------------------------------------------------------------- */

/* Makes this process one of several workers, with this slot of the scoreboard. */
void heddle_balance_join(heddle_sockets *sockets, VALUE object, const heddle_scoreboard *scoreboard, uint32_t slot);
/* Removes this worker from the scoreboard. May be called repeatedly. */
void heddle_balance_leave(heddle_sockets *sockets);
/* Called instead of heddle_balance_leave in a forked child, because the slot belongs to the parent. */
void heddle_balance_abandon(heddle_sockets *sockets);
/* Updates `accepting` on the scoreboard. */
void heddle_balance_show_accepting(heddle_sockets *sockets);
/* Returns whether another worker should accept the next connection. */
bool heddle_balance_should_defer(heddle_sockets *sockets);
/* Pauses accepting, and notifies the other workers. */
void heddle_balance_stop_accepting(heddle_sockets *sockets);
/* Resumes accepting, if no other worker has clearly less to do. */
void heddle_balance_try_resume(heddle_sockets *sockets);
/*
 * Returns whether a request with this item's label blocks a worker now. In that case the item would probably block
 * another worker, too.
 */
bool heddle_balance_blocks_a_worker(const heddle_sockets *sockets, const heddle_work *work);

/* -- handoff_messages.c -------------------------------------------------------------------------------------------- */

/*
 * Hands off all idle connections to the process that reads the other end of `socket`. Returns 0, -EAGAIN if the socket
 * is full, or another -errno.
 */
int heddle_handoff_send_idle(heddle_sockets *sockets, int socket);
/*
 * Receives one connection that another process has handed off. Returns 0, -EAGAIN if there is none, -EDQUOT if this
 * process has the maximum number of connections, -EBUSY if another worker should receive it, or another -errno.
 */
int heddle_handoff_receive(heddle_sockets *sockets, int socket);

/* -- deadlines.c --------------------------------------------------------------------------------------------------- */

void heddle_deadlines_start(heddle_sockets *sockets);
/*
 * Sets a deadline of the connection, CLOCK_MONOTONIC in ns; < 0: no deadline. The protocol's handle_deadline is called
 * up to 64 ms after the deadline.
 */
void heddle_connection_set_deadline(heddle_connection *connection, int64_t deadline);
/* Sets a deadline `duration` ns from now; < 0: no deadline. */
void heddle_connection_set_time_limit(heddle_connection *connection, int64_t duration);
/* Returns when the current time limit, which lasts `duration` ns, was set. Returns INT64_MAX if there is no limit. */
static inline int64_t heddle_connection_limited_since(const heddle_connection *connection, int64_t duration)
{
    return duration < 0 || connection->due.at < 0 ? INT64_MAX : connection->due.at - duration;
}

/* The operation `passed` of a connection's `due`. */
void heddle_connection_handle_deadline(heddle_due *due);

/* -- sending.c ---------------------------------------------------------------------------------------------------- */

/* Called when output was queued. Adds the connection to the list of connections with unsent output. */
void heddle_connection_has_output(heddle_connection *connection);
/*
 * Sends as much queued output as possible. Returns 0 if all of it was sent, -EAGAIN if output is left, or another
 * -errno if the connection is broken.
 *
 * If the protocol has `take_turn`, sends at most HEDDLE_OUTPUT_PART bytes, and the rest waits for the connection's turn
 * to send (io_turns.h). Sends nothing while the connection waits for this turn.
 */
int heddle_connection_flush(heddle_connection *connection);
/* Sends the queued output at the beginning of the loop's next tick. */
void heddle_connection_flush_later(heddle_connection *connection);
/*
 * Sends bytes directly, without queueing them. Returns how many were sent, or -errno if the connection is broken. Sends
 * none if other output is queued, or if the protocol has a farewell. The caller queues the remaining bytes.
 */
ssize_t heddle_connection_send_now(heddle_connection *connection, const char *bytes, size_t size)
    __attribute__((warn_unused_result));
void heddle_connection_drop_output(heddle_connection *connection);
/* Sends the output for which heddle_connection_flush_later was called. */
void heddle_sockets_flush(heddle_sockets *sockets);

/* -- slow_readers.c ------------------------------------------------------------------------------------------------ */

/*
 * Disconnects clients that received fewer than `rate` bytes per second in the last `span` ns, although output waits for
 * them. Then, while more than `budget` bytes wait, disconnects the slowest clients. Returns the number of disconnected
 * clients. Called a few times per second.
 */
size_t heddle_sockets_cut_slow_readers(heddle_sockets *sockets, uint64_t budget, double rate, int64_t span);

/* Closes an idle connection, unless the watch thread has just handed it off or a runner serves it. */
void heddle_sockets_close_idle(heddle_connection *connection);
/* Closes a connection in any state and frees its record. */
void heddle_sockets_close_connection(heddle_connection *connection);
/* Removes the connection and frees its record. Returns its descriptor, which remains open. */
int heddle_sockets_detach(heddle_connection *connection);
/*
 * Closes idle connections, that is, those that wait for a request, if they have been idle for more than `age` ns or
 * their protocol has `end_idle`. If `age` is 0 and there is no listener, also closes connections when they become idle
 * later.
 */
void heddle_sockets_shutdown_idle(heddle_sockets *sockets, int64_t age);
/*
 * Closes the connections that have waited longest for a request, so that new ones can be accepted. If no connection
 * waits for a request, sets `room_wanted` and closes those whose clients have done nothing for the longest time in a
 * handshake, a request or a response. WebSockets and event streams are closed last, because their clients would
 * reconnect at once.
 */
void heddle_sockets_close_longest_idle(heddle_sockets *sockets);
void heddle_sockets_close(heddle_sockets *sockets);
/* Called by the garbage collector. The loop may be freed already. */
void heddle_sockets_free(heddle_sockets *sockets);

void Init_heddle_sockets(VALUE net);
