/*
 * Balances new connections between workers by the scoreboard (the shared memory with the load of each worker): see
 * balance.h.
 */

#include "net/sockets.h"

void heddle_balance_show_accepting(heddle_sockets *sockets)
{
    heddle_balance *balance = &sockets->balance;
    if (!balance->slot)
        return;
    bool open = sockets->listeners, accepting = open && !(sockets->paused & ~HEDDLE_PAUSED_LOADED);
    HEDDLE_SCOREBOARD_ADD(balance->slot->accepting, accepting - balance->accepting);
    HEDDLE_SCOREBOARD_ADD(balance->slot->open, open - balance->open);
    balance->accepting = accepting;
    balance->open = open;
}

bool heddle_balance_should_defer(heddle_sockets *sockets)
{
    heddle_balance *balance = &sockets->balance;
    return balance->slot &&
           heddle_scoreboard_has_less_loaded(balance->scoreboard, balance->slot, heddle_clock_coarse());
}

bool heddle_balance_blocks_a_worker(const heddle_sockets *sockets, const heddle_work *work)
{
    uint32_t (*label)(const heddle_work *) = work->operations->label;
    return label && heddle_scoreboard_label_blocks(sockets->balance.scoreboard, label(work));
}

void heddle_balance_try_resume(heddle_sockets *sockets)
{
    if ((sockets->paused & HEDDLE_PAUSED_LOADED) && !heddle_balance_should_defer(sockets))
        heddle_listeners_resume(sockets, HEDDLE_PAUSED_LOADED);
}

static void schedule_check(heddle_sockets *sockets);

static void check_again(heddle_timer *timer)
{
    heddle_sockets *sockets = HEDDLE_CONTAINER_OF(timer, heddle_sockets, balance.again);
    heddle_balance_try_resume(sockets);
    /*
     * Without handoff (handoff.c), a worker that gets stuck notifies no other worker. So a worker that has stopped
     * accepting checks the scoreboard regularly.
     */
    if (sockets->paused & HEDDLE_PAUSED_LOADED)
        schedule_check(sockets);
}

static void schedule_check(heddle_sockets *sockets)
{
    heddle_timer *timer = &sockets->balance.again;
    if (timer->slot)
        return;
    timer->fn = check_again;
    timer->deadline = heddle_deadline_after(HEDDLE_BALANCE_CHECK_INTERVAL);
    if (heddle_timer_heap_push(&sockets->loop->timers, timer) != 0)
        /* without a timer nothing would end the pause */
        heddle_listeners_resume(sockets, HEDDLE_PAUSED_LOADED);
}

void heddle_balance_stop_accepting(heddle_sockets *sockets)
{
    heddle_listeners_pause(sockets, HEDDLE_PAUSED_LOADED);
    schedule_check(sockets);
    heddle_scoreboard_notify(sockets->balance.scoreboard);
}

static void wake_pool_follower(heddle_sockets *sockets)
{
    heddle_balance *balance = &sockets->balance;
    if (!balance->slot || !balance->pool_follower)
        return;
    uint32_t changes = atomic_load(&balance->scoreboard->header->pool_changes);
    if (changes == balance->pool_changes)
        return;
    balance->pool_changes = changes;
    heddle_park *park = heddle_park_find(sockets->loop, balance->pool_follower);
    if (park)
        heddle_park_wake(park);
}

static void handle_notification(heddle_waiter *waiter, int result, uint32_t flags)
{
    heddle_sockets *sockets = HEDDLE_CONTAINER_OF(waiter, heddle_sockets, balance.notification);
    /* select is level-triggered: it would report the eventfd again and again until a read resets its counter */
    if (sockets->loop->operations == &heddle_select_operations) {
        uint64_t count;
        if (read(waiter->fd, &count, sizeof(count)) < 0)
            count = 0; /* another process has read the counter first */
    }
    if (!(flags & HEDDLE_MORE)) {
        heddle_loop_count_disarmed(sockets->loop);
        if (result > 0)
            heddle_loop_arm(sockets->loop, waiter);
    }
    heddle_balance_try_resume(sockets);
    heddle_reserve_check(sockets);
    wake_pool_follower(sockets);
}

void heddle_balance_join(heddle_sockets *sockets, VALUE object, const heddle_scoreboard *scoreboard, uint32_t slot)
{
    heddle_balance *balance = &sockets->balance;
    balance->object = object;
    balance->scoreboard = scoreboard;
    balance->slot = &scoreboard->slots[slot];
    HEDDLE_SCOREBOARD_SET(balance->slot->pid, (uint32_t)getpid());
    if (!sockets->loop->watch.published_tick) {
        sockets->loop->watch.published_tick = &balance->slot->tick_began;
        balance->publishes_ticks = true;
    }
    if (scoreboard->notify_fd >= 0) {
        balance->notification = (heddle_waiter){
            .fn = handle_notification, .fd = scoreboard->notify_fd,
            .events = HEDDLE_READABLE, .mode = HEDDLE_PERSISTENT};
        /* if this fails for lack of memory, the worker notices changes only when its timers read the scoreboard */
        heddle_loop_arm(sockets->loop, &balance->notification);
    }
    HEDDLE_SCOREBOARD_SET(balance->slot->reserve, sockets->reserve.rank);
    heddle_balance_show_accepting(sockets);
    heddle_reserve_check(sockets);
}

void heddle_balance_leave(heddle_sockets *sockets)
{
    heddle_balance *balance = &sockets->balance;
    if (!balance->slot)
        return;
    heddle_handoff_end(sockets); /* the handoff of connections uses the scoreboard's slot, too */
    if (balance->publishes_ticks)
        sockets->loop->watch.published_tick = NULL;
    HEDDLE_SCOREBOARD_ADD(balance->slot->accepting, -balance->accepting);
    HEDDLE_SCOREBOARD_ADD(balance->slot->open, -balance->open);
    if (balance->publishes_ticks)
        HEDDLE_SCOREBOARD_SET(balance->slot->tick_began, 0);
    if (!heddle_loop_is_closed(sockets->loop)) {
        heddle_loop_disarm(sockets->loop, &balance->notification);
        heddle_timer_heap_remove(&sockets->loop->timers, &balance->again);
    }
    balance->slot = NULL;
    balance->accepting = balance->open = false;
}

/* Called in a forked child: the slot belongs to the parent. */
void heddle_balance_abandon(heddle_sockets *sockets)
{
    if (sockets->balance.publishes_ticks)
        sockets->loop->watch.published_tick = NULL;
    sockets->balance.slot = NULL;
}
