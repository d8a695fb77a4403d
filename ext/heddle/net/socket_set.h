#ifndef HEDDLE_SOCKET_SET_H
#define HEDDLE_SOCKET_SET_H

/*
 * How the loop hears of its connections and listeners. Two implementations: an epoll set of its own, whatever the
 * selector, and, for systems without epoll, one-shot waiters of the loop's selector.
 */

#include "net/connection.h"

#ifdef __linux__
#include <sys/epoll.h>
#endif

typedef struct heddle_listener heddle_listener;
typedef struct heddle_socket_set heddle_socket_set;

typedef struct {
    const char *name;
    size_t waiters;   /* how many each connection brings along */
    bool hides_input_end; /* an end of input looks like any input */
    bool watchable;       /* the watch thread can harvest its events: connections_fd is an epoll set */

    int (*open)(heddle_socket_set *set); /* 0 or -errno */
    /* Nothing is heard of any more; connections and listeners were taken out before, or belong to a parent process. */
    void (*close)(heddle_socket_set *set);
    /* In a child after fork, maybe beside locked mutexes: only closes descriptors. */
    void (*abandon)(heddle_socket_set *set);

    int (*add)(heddle_socket_set *set, heddle_connection *connection);
    /* `closing`: its descriptor is about to be closed, else it lives on elsewhere. */
    void (*remove)(heddle_socket_set *set, heddle_connection *connection, bool closing);
    /* It is about to wait for this direction. */
    void (*want)(heddle_socket_set *set, heddle_connection *connection, heddle_direction direction);

    int (*listen)(heddle_socket_set *set, heddle_listener *listener);
    /* `closed`: its number may be another socket's by now. */
    void (*unlisten)(heddle_socket_set *set, heddle_listener *listener, bool closed);

    /* Goes on with what was left over when a turn's share was used up. */
    void (*resume)(heddle_socket_set *set);
} heddle_socket_set_operations;

struct heddle_socket_set {
    const heddle_socket_set_operations *operations;
    heddle_sockets *sockets;
    int connections_fd, listeners_fd; /* epoll */
    heddle_waiter connections_waiter, listeners_waiter;
    bool unfinished; /* the last harvest has used up its share */
    bool unaccepted; /* … and so has the last accepting */
};

#ifdef __linux__
/* HEDDLE_HAS_INPUT … of an epoll event. */
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

extern const heddle_socket_set_operations heddle_epoll_set;
extern const heddle_socket_set_operations heddle_selector_set;

#endif
