/* Time limits: one timer wheel for all records of a Sockets. */

#include "net/sockets.h"

enum {
    DUE_A_TICK = 256, /* how many records are checked in one tick; each takes 10 us or less */
};

static void set_timer(heddle_sockets *sockets)
{
    heddle_timer *timer = &sockets->wheel_timer;
    int64_t next = heddle_idle_wheel_find_next(&sockets->wheel);
    if (next == 0)
        next = heddle_clock_now(); /* the timer expires in the next tick: this tick handles what was due before */
    if (next < 0 || (timer->slot && timer->deadline <= next))
        return;
    if (timer->slot)
        heddle_timer_heap_remove(&sockets->loop->timers, timer);
    timer->deadline = next;
    /* Without memory, time limits do not expire until another one is set: then this is tried again. */
    (void)heddle_timer_heap_push(&sockets->loop->timers, timer);
}

void heddle_due_set(heddle_sockets *sockets, heddle_due *due, int64_t at)
{
    due->at = at;
    if (at < 0)
        return; /* the new deadline is later than the slot's time, so the record need not move now */
    if (heddle_idle_wheel_has(&due->entry)) {
        if (due->entry.tick <= at / HEDDLE_IDLE_WHEEL_TICK + 1)
            return; /* the record moves when its present slot comes up */
        heddle_idle_wheel_remove(&sockets->wheel, &due->entry);
    }
    heddle_idle_wheel_add(&sockets->wheel, &due->entry, at);
    set_timer(sockets);
}

void heddle_due_remove(heddle_sockets *sockets, heddle_due *due)
{
    heddle_idle_wheel_remove(&sockets->wheel, &due->entry);
}

void heddle_connection_set_deadline(heddle_connection *connection, int64_t deadline)
{
    heddle_due_set(connection->sockets, &connection->due, deadline);
}

void heddle_connection_set_time_limit(heddle_connection *connection, int64_t duration)
{
    heddle_connection_set_deadline(connection,
                                   duration < 0 ? -1 : heddle_add_duration(heddle_clock_coarse(), duration));
}

void heddle_connection_handle_deadline(heddle_due *due)
{
    heddle_connection *connection = HEDDLE_CONTAINER_OF(due, heddle_connection, due);
    if (!heddle_connection_acquire(connection))
        return; /* another process has the connection */
    if (connection->protocol)
        connection->protocol->handle_deadline(connection);
    else
        heddle_sockets_close_idle(connection);
}

static int64_t check_deadline(heddle_idle_entry *entry, void *data)
{
    heddle_due *due = HEDDLE_CONTAINER_OF(entry, heddle_due, entry);
    if (due->at < 0 || due->at > *(int64_t *)data)
        return due->at;
    due->at = -1;
    due->passed(due);
    return -1; /* the callback may have freed the record, or put it into the wheel again */
}

static void advance_wheel(heddle_timer *timer)
{
    heddle_sockets *sockets = HEDDLE_CONTAINER_OF(timer, heddle_sockets, wheel_timer);
    int64_t now = heddle_clock_now();
    heddle_idle_wheel_advance(&sockets->wheel, now, DUE_A_TICK, check_deadline, &now);
    set_timer(sockets);
}

void heddle_deadlines_start(heddle_sockets *sockets)
{
    sockets->wheel_timer.fn = advance_wheel;
    heddle_idle_wheel_start(&sockets->wheel, heddle_clock_now());
}
