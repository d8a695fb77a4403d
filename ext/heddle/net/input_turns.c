#include "net/input_turns.h"

#include "net/sockets.h"

enum {
    HANG_UPS_A_TICK = 64, /* each may lead to more work, such as on_close of a WebSocket */
};

void heddle_input_turns_init(heddle_input_turns *turns)
{
    heddle_link_init_head(&turns->reading);
    heddle_link_init_head(&turns->leaving);
}

static heddle_input_turns *turns_of_tick(heddle_sockets *sockets)
{
    heddle_input_turns *turns = &sockets->input_turns;
    if (turns->tick != sockets->loop->statistics.ticks) {
        turns->tick = sockets->loop->statistics.ticks;
        turns->used = 0;
        turns->hang_ups = 0;
    }
    return turns;
}

static bool has_time(heddle_sockets *sockets)
{
    return turns_of_tick(sockets)->used < HEDDLE_INPUT_TIME;
}

static bool has_hang_ups_left(heddle_sockets *sockets)
{
    return turns_of_tick(sockets)->hang_ups < HANG_UPS_A_TICK;
}

static void queue_connection(heddle_connection *connection, heddle_link *queue)
{
    if (heddle_link_is_listed(&connection->turn_link))
        return;
    heddle_link_push_last(queue, &connection->turn_link);
    heddle_sockets_schedule_resume(connection->sockets);
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static void read_now(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    int64_t began = heddle_clock_now();
    connection->protocol->read_turn(connection);
    sockets->input_turns.used += heddle_clock_now() - began;
}

void heddle_input_turns_wait(heddle_connection *connection)
{
    queue_connection(connection, &connection->sockets->input_turns.reading);
}

void heddle_input_turns_read(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    if (heddle_link_first(&sockets->input_turns.reading) || !has_time(sockets))
        heddle_input_turns_wait(connection);
    else
        read_now(connection);
}

/* -- hang-ups ------------------------------------------------------------------------------------------------------ */

static void deliver_hang_up(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    uint8_t events = connection->late_events;
    connection->late_events = 0;
    sockets->input_turns.hang_ups++;
    heddle_sockets_deliver_now(sockets, connection, events);
}

void heddle_input_turns_hang_up(heddle_connection *connection, uint8_t ready)
{
    heddle_sockets *sockets = connection->sockets;
    heddle_link *leaving = &sockets->input_turns.leaving;
    bool waits = connection->late_events != 0;
    connection->late_events |= ready;
    if (waits)
        return;
    heddle_link_remove(&connection->turn_link); /* from those that wait to be read, which a hang-up includes */
    if (heddle_link_first(leaving) || !has_hang_ups_left(sockets))
        queue_connection(connection, leaving);
    else
        deliver_hang_up(connection);
}

/* -- queued connections -------------------------------------------------------------------------------------------- */

void heddle_input_turns_run(heddle_sockets *sockets)
{
    heddle_input_turns *turns = &sockets->input_turns;
    heddle_link *link;
    while ((link = heddle_link_first(&turns->reading)) && has_time(sockets)) {
        heddle_link_remove(link);
        read_now(HEDDLE_CONTAINER_OF(link, heddle_connection, turn_link));
        if (sockets->closed)
            return;
    }
    while ((link = heddle_link_first(&turns->leaving)) && has_hang_ups_left(sockets)) {
        heddle_link_remove(link);
        deliver_hang_up(HEDDLE_CONTAINER_OF(link, heddle_connection, turn_link));
        if (sockets->closed)
            return;
    }
    if (heddle_link_first(&turns->reading) || heddle_link_first(&turns->leaving))
        heddle_sockets_schedule_resume(sockets);
}
