#include "net/owned_socket.h"
#include "net/link.h"

#include <ruby/io.h>

static void in_child(heddle_fork_guard *guard)
{
    heddle_owned_socket *socket = HEDDLE_CONTAINER_OF(guard, heddle_owned_socket, guard);
    socket->abandoned = true;
    heddle_fork_guard_replace(socket->fd);
}

void heddle_owned_socket_adopt(heddle_owned_socket *socket, VALUE io)
{
    socket->io = io;
    socket->fd = rb_io_descriptor(io);
    socket->guard.in_child = in_child;
    heddle_fork_guard_add(&socket->guard);
}

void heddle_owned_socket_release(heddle_owned_socket *socket)
{
    heddle_fork_guard_remove(&socket->guard);
    socket->io = Qnil;
}

void heddle_owned_socket_check(const heddle_owned_socket *socket, const char *what)
{
    if (socket->abandoned)
        rb_raise(rb_eIOError, "this %s belongs to the parent process, which opened it", what);
    if (NIL_P(socket->io))
        rb_raise(rb_eIOError, "this %s is closed", what);
}
