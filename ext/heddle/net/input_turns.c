#include "net/input_turns.h"

#include "net/sockets.h"

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
    int64_t began = heddle_clock_now();
    connection->protocol->read_turn(connection);
    sockets->input_turns.used += heddle_clock_now() - began;
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
