/* Work sharing: hands off waiting requests to workers that could serve them sooner. See work_sharing.h. */

#include "net/work_sharing.h"

#include "net/sockets.h"

/*
 * Returns whether the loop has not slept for HEDDLE_WORK_SHARING_AFTER and has other work, for which the item would
 * have to wait. If a single client sends one request after the other, this is false: the loop sleeps between requests.
 */
static bool is_busy(const heddle_sockets *sockets, int64_t now)
{
    return now - sockets->loop->watch.awake_since >= HEDDLE_WORK_SHARING_AFTER &&
           (sockets->runners.serving_count || heddle_rounds_count_waiting(sockets));
}

/*
 * Returns whether handoffs are on and this process has a single loop. With several loops no work is shared, because a
 * worker's slot in the scoreboard does not show which of its loops is idle.
 */
static bool is_enabled(const heddle_sockets *sockets)
{
    return sockets->handoff.on && (heddle_watch_purposes() & HEDDLE_WATCH_HANDOFF) && heddle_watch_count_rescues() == 1;
}

/*
 * Returns whether another worker could serve the item sooner: its loop is idle, or, while this worker's gate is closed,
 * its queue is shorter. Without the second case, the clients of some workers would wait longer than those of others.
 */
static bool has_taker(const heddle_sockets *sockets)
{
    const heddle_balance *balance = &sockets->balance;
    return heddle_scoreboard_has_sleeper(balance->scoreboard, balance->slot) ||
           (sockets->gate.closed && heddle_scoreboard_has_shorter_queue(balance->scoreboard, balance->slot));
}

bool heddle_work_share(heddle_sockets *sockets, heddle_work *work, int64_t now)
{
    heddle_connection *connection = work->connection;
    heddle_handoff *handoff = &sockets->handoff;
    if (!handoff->on || now - handoff->shared_at < HEDDLE_WORK_SHARING_AFTER || !is_busy(sockets, now))
        return false;
    if (!is_enabled(sockets) || heddle_transport_owner(&connection->transport) != HEDDLE_OWNER_AT_REST ||
        !has_taker(sockets) || heddle_balance_blocks_a_worker(sockets, work))
        return false;
    if (!heddle_connection_acquire(connection) ||
        heddle_connection_hand_off(connection, handoff->socket, heddle_clock_now()) != 0)
        return false;
    handoff->shared_at = now;
    atomic_fetch_add_explicit(&handoff->sent_count, 1, memory_order_relaxed);
    return true;
}
