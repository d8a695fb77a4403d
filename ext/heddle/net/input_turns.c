#include "net/input_turns.h"

#include "net/sockets.h"

enum {
    HANG_UPS_A_TICK = 64, /* each may lead to more work, such as on_close of a WebSocket */
};

void heddle_input_turns_init(heddle_input_turns *turns)
{
    heddle_link_init_head(&turns->reading);
    heddle_link_init_head(&turns->leaving);
    heddle_link_init_head(&turns->sending);
}

static heddle_input_turns *turns_of_tick(heddle_sockets *sockets)
{
    heddle_input_turns *turns = &sockets->input_turns;
    if (turns->tick != sockets->loop->statistics.ticks) {
        turns->tick = sockets->loop->statistics.ticks;
        turns->read_for = turns->sent_for = 0;
        turns->hang_ups = 0;
    }
    return turns;
}

static bool has_time_to_read(heddle_sockets *sockets)
{
    return turns_of_tick(sockets)->read_for < HEDDLE_INPUT_TIME;
}

static bool has_time_to_send(heddle_sockets *sockets)
{
    return turns_of_tick(sockets)->sent_for < HEDDLE_INPUT_TIME;
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

/* -- reading and sending ------------------------------------------------------------------------------------------- */

static void deliver_late(heddle_connection *connection)
{
    uint8_t events = connection->late_events;
    connection->late_events = 0;
    heddle_sockets_deliver_now(connection->sockets, connection, events);
}

/* `used`: the time of this tick's turns. */
static void take_turn(heddle_connection *connection, int64_t *used)
{
    int64_t began = heddle_clock_now();
    if (connection->late_events)
        deliver_late(connection);
    else if (connection->protocol->take_turn) /* it may have another protocol by now */
        connection->protocol->take_turn(connection);
    *used += heddle_clock_now() - began;
}

void heddle_input_turns_wait(heddle_connection *connection)
{
    queue_connection(connection, &connection->sockets->input_turns.reading);
}

void heddle_input_turns_read(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    if (heddle_link_first(&sockets->input_turns.reading) || !has_time_to_read(sockets))
        heddle_input_turns_wait(connection);
    else
        take_turn(connection, &sockets->input_turns.read_for);
}

void heddle_input_turns_send(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    if (heddle_link_first(&sockets->input_turns.sending) || !has_time_to_send(sockets))
        queue_connection(connection, &sockets->input_turns.sending);
    else
        take_turn(connection, &sockets->input_turns.sent_for);
}

/* -- hang-ups ------------------------------------------------------------------------------------------------------ */

static void deliver_hang_up(heddle_connection *connection)
{
    connection->sockets->input_turns.hang_ups++;
    deliver_late(connection);
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

void heddle_input_turns_continue(heddle_connection *connection)
{
    connection->late_events |= HEDDLE_HAS_INPUT;
    heddle_input_turns_wait(connection);
}

/* -- queued connections -------------------------------------------------------------------------------------------- */

void heddle_input_turns_run(heddle_sockets *sockets)
{
    heddle_input_turns *turns = &sockets->input_turns;
    heddle_link *link;
    while ((link = heddle_link_first(&turns->reading)) && has_time_to_read(sockets)) {
        heddle_link_remove(link);
        take_turn(HEDDLE_CONTAINER_OF(link, heddle_connection, turn_link), &turns->read_for);
        if (sockets->closed)
            return;
    }
    while ((link = heddle_link_first(&turns->sending)) && has_time_to_send(sockets)) {
        heddle_link_remove(link);
        take_turn(HEDDLE_CONTAINER_OF(link, heddle_connection, turn_link), &turns->sent_for);
        if (sockets->closed)
            return;
    }
    while ((link = heddle_link_first(&turns->leaving)) && has_hang_ups_left(sockets)) {
        heddle_link_remove(link);
        deliver_hang_up(HEDDLE_CONTAINER_OF(link, heddle_connection, turn_link));
        if (sockets->closed)
            return;
    }
    if (heddle_link_first(&turns->reading) || heddle_link_first(&turns->leaving) || heddle_link_first(&turns->sending))
        heddle_sockets_schedule_resume(sockets);
}
