#pragma once

/* The socket of a Ruby object that belongs to no loop. A forked child can't use this socket. */

#include "net/fork_guard.h"

#include <ruby.h>

typedef struct {
    VALUE io;                /* the Ruby IO that owns the descriptor; nil after the object was closed */
    int fd;
    heddle_fork_guard guard; /* in a forked child, replaces the descriptor with /dev/null */
    bool abandoned;          /* this process is a forked child, and the socket belongs to its parent */
} heddle_owned_socket;

void heddle_owned_socket_adopt(heddle_owned_socket *socket, VALUE io);
/* Marks the object as closed. The caller closes the IO or returns it. May be called repeatedly. */
void heddle_owned_socket_release(heddle_owned_socket *socket);

static inline bool heddle_owned_socket_is_open(const heddle_owned_socket *socket)
{
    return !NIL_P(socket->io) && !socket->abandoned;
}

/* Raises IOError unless the socket is open. `what` names the object in the message. */
void heddle_owned_socket_check(const heddle_owned_socket *socket, const char *what);
