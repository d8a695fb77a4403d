#include "net/input_turns.h"

#include "net/sockets.h"

/* A hang-up uses so much of the time at least, ns: what it leads to, such as on_close of a WebSocket, runs later. */
#define HANG_UP_TIME (HEDDLE_INPUT_TIME / 64)

void heddle_input_turns_init(heddle_input_turns *turns)
{
    heddle_link_init_head(&turns->waiting);
}

static bool has_time(heddle_sockets *sockets)
{
    heddle_input_turns *turns = &sockets->input_turns;
    if (turns->tick != sockets->loop->counts.ticks) {
        turns->tick = sockets->loop->counts.ticks;
        turns->used = 0;
    }
    return turns->used < HEDDLE_INPUT_TIME;
}

static void take_turn(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    int64_t began = heddle_clock_now(), used = sockets->input_turns.used;
    uint8_t late_events = connection->late_events;
    connection->late_events = 0;
    if (late_events)
        heddle_sockets_deliver_now(sockets, connection, late_events);
    else
        connection->protocol->read_turn(connection);
    int64_t passed = heddle_clock_now() - began, least = late_events ? HANG_UP_TIME : 0;
    sockets->input_turns.used = used + (passed > least ? passed : least); /* turns within this turn are part of it */
}

void heddle_input_turns_wait(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    if (heddle_link_is_listed(&connection->turn_link))
        return;
    heddle_link_push_last(&sockets->input_turns.waiting, &connection->turn_link);
    heddle_sockets_schedule_resume(sockets);
}

void heddle_input_turns_read(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    if (heddle_link_first(&sockets->input_turns.waiting) || !has_time(sockets))
        heddle_input_turns_wait(connection);
    else
        take_turn(connection);
}

void heddle_input_turns_hang_up(heddle_connection *connection, uint8_t ready)
{
    connection->late_events |= ready;
    heddle_input_turns_read(connection);
}

void heddle_input_turns_run(heddle_sockets *sockets)
{
    heddle_link *waiting = &sockets->input_turns.waiting, *link;
    while ((link = heddle_link_first(waiting)) && has_time(sockets)) {
        heddle_link_remove(link);
        take_turn(HEDDLE_CONTAINER_OF(link, heddle_connection, turn_link));
        if (sockets->closed)
            return;
    }
    if (link)
        heddle_sockets_schedule_resume(sockets);
}
