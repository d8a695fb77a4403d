#pragma once

/*
 * An event set delivers the events of a loop's connections and listeners. There are two implementations. On systems
 * with epoll it is an epoll set (epoll_set.c), whichever selector the loop uses. On other systems it consists of
 * one-shot waiters in the loop's selector (selector_set.c).
 */

#include "net/connection.h"

#ifdef __linux__
#include <sys/epoll.h>
#endif

typedef struct heddle_listener heddle_listener;
typedef struct heddle_event_set heddle_event_set;

typedef struct {
    size_t waiters;   /* the number of waiters that each connection has */
    bool hides_input_end; /* the event set reports the end of input as HEDDLE_HAS_INPUT */
    bool watchable;       /* the watch thread can read the events of connections: connections_fd is an epoll set */

    int (*open)(heddle_event_set *set); /* 0 or -errno */
    /* Closes the set. Its connections and listeners were removed before, or belong to a parent process. */
    void (*close)(heddle_event_set *set);
    /* Called in a forked child, where mutexes may be locked. So this only closes descriptors. */
    void (*abandon)(heddle_event_set *set);

    int (*add)(heddle_event_set *set, heddle_connection *connection);
    /* `closing`: the descriptor is about to be closed. Otherwise it remains open for another user. */
    void (*remove)(heddle_event_set *set, heddle_connection *connection, bool closing);
    /* Called before a fiber or a session waits for input or for room for output. */
    void (*want)(heddle_event_set *set, heddle_connection *connection, heddle_direction direction);

    int (*listen)(heddle_event_set *set, heddle_listener *listener);
    /* `closed`: the application has closed the socket, so the descriptor may already refer to another file. */
    void (*unlisten)(heddle_event_set *set, heddle_listener *listener, bool closed);

    /* Continues with the events and clients that the last tick did not get to: see `unfinished` and `unaccepted`. */
    void (*resume)(heddle_event_set *set);
} heddle_event_set_operations;

struct heddle_event_set {
    const heddle_event_set_operations *operations;
    heddle_sockets *sockets;
    int connections_fd, listeners_fd; /* two epoll sets; -1 in selector_set.c */
    heddle_waiter connections_waiter, listeners_waiter;
    /* events may be left: the last tick has reached its limit, or an event was reported at once (selector_set.c) */
    bool unfinished;
    bool unaccepted; /* the last call of heddle_listeners_accept has reached its limit, and clients may be left */
};

#ifdef __linux__
/* Converts the mask of an epoll event to HEDDLE_HAS_INPUT and so on. */
static inline uint8_t heddle_epoll_events(uint32_t mask)
{
    uint8_t ready = 0;
    if (mask & EPOLLIN)
        ready |= HEDDLE_HAS_INPUT;
    if (mask & EPOLLOUT)
        ready |= HEDDLE_HAS_ROOM;
    if (mask & EPOLLRDHUP)
        ready |= HEDDLE_INPUT_ENDS;
    if (mask & EPOLLHUP)
        ready |= HEDDLE_HUNG_UP;
    if (mask & EPOLLERR)
        ready |= HEDDLE_BROKEN;
    return ready;
}
#endif

extern const heddle_event_set_operations heddle_epoll_set;
extern const heddle_event_set_operations heddle_selector_set;
