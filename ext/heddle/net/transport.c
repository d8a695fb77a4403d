/* The transport without TLS: see transport.h. */

#include "net/transport.h"

#include <sched.h>
#include <sys/socket.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* on macOS SO_NOSIGPIPE is set when the socket is accepted */
#endif

bool heddle_transport_swap_wire(heddle_transport *transport)
{
    for (;;) {
        uint8_t before = HEDDLE_WIRE_OPEN;
        if (atomic_compare_exchange_strong(&transport->wire, &before, HEDDLE_WIRE_PRIVATE))
            return true;
        if (before == HEDDLE_WIRE_PRIVATE)
            return false;
        sched_yield();
    }
}

static ssize_t plain_recv(heddle_transport *transport, void *memory, size_t size)
{
    ssize_t result;
    HEDDLE_RETRY(result, recv(transport->fd, memory, size, MSG_DONTWAIT));
    return result >= 0 ? result : errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

static ssize_t plain_send(heddle_transport *transport, const struct iovec *pieces, int count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)count};
    ssize_t result;
    /* For a single piece, send is cheaper than sendmsg. */
    HEDDLE_RETRY(result, count == 1
                             ? send(transport->fd, pieces->iov_base, pieces->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
                             : sendmsg(transport->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
    return result >= 0 ? result : errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

static size_t plain_pending(heddle_transport *transport)
{
    return 0;
}

void heddle_transport_will_reset(heddle_transport *transport)
{
    struct linger at_once = {.l_onoff = 1};
    /* has no effect on a Unix socket */
    setsockopt(transport->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

const heddle_transport_operations heddle_plain_transport = {
    .recv = plain_recv,
    .send = plain_send,
    .pending = plain_pending,
};
