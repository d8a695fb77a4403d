#include "net/work_sharing.h"

#include "net/sockets.h"

/*
 * May another item go now? The scoreboard shows an item that was sent only when the other worker has received it. Until
 * then it would show free room, so the items sent within one step of the coarse clock are subtracted here.
 */
static bool is_room_left(const heddle_handoff *handoff, uint32_t room, int64_t now)
{
    return (now == handoff->shared_at ? handoff->shared : 0) < room;
}

static void count_shared(heddle_handoff *handoff, int64_t now)
{
    handoff->shared = now == handoff->shared_at ? handoff->shared + 1 : 1;
    handoff->shared_at = now;
    atomic_fetch_add_explicit(&handoff->given, 1, memory_order_relaxed);
}

/* Has the item the label of a request that holds up a worker now? It would hold up the next one: see handoff.c. */
static bool is_held_back(const heddle_sockets *sockets, const heddle_work *work)
{
    uint32_t (*label)(const heddle_work *) = work->operations->label;
    return label && heddle_scoreboard_holds_up(sockets->balance.scoreboard, label(work));
}

static bool is_enabled(const heddle_sockets *sockets)
{
    return sockets->handoff.on && (heddle_watch_purposes() & HEDDLE_WATCH_HANDOFF);
}

static bool hand_off(heddle_sockets *sockets, heddle_work *work, int64_t now)
{
    if (is_held_back(sockets, work) || heddle_connection_hand_off(work->connection, sockets->handoff.socket) != 0)
        return false;
    count_shared(&sockets->handoff, now);
    return true;
}

bool heddle_work_share_busy(heddle_sockets *sockets, heddle_work *work, int64_t now)
{
    heddle_connection *connection = work->connection;
    const heddle_balance *balance = &sockets->balance;
    if (!sockets->handoff.on || now == sockets->handoff.shared_at ||
        now - sockets->loop->watch.awake_since < HEDDLE_WORK_SHARING_AFTER)
        return false;
    return is_enabled(sockets) && heddle_transport_owner(&connection->transport) == HEDDLE_OWNER_AT_REST &&
           heddle_scoreboard_has_sleeper(balance->scoreboard, balance->slot) &&
           is_room_left(&sockets->handoff, 1, now) && heddle_connection_acquire(connection) &&
           hand_off(sockets, work, now);
}

bool heddle_work_shared_lately(const heddle_sockets *sockets)
{
    return heddle_clock_coarse() - sockets->handoff.shared_at < HEDDLE_WORK_SHARING_PATIENCE;
}

bool heddle_work_share_waiting(heddle_sockets *sockets, heddle_work *work)
{
    const heddle_balance *balance = &sockets->balance;
    if (!is_enabled(sockets) || work->list || !heddle_handoff_may_send(work->connection))
        return false;
    int64_t now = heddle_clock_coarse();
    uint32_t room = heddle_scoreboard_count_room(balance->scoreboard, balance->slot, now);
    return is_room_left(&sockets->handoff, room, now) && hand_off(sockets, work, now);
}
