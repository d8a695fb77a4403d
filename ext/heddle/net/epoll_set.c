#include "net/event_set.h"

#ifdef HAVE_SYS_EPOLL_H

#include "net/sockets.h"

#include <sys/epoll.h>

/*
 * The event set for systems with epoll. Connections are added once to an epoll set, edge-triggered; listeners are in a
 * second one. The loop's selector watches only the descriptors of these two sets. Any thread can read the events of the
 * connections. So the watch thread receives them while the loop is blocked.
 */

#ifndef EPOLLEXCLUSIVE
#define EPOLLEXCLUSIVE (1u << 28)
#endif

enum {
    EVENTS_PER_WAIT = 256,
    OTHER_EVENTS_PER_TICK = 1024, /* after this many events other than hang-ups, the rest waits for the next tick */
    EVENTS_PER_TICK = 8192,       /* the maximum number of events in all; most hang-ups are only queued (io_turns.h) */
};

static void harvest_events(heddle_event_set *set)
{
    struct epoll_event events[EVENTS_PER_WAIT];
    heddle_sockets *sockets = set->sockets;
    int others = 0;
    for (int all = 0; all < EVENTS_PER_TICK && others < OTHER_EVENTS_PER_TICK; all += EVENTS_PER_WAIT) {
        int count = epoll_wait(set->connections_fd, events, EVENTS_PER_WAIT, 0);
        for (int k = 0; k < count; k++) {
            heddle_connection *connection = heddle_sockets_at(sockets, events[k].data.u64);
            uint8_t ready = heddle_epoll_events(events[k].events);
            others += !(ready & HEDDLE_HANG_UP) || (connection && !connection->protocol);
            if (connection)
                heddle_sockets_deliver_event(sockets, connection, ready);
        }
        if (count < EVENTS_PER_WAIT)
            return;
    }
    /* The selector reports only changes, so it would not report the events that are still in the set. */
    set->unfinished = true;
    heddle_sockets_schedule_resume(sockets);
}

static void accept_all(heddle_event_set *set)
{
    if (heddle_listeners_accept(set->sockets)) {
        set->unaccepted = true;
        heddle_sockets_schedule_resume(set->sockets);
    }
}

static int watch_set(heddle_event_set *set, heddle_waiter *waiter, int fd, heddle_waiter_fn *handle)
{
    *waiter = (heddle_waiter){.fn = handle, .fd = fd, .events = HEDDLE_READABLE, .mode = HEDDLE_PERSISTENT};
    int result = heddle_loop_arm(set->sockets->loop, waiter);
    if (result > 0)
        waiter->fn(waiter, result, 0); /* some selectors report an event at once and do not arm the waiter */
    return result < 0 ? result : 0;
}

/*
 * Arms a persistent waiter again if the selector has disarmed it. io_uring disarms waiters when its completion queue
 * overflows.
 */
static void rearm_dropped(heddle_event_set *set, heddle_waiter *waiter, uint32_t flags)
{
    if (flags & HEDDLE_MORE)
        return;
    heddle_loop_count_disarmed(set->sockets->loop);
    heddle_loop_arm(set->sockets->loop, waiter);
}

static void handle_ready_connections(heddle_waiter *waiter, int result, uint32_t flags)
{
    heddle_event_set *set = HEDDLE_CONTAINER_OF(waiter, heddle_event_set, connections_waiter);
    rearm_dropped(set, waiter, flags);
    harvest_events(set);
}

static void handle_ready_listeners(heddle_waiter *waiter, int result, uint32_t flags)
{
    heddle_event_set *set = HEDDLE_CONTAINER_OF(waiter, heddle_event_set, listeners_waiter);
    rearm_dropped(set, waiter, flags);
    accept_all(set);
}

static void epoll_set_resume(heddle_event_set *set)
{
    bool unfinished = set->unfinished, unaccepted = set->unaccepted;
    set->unfinished = set->unaccepted = false;
    if (unfinished)
        harvest_events(set);
    if (unaccepted)
        accept_all(set);
}

static void close_descriptors(heddle_event_set *set)
{
    if (set->connections_fd >= 0)
        close(set->connections_fd);
    if (set->listeners_fd >= 0)
        close(set->listeners_fd);
    set->connections_fd = set->listeners_fd = -1;
}

static int epoll_set_open(heddle_event_set *set)
{
    set->connections_fd = epoll_create1(EPOLL_CLOEXEC);
    set->listeners_fd = epoll_create1(EPOLL_CLOEXEC);
    int result = set->connections_fd < 0 || set->listeners_fd < 0 ? -errno : 0;
    if (result == 0)
        result = watch_set(set, &set->connections_waiter, set->connections_fd, handle_ready_connections);
    if (result == 0) {
        result = watch_set(set, &set->listeners_waiter, set->listeners_fd, handle_ready_listeners);
        if (result < 0)
            heddle_loop_disarm(set->sockets->loop, &set->connections_waiter);
    }
    if (result < 0)
        close_descriptors(set);
    return result;
}

static void epoll_set_close(heddle_event_set *set)
{
    heddle_loop *loop = set->sockets->loop;
    if (!heddle_loop_is_closed(loop)) {
        heddle_loop_disarm(loop, &set->connections_waiter);
        heddle_loop_disarm(loop, &set->listeners_waiter);
    }
    close_descriptors(set);
}

static int epoll_set_add(heddle_event_set *set, heddle_connection *connection)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
        .data.u64 = heddle_sockets_identity(set->sockets, connection),
    };
    return epoll_ctl(set->connections_fd, EPOLL_CTL_ADD, connection->transport.fd, &event) == 0 ? 0 : -errno;
}

static void epoll_set_remove(heddle_event_set *set, heddle_connection *connection, bool closing)
{
    struct epoll_event event = {0};
    if (!closing) /* the kernel removes a closed descriptor from the set */
        epoll_ctl(set->connections_fd, EPOLL_CTL_DEL, connection->transport.fd, &event);
}

static void epoll_set_want(heddle_event_set *set, heddle_connection *connection, heddle_direction direction)
{
    /* nothing to do: the connection was registered for both directions when it was added */
}

static int epoll_set_listen(heddle_event_set *set, heddle_listener *listener)
{
    /*
     * Several processes may have this listener in their sets. With EPOLLEXCLUSIVE a new client wakes only some of them.
     */
    struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.ptr = listener};
    return epoll_ctl(set->listeners_fd, EPOLL_CTL_ADD, listener->fd, &event) == 0 ? 0 : -errno;
}

static void epoll_set_unlisten(heddle_event_set *set, heddle_listener *listener, bool closed)
{
    struct epoll_event event = {0};
    if (!closed)
        epoll_ctl(set->listeners_fd, EPOLL_CTL_DEL, listener->fd, &event);
}

const heddle_event_set_operations heddle_epoll_set = {
    .waiters = 0,
    .watchable = true,
    .open = epoll_set_open,
    .close = epoll_set_close,
    .abandon = close_descriptors,
    .add = epoll_set_add,
    .remove = epoll_set_remove,
    .want = epoll_set_want,
    .listen = epoll_set_listen,
    .unlisten = epoll_set_unlisten,
    .resume = epoll_set_resume,
};

#endif
