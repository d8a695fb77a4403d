/*
 * Time limits (heddle_due) of connections, exchanges and so on. A heddle_sockets keeps all its time limits in one heap,
 * and sets a single timer of the loop for the earliest of them.
 */

#include "net/sockets.h"

enum {
    DUE_A_TICK = 256, /* the maximum number of time limits that are handled in one tick; each takes 10 us or less */
};

static void set_timer(heddle_sockets *sockets)
{
    heddle_timer *timer = &sockets->deadline_timer;
    int64_t next = heddle_timer_heap_next(&sockets->deadlines);
    if (next < 0 || (timer->slot && timer->deadline <= next))
        return;
    heddle_timer_heap_remove(&sockets->loop->timers, timer);
    int64_t now = heddle_clock_now();
    timer->deadline = next > now ? next : now; /* an overdue limit expires in the next tick */
    /* If memory is exhausted, no time limit expires until a later heddle_due_set calls this function again. */
    (void)heddle_timer_heap_push(&sockets->loop->timers, timer);
}

void heddle_due_set(heddle_sockets *sockets, heddle_due *due, int64_t at)
{
    int64_t deadline = heddle_add_duration(at - at % HEDDLE_DUE_INTERVAL, HEDDLE_DUE_INTERVAL);
    due->at = at;
    /*
     * The timer may keep an earlier deadline. When that deadline passes, the timer is set to the new one. Each request
     * makes its connection's deadline later, so otherwise the heap would change for each request.
     */
    if (at < 0 || (due->timer.slot && due->timer.deadline <= deadline))
        return;
    heddle_due_remove(sockets, due);
    due->timer.deadline = deadline;
    (void)heddle_timer_heap_push(&sockets->deadlines, &due->timer); /* if memory is exhausted, there is no limit */
    set_timer(sockets);
}

void heddle_due_remove(heddle_sockets *sockets, heddle_due *due)
{
    heddle_timer_heap_remove(&sockets->deadlines, &due->timer);
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

static void expire_first(heddle_sockets *sockets, int64_t now)
{
    heddle_due *due = HEDDLE_CONTAINER_OF(sockets->deadlines.entries[0], heddle_due, timer);
    heddle_due_remove(sockets, due);
    if (due->at < 0 || due->at > now) {
        heddle_due_set(sockets, due, due->at);
        return;
    }
    due->at = -1;
    due->passed(due);
}

static void expire_deadlines(heddle_timer *timer)
{
    heddle_sockets *sockets = HEDDLE_CONTAINER_OF(timer, heddle_sockets, deadline_timer);
    heddle_timer_heap *deadlines = &sockets->deadlines;
    int64_t now = heddle_clock_now();
    for (int i = 0; i < DUE_A_TICK && deadlines->count && heddle_timer_heap_next(deadlines) <= now; i++)
        expire_first(sockets, now);
    set_timer(sockets);
}

void heddle_deadlines_start(heddle_sockets *sockets)
{
    sockets->deadline_timer.fn = expire_deadlines;
}
