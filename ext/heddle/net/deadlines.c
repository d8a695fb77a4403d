/* When a connection that nobody serves has to have done its next step. */

#include "net/sockets.h"

static void set_timer(heddle_sockets *sockets)
{
    heddle_timer *timer = &sockets->wheel_timer;
    int64_t next = heddle_idle_wheel_next(&sockets->wheel);
    if (next < 0 || (timer->place && timer->deadline <= next))
        return;
    if (timer->place)
        heddle_timer_heap_remove(&sockets->loop->timers, timer);
    timer->deadline = next;
    /* Without memory nothing is ended for being late; the next one that gets a deadline tries again. */
    (void)heddle_timer_heap_push(&sockets->loop->timers, timer);
}

void heddle_connection_due(heddle_connection *connection, int64_t deadline)
{
    heddle_sockets *sockets = connection->sockets;
    connection->deadline = deadline;
    if (deadline < 0)
        return; /* where it is in the wheel it may stay */
    if (heddle_idle_wheel_has(&connection->timed)) {
        if (connection->timed.tick <= deadline / HEDDLE_IDLE_WHEEL_TICK + 1)
            return; /* it finds out when its slot comes up */
        heddle_idle_wheel_remove(&sockets->wheel, &connection->timed);
    }
    heddle_idle_wheel_add(&sockets->wheel, &connection->timed, deadline);
    set_timer(sockets);
}

static int64_t look(heddle_idle_entry *entry, void *data)
{
    heddle_connection *connection = (heddle_connection *)((char *)entry - offsetof(heddle_connection, timed));
    uint8_t owner = heddle_transport_owner(&connection->transport);
    if (connection->deadline < 0 || owner == HEDDLE_OWNER_RUNNING)
        return -1; /* it gets another one when it rests */
    if (connection->deadline > *(int64_t *)data)
        return connection->deadline;
    if (!heddle_connection_hold(connection) || heddle_transport_owner(&connection->transport) != HEDDLE_OWNER_IDLE)
        return -1; /* it is another process's */
    if (connection->prelude)
        heddle_sockets_close_idle(connection);
    else
        connection->sockets->protocol->operations->expired(connection);
    return -1; /* if it lives on, it may be in the wheel again */
}

static void turn(heddle_timer *timer)
{
    heddle_sockets *sockets = (heddle_sockets *)((char *)timer - offsetof(heddle_sockets, wheel_timer));
    int64_t now = heddle_now();
    heddle_idle_wheel_advance(&sockets->wheel, now, look, &now);
    set_timer(sockets);
}

void heddle_deadlines_start(heddle_sockets *sockets)
{
    sockets->wheel_timer.fn = turn;
    heddle_idle_wheel_start(&sockets->wheel, heddle_now());
}
