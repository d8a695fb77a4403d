/*
 * The connections of a loop: allocates and frees their records, delivers their events, queues their work items
 * (requests and callbacks), and closes them.
 */

#include "net/sockets.h"

static const uint32_t NO_SLOT = UINT32_MAX;

/* -- slots ------------------------------------------------------------------------------------------------------ */

static int take_slot(heddle_sockets *sockets, heddle_connection *connection)
{
    if (sockets->free_slot == NO_SLOT) {
        uint32_t count = sockets->slot_count ? sockets->slot_count * 2 : 64;
        heddle_connection_slot *slots = realloc(sockets->slots, count * sizeof(*slots));
        if (!slots)
            return -ENOMEM;
        for (uint32_t i = sockets->slot_count; i < count; i++)
            slots[i] = (heddle_connection_slot){.next_free = i + 1 < count ? i + 1 : NO_SLOT};
        sockets->free_slot = sockets->slot_count;
        sockets->slots = slots;
        sockets->slot_count = count;
    }
    connection->slot = sockets->free_slot;
    heddle_connection_slot *slot = &sockets->slots[connection->slot];
    sockets->free_slot = slot->next_free;
    slot->connection = connection;
    return 0;
}

static void free_slot(heddle_sockets *sockets, heddle_connection *connection)
{
    heddle_handoff_lock(sockets);
    heddle_connection_slot *slot = &sockets->slots[connection->slot];
    slot->connection = NULL;
    slot->generation++;
    slot->next_free = sockets->free_slot;
    sockets->free_slot = connection->slot;
    heddle_handoff_unlock(sockets);
}

uint64_t heddle_sockets_identity(heddle_sockets *sockets, const heddle_connection *connection)
{
    return (uint64_t)sockets->slots[connection->slot].generation << 32 | connection->slot;
}

/* -- the life of a connection ------------------------------------------------------------------------------------ */

static int add_connection(heddle_sockets *sockets, heddle_connection *connection)
{
    heddle_handoff_lock(sockets);
    int result = take_slot(sockets, connection);
    heddle_handoff_unlock(sockets);
    if (result < 0)
        return result;
    result = sockets->set.operations->add(&sockets->set, connection);
    if (result < 0) {
        free_slot(sockets, connection);
        return result;
    }
    sockets->connections++;
    if (sockets->balance.slot)
        HEDDLE_SCOREBOARD_ADD(sockets->balance.slot->connections, 1);
    return 0;
}

static heddle_connection *make_connection(heddle_sockets *sockets, int fd, const heddle_address *remote,
                                         const heddle_address *local)
{
    size_t waiters = sockets->set.operations->waiters * sizeof(heddle_waiter);
    heddle_connection *connection = calloc(1, sizeof(*connection) + waiters);
    if (!connection)
        return NULL;
    connection->due = (heddle_due){.at = -1, .passed = heddle_connection_handle_deadline};
    connection->transport.operations = &heddle_plain_transport;
    connection->transport.fd = fd;
    connection->sockets = sockets;
    connection->remote = *remote;
    connection->local = *local;
    return connection;
}

int heddle_sockets_add(heddle_sockets *sockets, int fd, const heddle_address *remote, const heddle_address *local,
                       const heddle_listener *listener)
{
    heddle_connection *connection = make_connection(sockets, fd, remote, local);
    if (!connection)
        return -ENOMEM;
    connection->shared = !listener;
    bool counted = heddle_address_count(sockets, connection, 1);
    int result = counted ? add_connection(sockets, connection) : -EPERM;
    if (result < 0) {
        heddle_address_uncount(connection);
        free(connection);
        return result;
    }
    if (!listener || !heddle_handshake_begin(connection, listener))
        sockets->service->operations->choose_protocol(connection);
    return 0;
}

int heddle_sockets_add_shared(heddle_sockets *sockets, int fd, const heddle_address *remote,
                              const heddle_address *local, bool secure, const char *bytes, size_t size, VALUE session)
{
    heddle_connection *connection = make_connection(sockets, fd, remote, local);
    if (!connection)
        return -ENOMEM;
    connection->secure = secure;
    connection->shared = true;
    bool counted = heddle_address_count(sockets, connection, HEDDLE_ADDRESS_HANDOFFS);
    bool kept = counted && heddle_bytes_add(&connection->input, bytes, size);
    int result = kept ? add_connection(sockets, connection) : counted ? -ENOMEM : -EPERM;
    if (result < 0) {
        heddle_address_uncount(connection);
        heddle_bytes_reset(&connection->input, 0);
        free(connection);
        return result;
    }
    if (NIL_P(session))
        sockets->service->operations->choose_protocol(connection);
    else
        sockets->service->operations->resume_session(connection, session);
    return 0;
}

static void release_session(heddle_connection *connection)
{
    if (connection->protocol)
        connection->protocol->release(connection);
    connection->protocol = NULL;
    connection->session = NULL;
}

void heddle_connection_start(heddle_connection *connection, const heddle_protocol *protocol, void *session)
{
    release_session(connection);
    connection->protocol = protocol;
    connection->session = session;
    connection->transport.has_farewell = protocol->farewell != NULL;
    protocol->begin(connection);
}

/* Removes the connection from all lists and frees its record. Returns its descriptor, or -1. */
static int forget_connection(heddle_connection *connection, bool closing)
{
    heddle_sockets *sockets = connection->sockets;
    if (connection->flush_scheduled && closing && !sockets->abandoned)
        heddle_connection_flush(connection); /* sends the output that was deferred to the next tick */
    heddle_handoff_forget(connection);
    if (connection->transport.tls && closing && !connection->running && !connection->output.size && !sockets->abandoned)
        /* All output was sent. close_notify lets the client distinguish this from a connection that was cut off. */
        heddle_tls_send_close_notify(&connection->transport);
    heddle_link_remove(&connection->turn_link);
    heddle_due_remove(sockets, &connection->due);
    if (!sockets->abandoned && connection->transport.fd >= 0) /* fd is -1 if the connection was handed off */
        sockets->set.operations->remove(&sockets->set, connection, closing && !connection->shared);
    heddle_connection_drop_waits(connection);
    release_session(connection);
    heddle_bytes_reset(&connection->input, 0);
    heddle_connection_drop_output(connection);
    free_slot(sockets, connection);
    int fd = connection->transport.fd;
    heddle_tls_free(connection->transport.tls);
    sockets->connections--;
    heddle_address_uncount(connection);
    if (sockets->balance.slot)
        HEDDLE_SCOREBOARD_ADD(sockets->balance.slot->connections, -1);
    sockets->running -= connection->running > 0;
    free(connection);
    return fd;
}

/*
 * Called when a connection has ended. Resumes accepting if it was paused for lack of room or because of this worker's
 * load. If no connection is left, and no runner serves an item, wakes the fiber that waits for that.
 */
static void resume_accepting(heddle_sockets *sockets)
{
    heddle_runners_wake_if_done(sockets);
    heddle_listeners_resume(sockets, HEDDLE_PAUSED_FULL);
    heddle_balance_try_resume(sockets);
}

void heddle_sockets_close_connection(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    int fd = forget_connection(connection, true);
    if (fd >= 0)
        close(fd);
    resume_accepting(sockets);
}

int heddle_sockets_detach(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    int fd = forget_connection(connection, false);
    resume_accepting(sockets);
    return fd;
}

void heddle_sockets_close_idle(heddle_connection *connection)
{
    if (!heddle_connection_acquire(connection) || connection->running)
        return; /* the connection was handed off, or a runner (a pooled fiber) serves it */
    if (connection->output.size)
        connection->sockets->clients_gone++;
    heddle_sockets_close_connection(connection);
}

void heddle_sockets_queue(heddle_sockets *sockets, heddle_work *work, bool at_front)
{
    heddle_ready_list *list = heddle_rounds_list_of(sockets, work);
    at_front = at_front && !work->probe;
    if (!at_front && !heddle_admission_admit(sockets, work))
        return;
    heddle_ready_list_add(list, work, at_front);
    heddle_connection_release(work->connection);
    sockets->urgent = at_front ? list : NULL;
    heddle_admission_request(sockets);
}

void heddle_connection_begin_work(heddle_connection *connection)
{
    if (connection->running++ == 0)
        connection->sockets->running++;
}

void heddle_connection_end_work(heddle_connection *connection)
{
    if (--connection->running == 0)
        connection->sockets->running--;
}

void heddle_sockets_deliver_event(heddle_sockets *sockets, heddle_connection *connection, uint8_t ready)
{
    if (connection->protocol && (connection->late_events || (ready & HEDDLE_HANG_UP)))
        heddle_turns_hang_up(connection, ready);
    else if (connection->protocol && connection->protocol->waits_for_turns)
        heddle_turns_deliver(connection, ready);
    else
        heddle_sockets_deliver_now(sockets, connection, ready);
}

void heddle_sockets_deliver_now(heddle_sockets *sockets, heddle_connection *connection, uint8_t ready)
{
    if (!heddle_connection_acquire(connection))
        return;
    if (connection->transport.tls)
        ready = heddle_tls_translate_events(connection->transport.tls, ready);
    heddle_transport_note(&connection->transport, ready);
    if (connection->protocol)
        connection->protocol->handle_event(connection, ready);
    else if (ready & HEDDLE_BROKEN)
        heddle_sockets_close_idle(connection);
    else
        heddle_handshake_handle_event(connection);
}

/* -- the object -------------------------------------------------------------------------------------------------- */

static void continue_posted(void *owner)
{
    heddle_sockets *sockets = owner;
    /* Each step may call Ruby code that closes the sockets. */
    heddle_sockets_flush(sockets);
    if (!sockets->closed)
        heddle_handshake_run_queued(sockets);
    if (!sockets->closed)
        heddle_turns_run(sockets);
    if (sockets->closed)
        return;
    heddle_handoff_process_noted(sockets);
    sockets->set.operations->resume(&sockets->set);
}

void heddle_sockets_schedule_resume(heddle_sockets *sockets)
{
    heddle_next_tick_call_post(sockets->message, &sockets->loop->inbox);
}

/* Called in a forked child. The connections belong to the parent, and the parent's fibers don't run in the child. */
static void in_child(heddle_fork_guard *guard)
{
    heddle_sockets *sockets = (heddle_sockets *)((char *)guard - offsetof(heddle_sockets, fork_guard));
    sockets->abandoned = sockets->closed = true;
    heddle_balance_abandon(sockets);
    heddle_handoff_abandon(sockets);
    sockets->connections = sockets->running = 0;
    sockets->set.operations->abandon(&sockets->set);
    for (uint32_t i = 0; i < sockets->slot_count; i++) {
        heddle_connection *connection = sockets->slots[i].connection;
        if (!connection)
            continue;
        if (connection->transport.fd >= 0)
            close(connection->transport.fd);
        connection->transport.fd = -1;
        connection->waits[HEDDLE_READING] = connection->waits[HEDDLE_WRITING] = NULL;
        if (connection->protocol)
            connection->protocol->abandon(connection);
        connection->protocol = NULL; /* the session is not freed, because that could lock a mutex */
        connection->session = NULL;
    }
}

static void handle_loop_close(heddle_attachment *attachment)
{
    heddle_sockets_close((heddle_sockets *)((char *)attachment - offsetof(heddle_sockets, attachment)));
}

void heddle_sockets_start(heddle_sockets *sockets, VALUE object)
{
    sockets->attachment = (heddle_attachment){
        .object = object, .closing = handle_loop_close, .begin_work = heddle_admission_begin_work};
    sockets->free_slot = NO_SLOT;
    sockets->fork_guard.in_child = in_child;
    sockets->set.connections_fd = sockets->set.listeners_fd = -1;
    sockets->set.sockets = sockets;
    sockets->admission = (heddle_admission){.queue_limit = HEDDLE_UNLIMITED_ITEMS, .queue_timeout = -1};
    heddle_link_init_head(&sockets->unsent);
    heddle_ready_list_init(&sockets->ready);
    heddle_ready_list_init(&sockets->probes);
    heddle_ready_list_init(&sockets->callbacks);
    heddle_ready_list_init(&sockets->held);
    heddle_rounds_start(&sockets->rounds);
    heddle_turns_init(&sockets->turns);
    heddle_ready_list_init(&sockets->reserve.deferred);
    heddle_link_init_head(&sockets->handshake_queue.due);
    heddle_handoff_start(sockets);
    heddle_deadlines_start(sockets);
}

void heddle_sockets_check(heddle_sockets *sockets)
{
    if (sockets->abandoned)
        rb_raise(rb_eIOError, "these sockets belong to the parent process, which opened them");
    if (sockets->closed)
        rb_raise(rb_eIOError, "these sockets are closed");
    heddle_loop_get(sockets->scheduler);
    if (sockets->opened)
        return;
    if (!sockets->message)
        sockets->message = heddle_next_tick_call_new(continue_posted, sockets);
    int result = sockets->message ? 0 : -ENOMEM;
    if (result == 0 && !sockets->scratch)
        result = (sockets->scratch = malloc(HEDDLE_SCRATCH)) ? 0 : -ENOMEM;
    if (result == 0)
        result = sockets->set.operations->open(&sockets->set);
    if (result < 0)
        rb_syserr_fail(-result, "opening the set of sockets");
    sockets->opened = true;
    heddle_fork_guard_add(&sockets->fork_guard);
    heddle_loop_attach(sockets->loop, &sockets->attachment);
}

static void remove_timer(heddle_sockets *sockets, heddle_timer *timer)
{
    if (!sockets->abandoned && !heddle_loop_is_closed(sockets->loop))
        heddle_timer_heap_remove(&sockets->loop->timers, timer);
}

void heddle_sockets_close(heddle_sockets *sockets)
{
    if (sockets->closed)
        return;
    sockets->closed = true;
    heddle_handoff_end(sockets);
    heddle_fork_guard_remove(&sockets->fork_guard);
    heddle_loop_detach(sockets->loop, &sockets->attachment);
    heddle_listeners_remove_all(sockets);
    remove_timer(sockets, &sockets->reserve.again);
    for (uint32_t i = 0; i < sockets->slot_count; i++) {
        if (sockets->slots[i].connection)
            heddle_sockets_close_connection(sockets->slots[i].connection);
    }
    heddle_balance_leave(sockets);
    if (sockets->opened)
        sockets->set.operations->close(&sockets->set);
    heddle_next_tick_call_drop(&sockets->message);
    remove_timer(sockets, &sockets->back_off);
    remove_timer(sockets, &sockets->deadline_timer);
    remove_timer(sockets, &sockets->runners.trim);
    remove_timer(sockets, &sockets->runners.retry);
    heddle_runners_end_idle(sockets);
}

void heddle_sockets_free(heddle_sockets *sockets)
{
    sockets->abandoned = true; /* so that no fiber is woken: the fibers and the loop may no longer exist */
    heddle_handoff_end(sockets);
    heddle_fork_guard_remove(&sockets->fork_guard);
    for (uint32_t i = 0; i < sockets->slot_count; i++) {
        heddle_connection *connection = sockets->slots[i].connection;
        if (!connection)
            continue;
        if (connection->transport.fd >= 0)
            close(connection->transport.fd);
        release_session(connection);
        heddle_bytes_reset(&connection->input, 0);
        heddle_output_clear(&connection->output);
        heddle_tls_free(connection->transport.tls);
        free(connection);
    }
    heddle_service_release(sockets->service);
    for (heddle_listener *listener = sockets->listeners, *next; listener; listener = next) {
        next = listener->next;
        free(listener);
    }
    if (sockets->opened && !sockets->closed)
        sockets->set.operations->abandon(&sockets->set);
    free(sockets->message);
    pthread_mutex_destroy(&sockets->handoff.lock);
    heddle_timer_heap_free(&sockets->deadlines);
    free(sockets->slots);
    free(sockets->scratch);
    free(sockets);
}
