#include "net/sockets.h"

#include <unistd.h>

/* -- what it does not start --------------------------------------------------------------------------------------- */

static void hold(heddle_sockets *sockets, heddle_connection *connection)
{
    connection->held = true;
    heddle_ready_list_put(&sockets->reserve.held, connection, false);
}

bool heddle_reserve_holds_back(heddle_sockets *sockets, heddle_connection *connection)
{
    heddle_reserve *reserve = &sockets->reserve;
    uint32_t (*label)(heddle_connection *) = sockets->protocol->operations->label;
    if (!label || !heddle_board_holds_up(sockets->balance.board, label(connection)))
        return false;
    if (reserve->held.count >= sockets->admission.queue_limit) {
        sockets->admission.refused_full++;
        sockets->protocol->operations->overloaded(connection, HEDDLE_QUEUE_FULL);
        return true;
    }
    reserve->held_back++;
    hold(sockets, connection);
    return true;
}

static void start_here(heddle_sockets *sockets, heddle_connection *connection)
{
    heddle_sockets_call_runner(sockets, connection, false);
}

/* false: nobody takes any more now. */
static bool give_back(heddle_sockets *sockets, heddle_connection *connection)
{
    if (!heddle_transport_change_owner(&connection->transport, HEDDLE_OWNER_IDLE, HEDDLE_OWNER_HANDOFF))
        return true; /* it is being closed */
    int result = heddle_connection_send(connection, sockets->handoff.socket);
    if (result == 0) {
        int fd = heddle_sockets_detach(connection);
        if (fd >= 0)
            close(fd);
        return true;
    }
    heddle_transport_change_owner(&connection->transport, HEDDLE_OWNER_HANDOFF, HEDDLE_OWNER_IDLE);
    if (result == -EOPNOTSUPP) { /* TLS, or too much of it was read */
        start_here(sockets, connection);
        return true;
    }
    hold(sockets, connection);
    return false;
}

static void empty_held(heddle_sockets *sockets, bool (*dispose)(heddle_sockets *, heddle_connection *))
{
    for (size_t count = sockets->reserve.held.count; count > 0; count--) {
        heddle_connection *connection = heddle_ready_list_take(&sockets->reserve.held);
        if (!connection)
            return;
        connection->held = false;
        if (heddle_connection_hold(connection) && !dispose(sockets, connection))
            return;
    }
}

static bool serve_at_last(heddle_sockets *sockets, heddle_connection *connection)
{
    start_here(sockets, connection);
    return true;
}

/* -- stepping in and back ----------------------------------------------------------------------------------------- */

static void step_in(heddle_sockets *sockets)
{
    sockets->reserve.serves = true;
    sockets->reserve.steps_in++;
    heddle_listeners_resume(sockets, HEDDLE_PAUSED_RESERVE);
}

static void step_back(heddle_sockets *sockets)
{
    sockets->reserve.serves = false;
    heddle_listeners_pause(sockets, HEDDLE_PAUSED_RESERVE);
}

/* Those who run have room again for what came here. */
static void return_connections(heddle_sockets *sockets)
{
    if (sockets->handoff.socket < 0)
        return;
    empty_held(sockets, give_back);
    heddle_sockets_hand_over(sockets, sockets->handoff.socket); /* what does not go now goes when we look again */
}

static void again(heddle_timer *timer)
{
    heddle_reserve_look((heddle_sockets *)((char *)timer - offsetof(heddle_sockets, reserve.again)));
}

static void look_at(heddle_sockets *sockets, int64_t time)
{
    heddle_timer *timer = &sockets->reserve.again;
    heddle_timer_heap_remove(&sockets->loop->timers, timer);
    timer->fn = again;
    timer->deadline = time;
    heddle_timer_heap_push(&sockets->loop->timers, timer); /* without memory the next poke does it */
}

void heddle_reserve_look(heddle_sockets *sockets)
{
    heddle_reserve *reserve = &sockets->reserve;
    if (!reserve->rank || !sockets->balance.slot || sockets->closed)
        return;
    int64_t now = heddle_now();
    int64_t due = heddle_board_reserve_due(sockets->balance.board, sockets->balance.slot, HEDDLE_RESERVE_PATIENCE);
    if (due <= now && !reserve->serves)
        step_in(sockets);
    else if (due == INT64_MAX && reserve->serves)
        step_back(sockets);
    if (due == INT64_MAX && sockets->connections)
        return_connections(sockets);
    if (due > now && due < INT64_MAX)
        look_at(sockets, due);
    else if (reserve->serves)
        look_at(sockets, now + HEDDLE_RESERVE_AGAIN);
    else if (sockets->connections)
        look_at(sockets, now + HEDDLE_RESERVE_RETURN);
}

void heddle_reserve_begin(heddle_sockets *sockets, uint32_t rank)
{
    sockets->reserve.rank = rank;
    heddle_listeners_pause(sockets, HEDDLE_PAUSED_RESERVE);
}

void heddle_reserve_end(heddle_sockets *sockets)
{
    heddle_reserve *reserve = &sockets->reserve;
    if (!reserve->rank)
        return;
    reserve->rank = 0;
    reserve->serves = false;
    if (!sockets->loop->closed)
        heddle_timer_heap_remove(&sockets->loop->timers, &reserve->again);
    empty_held(sockets, serve_at_last);
}
