#include "net/sockets.h"

/*
 * The event set for systems without epoll. Each connection has two waiters, one for each direction, and each listener
 * has one waiter. While an event is wanted, its waiter is armed in the loop's selector, for one event.
 */

static uint8_t events_of(heddle_direction direction)
{
    return direction == HEDDLE_READING ? HEDDLE_HAS_INPUT : HEDDLE_HAS_ROOM;
}

static void selector_set_want(heddle_event_set *set, heddle_connection *connection, heddle_direction direction)
{
    heddle_waiter *waiter = &connection->waiters[direction];
    if (waiter->armed)
        return;
    int result = heddle_loop_arm(set->sockets->loop, waiter);
    if (result == 0)
        return;
    /*
     * The event has come at once, or the waiter could not be armed. In both cases the event is delivered only in the
     * next tick, because the delivery may free the connection, which the caller still uses.
     */
    heddle_transport_note(&connection->transport, result < 0 ? HEDDLE_BROKEN : events_of(direction));
    connection->event_pending = set->unfinished = true;
    heddle_sockets_schedule_resume(set->sockets);
}

static void deliver_event(heddle_waiter *waiter, heddle_direction direction, int result, uint32_t flags)
{
    heddle_connection *connection =
        (heddle_connection *)((char *)(waiter - direction) - offsetof(heddle_connection, waiters));
    heddle_sockets *sockets = connection->sockets;
    if (!(flags & HEDDLE_COMPLETION))
        heddle_loop_count_disarmed(sockets->loop);
    uint8_t ready = events_of(direction);
    heddle_sockets_deliver_event(sockets, connection, result < 0 ? ready | HEDDLE_BROKEN : ready);
}

static void note_readable(heddle_waiter *waiter, int result, uint32_t flags)
{
    deliver_event(waiter, HEDDLE_READING, result, flags);
}

static void note_writable(heddle_waiter *waiter, int result, uint32_t flags)
{
    deliver_event(waiter, HEDDLE_WRITING, result, flags);
}

static void note_acceptable(heddle_waiter *waiter, int result, uint32_t flags)
{
    heddle_listener *listener = (heddle_listener *)((char *)waiter - offsetof(heddle_listener, waiter));
    heddle_sockets *sockets = listener->sockets;
    if (!(flags & HEDDLE_COMPLETION))
        heddle_loop_count_disarmed(sockets->loop);
    /* If clients are left in the kernel's queue, arming the descriptor reports them again. */
    heddle_listeners_accept(sockets);
    if (!sockets->paused)
        heddle_listeners_rearm(sockets);
}

static int selector_set_open(heddle_event_set *set)
{
    return 0;
}

static void selector_set_close(heddle_event_set *set)
{
}

static int selector_set_add(heddle_event_set *set, heddle_connection *connection)
{
    int fd = connection->transport.fd;
    connection->waiters[HEDDLE_READING] = (heddle_waiter){.fn = note_readable, .fd = fd, .events = HEDDLE_READABLE};
    connection->waiters[HEDDLE_WRITING] = (heddle_waiter){.fn = note_writable, .fd = fd, .events = HEDDLE_WRITABLE};
    return 0;
}

static void selector_set_remove(heddle_event_set *set, heddle_connection *connection, bool closing)
{
    heddle_loop *loop = set->sockets->loop;
    if (heddle_loop_is_closed(loop))
        return;
    heddle_loop_disarm(loop, &connection->waiters[HEDDLE_READING]);
    heddle_loop_disarm(loop, &connection->waiters[HEDDLE_WRITING]);
}

static int selector_set_listen(heddle_event_set *set, heddle_listener *listener)
{
    if (listener->waiter.armed)
        return 0;
    listener->waiter = (heddle_waiter){.fn = note_acceptable, .fd = listener->fd, .events = HEDDLE_READABLE};
    int result = heddle_loop_arm(set->sockets->loop, &listener->waiter);
    if (result > 0)
        note_acceptable(&listener->waiter, result, HEDDLE_COMPLETION);
    return result < 0 ? result : 0;
}

static void selector_set_unlisten(heddle_event_set *set, heddle_listener *listener, bool closed)
{
    if (!heddle_loop_is_closed(set->sockets->loop))
        heddle_loop_disarm(set->sockets->loop, &listener->waiter);
}

static void selector_set_resume(heddle_event_set *set)
{
    heddle_sockets *sockets = set->sockets;
    if (!set->unfinished)
        return;
    set->unfinished = false;
    for (uint32_t i = 0; i < sockets->slot_count; i++) {
        heddle_connection *connection = sockets->slots[i].connection;
        if (!connection || !connection->event_pending)
            continue;
        connection->event_pending = false;
        heddle_sockets_deliver_event(sockets, connection, atomic_load(&connection->transport.ready));
    }
}

const heddle_event_set_operations heddle_selector_set = {
    .waiters = 2,
    .hides_input_end = true,
    .open = selector_set_open,
    .close = selector_set_close,
    .abandon = selector_set_close,
    .add = selector_set_add,
    .remove = selector_set_remove,
    .want = selector_set_want,
    .listen = selector_set_listen,
    .unlisten = selector_set_unlisten,
    .resume = selector_set_resume,
};
