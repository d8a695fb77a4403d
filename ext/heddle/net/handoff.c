/* The handoff of connections by the watch thread, while the loop can't run: see handoff.h. */

#include "net/handoff.h"

#include "net/sockets.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#ifdef __linux__
#include <sys/epoll.h>
#endif

/* -- shared by the loop and the watch thread ----------------------------------------------------------------------- */

void heddle_handoff_lock(heddle_sockets *sockets)
{
    if (sockets->handoff.on)
        pthread_mutex_lock(&sockets->handoff.lock);
}

void heddle_handoff_unlock(heddle_sockets *sockets)
{
    if (sockets->handoff.on)
        pthread_mutex_unlock(&sockets->handoff.lock);
}

void heddle_handoff_release(heddle_connection *connection)
{
    heddle_transport *transport = &connection->transport;
    if (!connection->protocol || connection->protocol->stays || connection->running || connection->output.size ||
        connection->error || transport->operations != &heddle_plain_transport ||
        heddle_transport_owner(transport) != HEDDLE_OWNER_LOOP)
        return;
    atomic_store_explicit(&connection->label, 0, memory_order_relaxed);
    /* A plain store suffices, because only the loop changes the owner word while it is HEDDLE_OWNER_LOOP. */
    atomic_store_explicit(&transport->owner, HEDDLE_OWNER_AT_REST, memory_order_release);
}

bool heddle_handoff_acquire(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    if (heddle_transport_change_owner(&connection->transport, HEDDLE_OWNER_AT_REST, HEDDLE_OWNER_LOOP))
        return true;
    heddle_handoff_lock(sockets);
    bool ours = heddle_transport_change_owner(&connection->transport, HEDDLE_OWNER_AT_REST, HEDDLE_OWNER_LOOP);
    heddle_handoff_unlock(sockets);
    return ours;
}

/* -- events that the watch thread has noted for the loop ----------------------------------------------------------- */

/* Called with the lock held. */
static uint8_t take_watch_events(heddle_connection *connection)
{
    uint8_t events = connection->watch_events;
    heddle_link_remove(&connection->watch_link);
    connection->watch_events = 0;
    return events;
}

static heddle_connection *find_notified(heddle_link *link)
{
    return link ? HEDDLE_CONTAINER_OF(link, heddle_connection, watch_link) : NULL;
}

void heddle_handoff_forget(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    heddle_handoff_lock(sockets);
    atomic_store(&connection->transport.owner, HEDDLE_OWNER_RELEASED);
    take_watch_events(connection);
    heddle_handoff_unlock(sockets);
}

void heddle_handoff_process_noted(heddle_sockets *sockets)
{
    for (;;) {
        heddle_handoff_lock(sockets);
        heddle_connection *connection = find_notified(heddle_link_first(&sockets->handoff.notified));
        uint8_t events = connection ? take_watch_events(connection) : 0;
        heddle_handoff_unlock(sockets);
        if (!connection)
            return;
        if (heddle_transport_owner(&connection->transport) == HEDDLE_OWNER_RELEASED)
            heddle_sockets_close_connection(connection);
        else
            heddle_sockets_deliver_event(sockets, connection, events);
    }
}

/* -- handoff by the watch thread ---------------------------------------------------------------------------------- */

#ifdef __linux__

/*
 * The functions in this section run on the watch thread, except heddle_handoff_begin. The watch thread holds
 * `handoff.lock` while it uses connections.
 */

static void notify_loop(heddle_sockets *sockets, heddle_connection *connection, uint8_t events)
{
    connection->watch_events |= events;
    atomic_store_explicit(&connection->label, 0, memory_order_relaxed);
    if (heddle_link_is_listed(&connection->watch_link))
        return;
    heddle_link_push_last(&sockets->handoff.notified, &connection->watch_link);
    heddle_sockets_schedule_resume(sockets); /* in its next tick the loop calls heddle_handoff_process_noted */
    heddle_loop_wake(sockets->loop);
}

/*
 * While a request blocks a worker, requests with the same label (method and path without IDs) are not handed off: a few
 * of them could block all workers. They wait in the blocked process.
 */
static bool has_blocking_label(const heddle_sockets *sockets, const heddle_connection *connection)
{
    uint32_t label = atomic_load_explicit(&connection->label, memory_order_relaxed);
    return heddle_scoreboard_label_blocks(sockets->balance.scoreboard, label);
}

static void read_label(heddle_connection *connection)
{
    uint32_t (*label)(const heddle_connection *) = connection->protocol->label;
    if (label && !atomic_load_explicit(&connection->label, memory_order_relaxed))
        atomic_store_explicit(&connection->label, label(connection), memory_order_relaxed);
}

/* Returns 0, or -errno if the connection was not handed off. -EBUSY and -EOPNOTSUPP concern only this connection. */
static int hand_off_connection(heddle_sockets *sockets, heddle_connection *connection)
{
    heddle_transport *transport = &connection->transport;
    if (!heddle_transport_change_owner(transport, HEDDLE_OWNER_AT_REST, HEDDLE_OWNER_HANDOFF))
        return -EBUSY;
    read_label(connection);
    int result = has_blocking_label(sockets, connection) ? -EBUSY
                                                   : heddle_connection_send(connection, sockets->handoff.socket, 0);
    if (result < 0) {
        heddle_transport_change_owner(transport, HEDDLE_OWNER_HANDOFF, HEDDLE_OWNER_AT_REST);
        return result;
    }
    /*
     * The descriptor is closed now, not when the loop runs again: the other process may close the connection before
     * then, and a connection ends for the client only when all copies of its descriptor are closed.
     */
    struct epoll_event event = {0};
    epoll_ctl(sockets->set.connections_fd, EPOLL_CTL_DEL, transport->fd, &event);
    close(transport->fd);
    transport->fd = -1;
    atomic_store(&transport->owner, HEDDLE_OWNER_RELEASED);
    atomic_fetch_add_explicit(&sockets->handoff.sent_count, 1, memory_order_relaxed);
    notify_loop(sockets, connection, 0);
    return 0;
}

/* Returns whether the client has sent bytes, and not only closed the connection. */
static bool has_sent(const heddle_connection *connection, uint8_t events)
{
    char byte;
    if (!(events & HEDDLE_HAS_INPUT) || (events & (HEDDLE_HUNG_UP | HEDDLE_BROKEN)))
        return false;
    return !(events & HEDDLE_INPUT_ENDS) || recv(connection->transport.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/*
 * Tries to hand off a connection. If that succeeds, decrements `*left`. Returns false if the socket to the other
 * processes is full or broken.
 */
static bool try_to_hand_off(heddle_sockets *sockets, heddle_connection *connection, int *left)
{
    int result = hand_off_connection(sockets, connection);
    *left -= result == 0;
    return result == 0 || result == -EBUSY || result == -EOPNOTSUPP;
}

/* Hands off at most `*left` connections with new input. Returns false as try_to_hand_off does. */
static bool hand_off_notified(heddle_sockets *sockets, int *left)
{
    heddle_link *head = &sockets->handoff.notified;
    for (heddle_link *link = heddle_link_first(head), *next; link && *left; link = next) {
        heddle_connection *connection = find_notified(link);
        next = heddle_link_after(head, link);
        if (heddle_transport_owner(&connection->transport) != HEDDLE_OWNER_AT_REST ||
            has_blocking_label(sockets, connection) || !has_sent(connection, connection->watch_events))
            continue;
        if (!try_to_hand_off(sockets, connection, left))
            return false;
    }
    return true;
}

/*
 * Hands off at most `*left` connections whose work item (a request, for example) waits for a runner (a pooled fiber).
 * Returns false as try_to_hand_off does.
 */
static bool hand_off_ready(heddle_sockets *sockets, heddle_ready_list *list, int *left)
{
    heddle_connection *found[HEDDLE_HANDOFF_BATCH];
    int count = 0;
    heddle_ready_list_lock(list);
    heddle_link *head = &list->head;
    for (heddle_link *link = heddle_link_first(head); link && count < *left; link = heddle_link_after(head, link)) {
        heddle_connection *connection = heddle_work_of_link(link)->connection;
        if (heddle_transport_owner(&connection->transport) == HEDDLE_OWNER_AT_REST &&
            !has_blocking_label(sockets, connection))
            found[count++] = connection;
    }
    heddle_ready_list_unlock(list);
    for (int i = 0; i < count; i++) {
        if (!try_to_hand_off(sockets, found[i], left))
            return false;
    }
    return true;
}

enum {
    FAREWELLS = 256, /* the maximum number of connections that one call of send_farewells checks */
};

/*
 * Sends the farewell: bytes that ask the client to open a new connection. Does nothing if the farewell was sent before,
 * if a frame is partly sent, or if the kernel accepts no output.
 */
static void send_farewell(heddle_connection *connection)
{
    heddle_transport *transport = &connection->transport;
    uint8_t open = HEDDLE_WIRE_OPEN;
    if (atomic_load(&transport->farewell_sent) ||
        !atomic_compare_exchange_strong(&transport->wire, &open, HEDDLE_WIRE_WATCHED))
        return;
    const heddle_protocol *protocol = connection->protocol;
    struct iovec farewell = {.iov_base = (char *)protocol->farewell, .iov_len = protocol->farewell_size};
    struct pollfd room = {.fd = transport->fd, .events = POLLOUT};
    if (poll(&room, 1, 0) == 1 && room.revents == POLLOUT) {
        ssize_t sent = transport->operations->send(transport, &farewell, 1);
        atomic_store(&transport->farewell_sent, true);
        if (sent != (ssize_t)farewell.iov_len)
            /* The kernel may have accepted a part of the farewell. No frame can follow an incomplete one. */
            shutdown(transport->fd, SHUT_RDWR);
    }
    atomic_store_explicit(&transport->wire, HEDDLE_WIRE_OPEN, memory_order_release);
}

/*
 * Called repeatedly while the loop is blocked. Each call checks the next FAREWELLS connections, and sends them their
 * farewell if that is possible.
 */
static void send_farewells(heddle_sockets *sockets)
{
    heddle_handoff *handoff = &sockets->handoff;
    for (int left = FAREWELLS; left > 0 && handoff->next_farewell < sockets->slot_count; left--) {
        heddle_connection *connection = sockets->slots[handoff->next_farewell++].connection;
        if (connection && heddle_transport_owner(&connection->transport) != HEDDLE_OWNER_RELEASED)
            send_farewell(connection);
    }
}

/* Receives the events of connections in place of the blocked loop, and notes them for the loop. */
static void harvest_for_loop(heddle_sockets *sockets)
{
    struct epoll_event events[HEDDLE_HANDOFF_BATCH];
    int count = epoll_wait(sockets->set.connections_fd, events, HEDDLE_HANDOFF_BATCH, 0);
    for (int i = 0; i < count; i++) {
        heddle_connection *connection = heddle_sockets_at(sockets, events[i].data.u64);
        /*
         * The loop sets a record's owner to RELEASED before it frees the record. From then on the record must not be
         * put into the list of noted events, because it would be freed while it is listed.
         */
        if (connection && heddle_transport_owner(&connection->transport) != HEDDLE_OWNER_RELEASED)
            notify_loop(sockets, connection, heddle_epoll_events(events[i].events));
    }
}

static void publish_stuck(heddle_sockets *sockets, bool stuck)
{
    heddle_handoff *handoff = &sockets->handoff;
    heddle_scoreboard_slot *slot = sockets->balance.slot;
    if (handoff->shown == stuck)
        return;
    handoff->shown = stuck;
    if (stuck) {
        if (handoff->rescue.label) /* the slot shows the label of the request that blocks the process */
            HEDDLE_SCOREBOARD_SET(slot->label, handoff->rescue.label);
        if (atomic_load(&slot->stuck) == 0) /* the first of the process's loops; one watch thread serves all of them */
            HEDDLE_SCOREBOARD_SET(slot->stuck_since, handoff->rescue.since);
    }
    if (atomic_fetch_add(&slot->stuck, stuck ? 1 : -1) == 1 && !stuck)
        HEDDLE_SCOREBOARD_SET(slot->label, 0);
    /* The other workers decide again whether they accept: a stuck worker no longer counts as one with less load. */
    heddle_scoreboard_notify(sockets->balance.scoreboard);
}

/*
 * Notifies the master, once, when the loop has been blocked for HEDDLE_RESERVE_AFTER, so that the master starts a
 * reserve worker. Does nothing during a garbage collection, which ends by itself.
 */
static void alarm_master(heddle_sockets *sockets)
{
    heddle_handoff *handoff = &sockets->handoff;
    if (handoff->alarmed || handoff->rescue.collecting ||
        heddle_clock_coarse() - handoff->rescue.since < HEDDLE_RESERVE_AFTER)
        return;
    handoff->alarmed = true;
    heddle_scoreboard_alarm(sockets->balance.scoreboard);
}

static heddle_sockets *sockets_of(heddle_rescue *rescue)
{
    return HEDDLE_CONTAINER_OF(rescue, heddle_sockets, handoff.rescue);
}

static void begin_handoff(heddle_rescue *rescue)
{
    heddle_sockets *sockets = sockets_of(rescue);
    int left = HEDDLE_HANDOFF_BATCH;
    publish_stuck(sockets, true);
    alarm_master(sockets);
    /* If no other process can accept connections, the events remain in the epoll set for the loop. */
    if (!heddle_scoreboard_other_accepts(sockets->balance.scoreboard, sockets->balance.slot, heddle_clock_coarse()))
        return;
    pthread_mutex_lock(&sockets->handoff.lock);
    harvest_for_loop(sockets);
    heddle_ready_list *lists[] = {&sockets->ready, &sockets->probes, &sockets->callbacks, &sockets->rounds.deferred,
                                  &sockets->held};
    bool more = hand_off_notified(sockets, &left);
    for (size_t i = 0; more && i < sizeof(lists) / sizeof(*lists); i++)
        more = hand_off_ready(sockets, lists[i], &left);
    send_farewells(sockets);
    pthread_mutex_unlock(&sockets->handoff.lock);
}

static void end_handoff(heddle_rescue *rescue)
{
    sockets_of(rescue)->handoff.next_farewell = 0;
    sockets_of(rescue)->handoff.alarmed = false;
    publish_stuck(sockets_of(rescue), false);
}

int heddle_handoff_begin(heddle_sockets *sockets, int socket)
{
    heddle_handoff *handoff = &sockets->handoff;
    if (handoff->on || !sockets->balance.slot || !sockets->set.operations->watchable)
        return -ENOTSUP;
    int own = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return -errno;
    handoff->socket = own;
    handoff->rescue = (heddle_rescue){.loop = sockets->loop, .on_stuck = begin_handoff, .on_recovered = end_handoff};
    handoff->on = true;
    heddle_watch_add(&handoff->rescue);
    return 0;
}

#else

int heddle_handoff_begin(heddle_sockets *sockets, int socket)
{
    return -ENOTSUP;
}

#endif

/* -- start and end ------------------------------------------------------------------------------------------------- */

void heddle_handoff_start(heddle_sockets *sockets)
{
    sockets->handoff.socket = -1;
    heddle_link_init_head(&sockets->handoff.notified);
    pthread_mutex_init(&sockets->handoff.lock, NULL);
}

void heddle_handoff_abandon(heddle_sockets *sockets)
{
    heddle_handoff *handoff = &sockets->handoff;
    if (handoff->socket >= 0)
        close(handoff->socket);
    handoff->socket = -1;
    handoff->on = false;
}

void heddle_handoff_end(heddle_sockets *sockets)
{
    if (!sockets->handoff.on)
        return;
    heddle_watch_remove(&sockets->handoff.rescue);
    heddle_handoff_abandon(sockets);
}
