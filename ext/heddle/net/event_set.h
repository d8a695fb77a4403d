#pragma once

/*
 * How the loop gets the events of its connections and listeners. There are two implementations: an epoll set, whatever
 * the loop's selector is; and, on systems without epoll, one-shot waiters in the loop's selector.
 */

#include "net/connection.h"

#ifdef __linux__
#include <sys/epoll.h>
#endif

typedef struct heddle_listener heddle_listener;
typedef struct heddle_event_set heddle_event_set;

typedef struct {
    size_t waiters;   /* how many waiters each connection has */
    bool hides_input_end; /* it reports an end of input as ordinary input */
    bool watchable;       /* the watch thread can harvest its events: connections_fd is an epoll set */

    int (*open)(heddle_event_set *set); /* 0 or -errno */
    /* Ends all reports. Connections and listeners were removed before, or belong to a parent process. */
    void (*close)(heddle_event_set *set);
    /* In a forked child, where mutexes may be locked: only closes descriptors. */
    void (*abandon)(heddle_event_set *set);

    int (*add)(heddle_event_set *set, heddle_connection *connection);
    /* `closing`: the descriptor is about to be closed. Otherwise it stays open for another user. */
    void (*remove)(heddle_event_set *set, heddle_connection *connection, bool closing);
    /* Called before a fiber waits in this direction. */
    void (*want)(heddle_event_set *set, heddle_connection *connection, heddle_direction direction);

    int (*listen)(heddle_event_set *set, heddle_listener *listener);
    /* `closed`: the program has closed the socket, so its number may already belong to another file. */
    void (*unlisten)(heddle_event_set *set, heddle_listener *listener, bool closed);

    /* Continues with events that were left over when a tick's share was used up. */
    void (*resume)(heddle_event_set *set);
} heddle_event_set_operations;

struct heddle_event_set {
    const heddle_event_set_operations *operations;
    heddle_sockets *sockets;
    int connections_fd, listeners_fd; /* epoll sets */
    heddle_waiter connections_waiter, listeners_waiter;
    bool unfinished; /* the last harvest has used up its share */
    bool unaccepted; /* the last accepting has used up its share */
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
