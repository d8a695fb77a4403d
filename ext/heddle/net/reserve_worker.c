/* The reserve: a standby worker, which serves only while all other workers are blocked. See reserve_worker.h. */

#include "net/sockets.h"

/* -- deferred requests -------------------------------------------------------------------------------------------- */

bool heddle_reserve_defer(heddle_sockets *sockets, heddle_work *work)
{
    heddle_reserve *reserve = &sockets->reserve;
    if (!heddle_balance_blocks_a_worker(sockets, work))
        return false;
    if (!heddle_admission_reject_full(sockets, work, reserve->deferred.count, 0))
        heddle_ready_list_add(&reserve->deferred, work, false);
    return true;
}

/*
 * Hands off a deferred request to a running worker, or queues it here if its connection can't be handed off. If the
 * handoff socket is full or broken, defers the request again and returns false.
 */
static bool return_to_workers(heddle_sockets *sockets, heddle_work *work)
{
    heddle_connection *connection = work->connection;
    bool stays = connection->running || connection->protocol->stays;
    int result = stays ? -EBUSY : heddle_connection_hand_off(connection, sockets->handoff.socket, 0);
    if (result == 0)
        return true;
    /* The connection is being served, has unsent output, uses TLS, or has too much buffered input. */
    if (result == -EBUSY || result == -EOPNOTSUPP) {
        heddle_sockets_queue(sockets, work, false);
        return true;
    }
    heddle_ready_list_add(&sockets->reserve.deferred, work, false);
    return false;
}

static void release_deferred(heddle_sockets *sockets, bool (*dispose)(heddle_sockets *, heddle_work *))
{
    for (size_t count = sockets->reserve.deferred.count; count > 0; count--) {
        heddle_work *work = heddle_ready_list_take_first(&sockets->reserve.deferred);
        if (!work)
            return;
        if (heddle_connection_acquire(work->connection) && !dispose(sockets, work))
            return;
    }
}

static bool serve_here(heddle_sockets *sockets, heddle_work *work)
{
    heddle_sockets_queue(sockets, work, false);
    return true;
}

/* -- activation --------------------------------------------------------------------------------------------------- */

static void start_serving(heddle_sockets *sockets)
{
    sockets->reserve.serves = true;
    sockets->reserve.activations++;
    heddle_listeners_resume(sockets, HEDDLE_PAUSED_RESERVE);
}

static void stop_serving(heddle_sockets *sockets)
{
    sockets->reserve.serves = false;
    heddle_listeners_pause(sockets, HEDDLE_PAUSED_RESERVE);
}

/* Hands off this reserve's connections to the workers, at least one of which runs again. */
static void return_connections(heddle_sockets *sockets)
{
    if (sockets->handoff.socket < 0)
        return;
    release_deferred(sockets, return_to_workers);
    /* connections that can't be handed off now are handed off at the next check */
    heddle_handoff_send_idle(sockets, sockets->handoff.socket);
}

static void check_again(heddle_timer *timer)
{
    heddle_reserve_check(HEDDLE_CONTAINER_OF(timer, heddle_sockets, reserve.again));
}

static void schedule_check(heddle_sockets *sockets, int64_t time)
{
    heddle_timer *timer = &sockets->reserve.again;
    heddle_timer_heap_remove(&sockets->loop->timers, timer);
    timer->fn = check_again;
    timer->deadline = time;
    /* if there is no memory for the timer, the next notification leads to a check, and vice versa */
    heddle_timer_heap_push(&sockets->loop->timers, timer);
}

void heddle_reserve_check(heddle_sockets *sockets)
{
    heddle_reserve *reserve = &sockets->reserve;
    if (!reserve->rank || !sockets->balance.slot || sockets->closed)
        return;
    int64_t now = heddle_clock_now();
    int64_t due =
        heddle_scoreboard_reserve_due(sockets->balance.scoreboard, sockets->balance.slot, HEDDLE_RESERVE_AFTER);
    if (due <= now && !reserve->serves)
        start_serving(sockets);
    else if (due == INT64_MAX && reserve->serves)
        stop_serving(sockets);
    if (due == INT64_MAX && sockets->connections)
        return_connections(sockets);
    if (due > now && due < INT64_MAX)
        schedule_check(sockets, due);
    else if (reserve->serves)
        schedule_check(sockets, now + HEDDLE_RESERVE_CHECK_INTERVAL);
    else if (sockets->connections || !sockets->balance.notification.armed)
        schedule_check(sockets, now + HEDDLE_RESERVE_RETURN_INTERVAL);
}

void heddle_reserve_enable(heddle_sockets *sockets, uint32_t rank)
{
    sockets->reserve.rank = rank;
    heddle_listeners_pause(sockets, HEDDLE_PAUSED_RESERVE);
}

void heddle_reserve_disable(heddle_sockets *sockets)
{
    heddle_reserve *reserve = &sockets->reserve;
    if (!reserve->rank)
        return;
    reserve->rank = 0;
    reserve->serves = false;
    if (!heddle_loop_is_closed(sockets->loop))
        heddle_timer_heap_remove(&sockets->loop->timers, &reserve->again);
    release_deferred(sockets, serve_here);
}
