#include "net/sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const uint32_t NO_PLACE = UINT32_MAX;

/* Good to a few milliseconds, for idle times. */
static int64_t coarse_now(void)
{
#ifdef CLOCK_MONOTONIC_COARSE
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
#else
    return heddle_now();
#endif
}

/* -- places ------------------------------------------------------------------------------------------------------ */

static int take_place(heddle_sockets *sockets, heddle_connection *connection)
{
    if (sockets->free_place == NO_PLACE) {
        uint32_t count = sockets->place_count ? sockets->place_count * 2 : 64;
        heddle_place *places = realloc(sockets->places, count * sizeof(*places));
        if (!places)
            return -ENOMEM;
        for (uint32_t i = sockets->place_count; i < count; i++)
            places[i] = (heddle_place){.next_free = i + 1 < count ? i + 1 : NO_PLACE};
        sockets->free_place = sockets->place_count;
        sockets->places = places;
        sockets->place_count = count;
    }
    connection->slot = sockets->free_place;
    heddle_place *place = &sockets->places[connection->slot];
    sockets->free_place = place->next_free;
    place->connection = connection;
    return 0;
}

static void free_place(heddle_sockets *sockets, heddle_connection *connection)
{
    heddle_place *place = &sockets->places[connection->slot];
    place->connection = NULL;
    place->generation++;
    place->next_free = sockets->free_place;
    sockets->free_place = connection->slot;
}

uint64_t heddle_sockets_identity(heddle_sockets *sockets, const heddle_connection *connection)
{
    return (uint64_t)sockets->places[connection->slot].generation << 32 | connection->slot;
}

heddle_connection *heddle_sockets_at(heddle_sockets *sockets, uint64_t identity)
{
    heddle_place *place = &sockets->places[(uint32_t)identity];
    return place->generation == identity >> 32 ? place->connection : NULL;
}

/* -- the life of a connection ------------------------------------------------------------------------------------ */

int heddle_sockets_add(heddle_sockets *sockets, int fd, const heddle_address *remote, const heddle_address *local,
                       uint8_t ready)
{
    size_t size = sizeof(heddle_connection) + sockets->set.operations->waiters * sizeof(heddle_waiter);
    heddle_connection *connection = calloc(1, size);
    if (!connection)
        return -ENOMEM;
    connection->transport.operations = &heddle_plain_transport;
    connection->transport.fd = fd;
    connection->transport.ready = ready;
    connection->sockets = sockets;
    connection->remote = *remote;
    connection->local = *local;
    int result = take_place(sockets, connection);
    if (result < 0) {
        free(connection);
        return result;
    }
    result = sockets->set.operations->add(&sockets->set, connection);
    if (result < 0) {
        free_place(sockets, connection);
        free(connection);
        return result;
    }
    sockets->connections++;
    heddle_sockets_rest(connection);
    return 0;
}

/* Takes it out of everything; the record is gone. Its descriptor, or -1. */
static int forget(heddle_connection *connection, bool closing)
{
    heddle_sockets *sockets = connection->sockets;
    uint8_t owner = atomic_exchange(&connection->transport.owner, HEDDLE_OWNER_CLOSED);
    heddle_ready_list_remove(&sockets->ready, connection);
    heddle_idle_wheel_remove(&sockets->wheel, &connection->idle);
    if (!sockets->abandoned)
        sockets->set.operations->remove(&sockets->set, connection, closing);
    heddle_connection_part(connection);
    heddle_connection_drop_input(connection);
    free_place(sockets, connection);
    int fd = connection->transport.operations->detach(&connection->transport);
    free(connection);
    sockets->connections--;
    if (owner == HEDDLE_OWNER_RUNNING)
        sockets->running--;
    return fd;
}

/* Another one may be accepted now. */
static void made_room(heddle_sockets *sockets)
{
    if (sockets->paused & HEDDLE_PAUSED_FULL)
        heddle_listeners_resume(sockets, HEDDLE_PAUSED_FULL);
}

void heddle_sockets_close_connection(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    int fd = forget(connection, true);
    if (fd >= 0)
        close(fd);
    made_room(sockets);
}

int heddle_sockets_detach(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    int fd = forget(connection, false);
    made_room(sockets);
    return fd;
}

static void close_idle(heddle_connection *connection)
{
    if (!heddle_transport_change_owner(&connection->transport, HEDDLE_OWNER_IDLE, HEDDLE_OWNER_CLOSED))
        return; /* somebody else was faster */
    connection->sockets->closed_idle++;
    heddle_sockets_close_connection(connection);
}

typedef enum {
    NOTHING_YET,
    SOMETHING,
    THE_END, /* or an error */
} prospect;

/* What the next recv will find. */
static prospect look(heddle_connection *connection)
{
    char byte;
    ssize_t result = recv(connection->transport.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (result > 0)
        return SOMETHING;
    return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? NOTHING_YET : THE_END;
}

static void call_runner(heddle_sockets *sockets, heddle_connection *connection)
{
    heddle_ready_list_put(&sockets->ready, connection);
    heddle_runners_call(sockets);
}

void heddle_sockets_event(heddle_sockets *sockets, heddle_connection *connection, uint8_t ready)
{
    heddle_transport_note(&connection->transport, ready);
    if (heddle_transport_owner(&connection->transport) != HEDDLE_OWNER_IDLE) {
        heddle_connection_wake(connection, ready);
        return;
    }
    if (connection->queued)
        return;
    if (ready & HEDDLE_BROKEN) {
        close_idle(connection);
        return;
    }
    if (!(ready & (HEDDLE_HAS_INPUT | HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP)))
        return;
    /* The peer has ended its side, maybe. Only what it sent before is worth a runner. */
    bool ending = (ready & (HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP)) || sockets->set.operations->untold_ends;
    prospect next = ending ? look(connection) : SOMETHING;
    if (next == SOMETHING)
        call_runner(sockets, connection);
    else if (next == THE_END)
        close_idle(connection);
    else
        sockets->set.operations->want(&sockets->set, connection, HEDDLE_READING);
}

/* -- idle times -------------------------------------------------------------------------------------------------- */

static int64_t idle_due(heddle_idle_entry *entry, void *data)
{
    heddle_connection *connection = (heddle_connection *)((char *)entry - offsetof(heddle_connection, idle));
    heddle_sockets *sockets = connection->sockets;
    if (heddle_transport_owner(&connection->transport) != HEDDLE_OWNER_IDLE)
        return -1; /* it is put in again when it rests */
    int64_t deadline = connection->idle_since + sockets->idle_timeout;
    if (deadline > *(int64_t *)data || connection->queued)
        return deadline;
    close_idle(connection);
    return -1;
}

static void set_wheel_timer(heddle_sockets *sockets)
{
    int64_t next = heddle_idle_wheel_next(&sockets->wheel);
    if (next < 0 || sockets->wheel_timer.place)
        return;
    sockets->wheel_timer.deadline = next;
    if (heddle_timer_heap_push(&sockets->loop->timers, &sockets->wheel_timer) != 0)
        return; /* without memory nothing is closed for being idle; the next one that rests tries again */
}

static void wheel_turns(heddle_timer *timer)
{
    heddle_sockets *sockets = (heddle_sockets *)((char *)timer - offsetof(heddle_sockets, wheel_timer));
    int64_t now = heddle_now();
    heddle_idle_wheel_advance(&sockets->wheel, now, idle_due, &now);
    set_wheel_timer(sockets);
}

/* Who has read as much as it asked for can't know whether that was all; a runner shall not come for nothing. */
static bool has_input(heddle_connection *connection)
{
    heddle_transport *transport = &connection->transport;
    if (heddle_connection_buffered(connection) || transport->operations->pending(transport))
        return true;
    if (!heddle_transport_has(transport, HEDDLE_HAS_INPUT))
        return false;
    heddle_transport_forget(transport, HEDDLE_HAS_INPUT); /* first: what is noted meanwhile stays */
    prospect next = look(connection);
    if (next == SOMETHING)
        heddle_transport_note(transport, HEDDLE_HAS_INPUT);
    else if (next == THE_END)
        heddle_transport_note(transport, HEDDLE_INPUT_ENDS);
    return next == SOMETHING;
}

void heddle_sockets_rest(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    heddle_transport *transport = &connection->transport;
    heddle_connection_part(connection);
    if (heddle_transport_change_owner(transport, HEDDLE_OWNER_RUNNING, HEDDLE_OWNER_IDLE))
        sockets->running--;
    connection->idle_since = coarse_now();
    if (sockets->idle_timeout >= 0 && !heddle_idle_wheel_has(&connection->idle)) {
        heddle_idle_wheel_add(&sockets->wheel, &connection->idle, connection->idle_since + sockets->idle_timeout);
        set_wheel_timer(sockets);
    }
    if (has_input(connection))
        call_runner(sockets, connection);
    else if (sockets->draining || heddle_transport_has(transport, HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP | HEDDLE_BROKEN))
        close_idle(connection);
    else
        sockets->set.operations->want(&sockets->set, connection, HEDDLE_READING);
}

/* -- the whole --------------------------------------------------------------------------------------------------- */

static void come_back(heddle_letter *letter)
{
    heddle_sockets_letter *opened = (heddle_sockets_letter *)letter;
    opened->posted = false;
    if (opened->sockets)
        opened->sockets->set.operations->resume(&opened->sockets->set);
    else
        free(opened);
}

void heddle_sockets_come_back(heddle_sockets *sockets)
{
    if (sockets->letter->posted)
        return;
    sockets->letter->posted = true;
    heddle_inbox_post(&sockets->loop->inbox, &sockets->letter->base);
}

static int write_letter(heddle_sockets *sockets)
{
    sockets->letter = malloc(sizeof(*sockets->letter));
    if (!sockets->letter)
        return -ENOMEM;
    *sockets->letter = (heddle_sockets_letter){.base.open = come_back, .sockets = sockets};
    return 0;
}

static void drop_letter(heddle_sockets *sockets)
{
    if (sockets->letter && sockets->letter->posted)
        sockets->letter->sockets = NULL; /* freed when it is opened */
    else
        free(sockets->letter);
    sockets->letter = NULL;
}

/* This is a child process: nothing that was open is ours, and its fibers are gone. */
static void in_child(heddle_fork_guard *guard)
{
    heddle_sockets *sockets = (heddle_sockets *)((char *)guard - offsetof(heddle_sockets, fork_guard));
    sockets->abandoned = sockets->closed = true;
    sockets->connections = sockets->running = 0;
    sockets->set.operations->abandon(&sockets->set);
    for (uint32_t i = 0; i < sockets->place_count; i++) {
        heddle_connection *connection = sockets->places[i].connection;
        if (!connection)
            continue;
        if (connection->transport.fd >= 0)
            close(connection->transport.fd);
        connection->transport.fd = -1;
        if (connection->handle)
            *connection->handle = (heddle_handle){0};
        connection->handle = NULL;
    }
}

static void loop_closes(heddle_attachment *attachment)
{
    heddle_sockets_close((heddle_sockets *)((char *)attachment - offsetof(heddle_sockets, attachment)));
}

void heddle_sockets_start(heddle_sockets *sockets, VALUE object, bool pooled)
{
    sockets->attachment = (heddle_attachment){.object = object, .closing = loop_closes};
    sockets->free_place = NO_PLACE;
    sockets->fork_guard.in_child = in_child;
    sockets->wheel_timer.fn = wheel_turns;
    sockets->set.connections_fd = sockets->set.listeners_fd = -1;
    sockets->set.sockets = sockets;
    heddle_ready_list_start(&sockets->ready);
    heddle_idle_wheel_start(&sockets->wheel, heddle_now());
    heddle_runners_start(sockets, pooled);
}

void heddle_sockets_check(heddle_sockets *sockets)
{
    if (sockets->abandoned)
        rb_raise(rb_eIOError, "these sockets belong to the process that has made them, and this is a child of it");
    if (sockets->closed)
        rb_raise(rb_eIOError, "these sockets are closed");
    heddle_loop_get(sockets->scheduler);
    if (sockets->opened)
        return;
    int result = sockets->letter ? 0 : write_letter(sockets);
    if (result == 0)
        result = sockets->set.operations->open(&sockets->set);
    if (result < 0)
        rb_syserr_fail(-result, "opening the set of sockets");
    sockets->opened = true;
    heddle_fork_guard_add(&sockets->fork_guard);
    heddle_loop_attach(sockets->loop, &sockets->attachment);
}

void heddle_sockets_shutdown_idle(heddle_sockets *sockets)
{
    sockets->draining = !sockets->listeners;
    for (uint32_t i = 0; i < sockets->place_count; i++) {
        heddle_connection *connection = sockets->places[i].connection;
        /* One on the ready list has a request that deserves its answer. */
        if (connection && !connection->queued)
            close_idle(connection);
    }
}

static void remove_timer(heddle_sockets *sockets, heddle_timer *timer)
{
    if (!sockets->abandoned && !sockets->loop->closed)
        heddle_timer_heap_remove(&sockets->loop->timers, timer);
}

void heddle_sockets_close(heddle_sockets *sockets)
{
    if (sockets->closed)
        return;
    sockets->closed = true;
    heddle_fork_guard_remove(&sockets->fork_guard);
    heddle_loop_detach(sockets->loop, &sockets->attachment);
    heddle_listeners_remove_all(sockets);
    for (uint32_t i = 0; i < sockets->place_count; i++) {
        if (sockets->places[i].connection)
            heddle_sockets_close_connection(sockets->places[i].connection);
    }
    if (sockets->opened)
        sockets->set.operations->close(&sockets->set);
    drop_letter(sockets);
    remove_timer(sockets, &sockets->back_off);
    remove_timer(sockets, &sockets->wheel_timer);
    remove_timer(sockets, &sockets->runners.trim);
    remove_timer(sockets, &sockets->runners.retry);
    heddle_runners_dismiss(sockets);
}

char *heddle_sockets_scratch(heddle_sockets *sockets)
{
    if (!sockets->scratch)
        sockets->scratch = malloc(HEDDLE_SCRATCH);
    if (!sockets->scratch)
        rb_memerror();
    return sockets->scratch;
}

size_t heddle_sockets_memory_size(const heddle_sockets *sockets)
{
    size_t connection = sizeof(heddle_connection) + sockets->set.operations->waiters * sizeof(heddle_waiter);
    return sizeof(*sockets) + sockets->connections * connection + sockets->place_count * sizeof(heddle_place) +
           (sockets->scratch ? HEDDLE_SCRATCH : 0);
}

void heddle_sockets_free(heddle_sockets *sockets)
{
    heddle_fork_guard_remove(&sockets->fork_guard);
    for (uint32_t i = 0; i < sockets->place_count; i++) {
        heddle_connection *connection = sockets->places[i].connection;
        if (!connection)
            continue;
        if (connection->handle)
            connection->handle->connection = NULL;
        if (connection->transport.fd >= 0)
            close(connection->transport.fd);
        heddle_connection_drop_input(connection);
        free(connection);
    }
    for (heddle_listener *listener = sockets->listeners, *next; listener; listener = next) {
        next = listener->next;
        free(listener);
    }
    if (sockets->opened && !sockets->closed)
        sockets->set.operations->abandon(&sockets->set);
    free(sockets->letter);
    pthread_mutex_destroy(&sockets->ready.lock);
    free(sockets->places);
    free(sockets->scratch);
    free(sockets);
}
