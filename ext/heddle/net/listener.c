/* Accepts connections from listening sockets: see listener.h. */

#include "net/listener.h"

#include "net/sockets.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <ruby/io.h>
#include <sys/socket.h>

typedef union {
    struct sockaddr any;
    struct sockaddr_storage storage;
} socket_address;

/* -- arming ------------------------------------------------------------------------------------------------------ */

static int arm_listener(heddle_listener *listener)
{
    heddle_event_set *set = &listener->sockets->set;
    int result = listener->armed ? 0 : set->operations->listen(set, listener);
    if (result == 0)
        listener->armed = true;
    return result;
}

/* Returns whether the application has closed the socket. If so, the descriptor's number may belong to another file. */
static bool is_closed(const heddle_listener *listener)
{
    return RTEST(rb_io_closed_p(listener->io));
}

static void disarm_listener(heddle_listener *listener)
{
    heddle_event_set *set = &listener->sockets->set;
    if (listener->armed)
        set->operations->unlisten(set, listener, is_closed(listener));
    listener->armed = false;
}

static void drop_listener(heddle_listener **link)
{
    heddle_listener *listener = *link;
    *link = listener->next;
    disarm_listener(listener);
    free(listener);
}

void heddle_listeners_pause(heddle_sockets *sockets, uint8_t reason)
{
    sockets->paused |= reason;
    heddle_balance_show_accepting(sockets);
    for (heddle_listener *listener = sockets->listeners; listener; listener = listener->next)
        disarm_listener(listener);
}

static void arm_all(heddle_sockets *sockets);

void heddle_listeners_rearm(heddle_sockets *sockets)
{
    for (heddle_listener *listener = sockets->listeners; listener; listener = listener->next)
        listener->armed = listener->waiter.armed;
    arm_all(sockets);
}

void heddle_listeners_resume(heddle_sockets *sockets, uint8_t reason)
{
    if (!(sockets->paused & reason))
        return;
    sockets->paused &= (uint8_t)~reason;
    heddle_balance_show_accepting(sockets);
    if (!sockets->paused)
        arm_all(sockets);
}

static void arm_all(heddle_sockets *sockets)
{
    for (heddle_listener **link = &sockets->listeners; *link;) {
        if (is_closed(*link)) {
            drop_listener(link);
        } else if (arm_listener(*link) < 0) {
            heddle_listeners_pause_for(sockets, HEDDLE_PAUSED_BACK_OFF, HEDDLE_ACCEPT_BACK_OFF);
            return;
        } else {
            link = &(*link)->next;
        }
    }
}

static bool is_client_waiting(const heddle_sockets *sockets)
{
    for (const heddle_listener *listener = sockets->listeners; listener; listener = listener->next) {
        struct pollfd waiting = {.fd = listener->fd, .events = POLLIN};
        if (!is_closed(listener) && poll(&waiting, 1, 0) > 0)
            return true;
    }
    return false;
}

/*
 * Ends a pause. If this worker is full and a client still waits, closes idle connections to make room. (During the
 * pause, another worker may have accepted the client.)
 */
static void resume_after_pause(heddle_timer *timer)
{
    heddle_sockets *sockets = HEDDLE_CONTAINER_OF(timer, heddle_sockets, back_off);
    heddle_listeners_resume(sockets, HEDDLE_PAUSED_BACK_OFF);
    if (!(sockets->paused & HEDDLE_PAUSED_FULL))
        return;
    bool waits = sockets->paused == HEDDLE_PAUSED_FULL && is_client_waiting(sockets);
    if (waits)
        heddle_sockets_close_longest_idle(sockets);
    if (sockets->paused & HEDDLE_PAUSED_FULL)
        heddle_listeners_pause_for(sockets, HEDDLE_PAUSED_FULL, waits ? HEDDLE_FULL_BACK_OFF : HEDDLE_ACCEPT_BACK_OFF);
}

void heddle_listeners_pause_for(heddle_sockets *sockets, uint8_t reason, int64_t duration)
{
    heddle_timer *timer = &sockets->back_off;
    timer->fn = resume_after_pause;
    if (!timer->slot) {
        timer->deadline = heddle_deadline_after(duration);
        if (heddle_timer_heap_push(&sockets->loop->timers, timer) != 0 && reason == HEDDLE_PAUSED_BACK_OFF)
            return; /* without memory for the timer there is no pause: an armed listener tries again in the next tick */
    }
    heddle_listeners_pause(sockets, reason);
}

/* -- adding ------------------------------------------------------------------------------------------------------ */

/*
 * TCP keepalive: a peer that vanished without FIN or RST is detected after five minutes of silence and four probes.
 * This also works where no time limit applies: while a request runs, and on event streams. By default a WebSocket is
 * pinged long before that, so it gets no probes, which could wake a phone.
 */
enum {
    KEEPALIVE_IDLE = 300, /* seconds */
    KEEPALIVE_INTERVAL = 30,
    KEEPALIVE_PROBES = 4,
};

static void set_option(int fd, int level, int name, int value)
{
    /* errors are ignored, because connections also work without the option */
    (void)setsockopt(fd, level, name, &value, sizeof(value));
}

/* On Linux, accepted sockets inherit these options from the listener. */
static void set_tcp_options(int fd)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef TCP_KEEPIDLE
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE);
#elif defined(TCP_KEEPALIVE)
    set_option(fd, IPPROTO_TCP, TCP_KEEPALIVE, KEEPALIVE_IDLE);
#endif
#ifdef TCP_KEEPINTVL
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
#endif
}

void heddle_listener_add(heddle_sockets *sockets, VALUE io, VALUE acceptor, VALUE proxies, bool own_user)
{
    io = rb_io_get_io(io);
    int fd = rb_io_descriptor(io), listening = 0;
    socklen_t size = sizeof(listening);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || !listening)
        rb_raise(rb_eArgError, "%" PRIsVALUE " is not a listening socket: pass a TCPServer or UNIXServer",
                 rb_obj_class(io));
    int flags = fcntl(fd, F_GETFL);
    if (!(flags & O_NONBLOCK))
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);

    heddle_listener *listener = calloc(1, sizeof(*listener));
    if (!listener)
        rb_memerror();
    *listener = (heddle_listener){.sockets = sockets, .io = io, .acceptor = acceptor, .proxies = proxies, .fd = fd,
                                  .own_user = own_user, .local = heddle_address_of_socket(fd)};
    if (listener->local.family != AF_UNIX)
        set_tcp_options(fd);
    listener->next = sockets->listeners;
    sockets->listeners = listener;
    heddle_balance_show_accepting(sockets);
    int result = sockets->paused ? 0 : arm_listener(listener);
    if (result < 0) {
        sockets->listeners = listener->next;
        free(listener);
        rb_syserr_fail(-result, "listening");
    }
}

void heddle_listeners_remove_all(heddle_sockets *sockets)
{
    while (sockets->listeners)
        drop_listener(&sockets->listeners);
    heddle_balance_show_accepting(sockets);
}

/* -- addresses --------------------------------------------------------------------------------------------------- */

/*
 * Addresses are hashed to a fixed number of records, so several addresses may share a record and its limit. But even
 * with max_connections connections, a record counts only 1/2048 of them on average, and its limit is 1/4 of
 * max_connections. Clients can't choose their record, because the hash has a secret key.
 */
heddle_address_share *heddle_address_find_share(heddle_sockets *sockets, const heddle_address *address)
{
    bool mapped = address->family == AF_INET6 && IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)address->bytes);
    long size = address->family == AF_INET || mapped ? 4 : 8;
    return &sockets->by_address[(size_t)rb_memhash(address->bytes + (mapped ? 12 : 0), size) % HEDDLE_ADDRESS_BUCKETS];
}

uint16_t heddle_address_find_number(heddle_sockets *sockets, const heddle_address *address)
{
    if (!sockets->max_connections || (address->family != AF_INET && address->family != AF_INET6) ||
        heddle_networks_include(sockets->proxies, address))
        return 0;
    return (uint16_t)(heddle_address_find_share(sockets, address) - sockets->by_address + 1);
}

size_t heddle_address_limit(const heddle_sockets *sockets)
{
    size_t share = sockets->max_connections / HEDDLE_ADDRESS_SHARE;
    return share > HEDDLE_ADDRESS_LEAST ? share : HEDDLE_ADDRESS_LEAST;
}

bool heddle_address_count(heddle_sockets *sockets, heddle_connection *connection, size_t shares)
{
    uint16_t number = heddle_address_find_number(sockets, &connection->remote);
    if (!number)
        return true;
    heddle_address_share *share = &sockets->by_address[number - 1];
    if (share->connections >= shares * heddle_address_limit(sockets))
        return false;
    share->connections++;
    connection->address_bucket = number;
    return true;
}

void heddle_address_uncount(heddle_connection *connection)
{
    heddle_address_share *share = heddle_address_share_of(connection);
    if (share)
        share->connections--;
    connection->address_bucket = 0;
}

/* -- accepting --------------------------------------------------------------------------------------------------- */

static int accept_one(heddle_listener *listener, socket_address *address)
{
    socklen_t size = sizeof(*address);
    int fd;
    address->any.sa_family = AF_UNSPEC;
#ifdef HAVE_ACCEPT4
    HEDDLE_RETRY(fd, accept4(listener->fd, &address->any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
#else
    HEDDLE_RETRY(fd, accept(listener->fd, &address->any, &size));
#endif
    if (fd < 0)
        return -errno;
#ifndef HAVE_ACCEPT4
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
#endif
#ifdef SO_NOSIGPIPE
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
    if (listener->local.family == AF_UNIX)
        address->any.sa_family = AF_UNIX;
#ifndef __linux__
    else
        set_tcp_options(fd);
#endif
    return fd;
}

static bool is_own_user(int fd)
{
#ifdef SO_PEERCRED
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == geteuid() || peer.uid == 0);
#else
    return false;
#endif
}

static bool is_exhaustion(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ENOBUFS || error == -ENOSPC;
}

/* Returns whether this error makes the listener unusable. */
static bool is_fatal(int error)
{
    return error == -EBADF || error == -EINVAL || error == -ENOTSOCK || error == -EOPNOTSUPP;
}

/*
 * Accepts at most `*left` clients. Returns 0 after that many, or else the -errno that ended accepting: for example
 * -EAGAIN if no client waits, -EDQUOT if this worker is full, or -EBUSY if another worker has less to do.
 */
static int accept_from(heddle_sockets *sockets, heddle_listener *listener, int *left)
{
    while (*left > 0) {
        if (sockets->max_connections && sockets->connections >= sockets->max_connections)
            return -EDQUOT;
        if (heddle_balance_should_defer(sockets))
            return -EBUSY;
        socket_address address;
        int fd = accept_one(listener, &address);
        if (fd == -EAGAIN || fd == -EWOULDBLOCK || is_exhaustion(fd) || is_fatal(fd))
            return fd;
        (*left)--;
        if (fd < 0)
            continue; /* this client has left or a firewall rejects it; the next one may be acceptable */
        if (listener->own_user && !is_own_user(fd)) {
            close(fd);
            continue;
        }
        heddle_address remote = heddle_address_of(&address.any), local = listener->local;
        int result = heddle_sockets_add(sockets, fd, &remote, &local, listener);
        if (result < 0)
            close(fd);
        if (result == -EPERM) {
            sockets->refused++;
            continue;
        }
        if (result < 0)
            return result;
        sockets->accepted++;
        if (sockets->balance.slot)
            HEDDLE_SCOREBOARD_ADD(sockets->balance.slot->accepted, 1);
    }
    return 0;
}

/* Moves the first listener to the end, so that the clients of one listener can't delay those of another. */
static void rotate_listeners(heddle_sockets *sockets)
{
    heddle_listener *first = sockets->listeners, **end = &sockets->listeners;
    if (!first)
        return;
    *end = first->next;
    while (*end)
        end = &(*end)->next;
    *end = first;
    first->next = NULL;
}

bool heddle_listeners_accept(heddle_sockets *sockets)
{
    int left = HEDDLE_ACCEPTS_A_TURN;
    if (sockets->paused)
        return false;
    rotate_listeners(sockets);
    for (heddle_listener **link = &sockets->listeners; *link;) {
        heddle_listener *listener = *link;
        int result = is_closed(listener) ? -EBADF : accept_from(sockets, listener, &left);
        if (is_fatal(result)) {
            drop_listener(link);
            continue;
        }
        if (result == -EDQUOT) {
            heddle_listeners_pause_for(sockets, HEDDLE_PAUSED_FULL, HEDDLE_FULL_BACK_OFF);
            return false;
        }
        if (result == -EBUSY) {
            heddle_balance_stop_accepting(sockets);
            return false;
        }
        if (is_exhaustion(result)) {
            /* the listener remains readable, so without a pause the loop would spin */
            heddle_listeners_pause_for(sockets, HEDDLE_PAUSED_BACK_OFF, HEDDLE_ACCEPT_BACK_OFF);
            return !sockets->paused;
        }
        if (left == 0)
            return true;
        link = &listener->next;
    }
    return false;
}

void heddle_listeners_drain(heddle_sockets *sockets)
{
    heddle_reserve_disable(sockets);
    heddle_balance_leave(sockets);
    for (heddle_listener *listener = sockets->listeners; listener; listener = listener->next)
        disarm_listener(listener);
    /* A client that connects between the last accept and the close is lost, so nothing else happens in between. */
    for (heddle_listener *listener = sockets->listeners; listener; listener = listener->next) {
        int left = INT_MAX;
        if (!is_closed(listener))
            accept_from(sockets, listener, &left);
    }
    heddle_listeners_remove_all(sockets);
}
