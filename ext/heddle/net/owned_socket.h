#pragma once

/* The Socket of an object that belongs to no loop. A forked child can't use it. */

#include "net/fork_guard.h"

#include <ruby.h>

typedef struct {
    VALUE io;                /* owns the descriptor; nil once closed */
    int fd;
    heddle_fork_guard guard; /* in a forked child, makes the descriptor refer to /dev/null */
    bool abandoned;          /* this is a forked child, and the socket is its parent's */
} heddle_owned_socket;

void heddle_owned_socket_adopt(heddle_owned_socket *socket, VALUE io);
/* From now on the object is closed. The caller closes the IO, or passes it on. Idempotent. */
void heddle_owned_socket_release(heddle_owned_socket *socket);

void heddle_owned_socket_mark(const heddle_owned_socket *socket);
void heddle_owned_socket_compact(heddle_owned_socket *socket);

static inline bool heddle_owned_socket_is_open(const heddle_owned_socket *socket)
{
    return !NIL_P(socket->io) && !socket->abandoned;
}

/* Raises IOError unless the socket is open. `what`: the name of the object in the message. */
void heddle_owned_socket_check(const heddle_owned_socket *socket, const char *what);
