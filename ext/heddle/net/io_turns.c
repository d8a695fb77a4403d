/* The turns of connections, in which they read, send and handle hang-ups: see io_turns.h. */

#include "net/io_turns.h"

#include "net/sockets.h"

/*
 * How much of each tick a queue may use: the time in ns. Hang-ups are limited by their number instead, because each may
 * lead to more work later, such as a WebSocket's on_close.
 */
static const int64_t most[] = {[HEDDLE_TURN_READS] = 2000000, [HEDDLE_TURN_SENDS] = 2000000, [HEDDLE_TURN_ENDS] = 64};

void heddle_turns_init(heddle_turns *turns)
{
    for (int turn = 0; turn < HEDDLE_TURN_KINDS; turn++)
        heddle_link_init_head(&turns->queues[turn].waiting);
}

static bool has_part_left(heddle_sockets *sockets, heddle_turn turn)
{
    heddle_turns *turns = &sockets->turns;
    if (turns->tick != sockets->loop->statistics.ticks) {
        turns->tick = sockets->loop->statistics.ticks;
        for (int i = 0; i < HEDDLE_TURN_KINDS; i++)
            turns->queues[i].used = 0;
    }
    return turns->queues[turn].used < most[turn];
}

static void take_turn(heddle_connection *connection, heddle_turn turn)
{
    int64_t began = heddle_clock_now(), *used = &connection->sockets->turns.queues[turn].used;
    uint8_t events = connection->late_events;
    connection->late_events = 0;
    if (events)
        heddle_sockets_deliver_now(connection->sockets, connection, events);
    else if (connection->protocol->take_turn) /* the connection may have got another protocol meanwhile */
        connection->protocol->take_turn(connection);
    *used += turn == HEDDLE_TURN_ENDS ? 1 : heddle_clock_now() - began;
}

void heddle_turns_wait(heddle_connection *connection, heddle_turn turn)
{
    if (heddle_link_is_listed(&connection->turn_link))
        return;
    connection->turn = (uint8_t)turn;
    heddle_link_push_last(&connection->sockets->turns.queues[turn].waiting, &connection->turn_link);
    heddle_sockets_schedule_resume(connection->sockets);
}

void heddle_turns_take(heddle_connection *connection, heddle_turn turn)
{
    heddle_sockets *sockets = connection->sockets;
    if (heddle_link_is_listed(&connection->turn_link) || heddle_link_first(&sockets->turns.queues[turn].waiting) ||
        !has_part_left(sockets, turn))
        heddle_turns_wait(connection, turn);
    else
        take_turn(connection, turn);
}

heddle_fate heddle_turns_end_wait(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    if (!heddle_link_is_listed(&connection->turn_link))
        return HEDDLE_ALIVE;
    uint64_t identity = heddle_sockets_identity(sockets, connection);
    heddle_link_remove(&connection->turn_link);
    take_turn(connection, connection->turn);
    return heddle_sockets_at(sockets, identity) ? HEDDLE_ALIVE : HEDDLE_GONE;
}

bool heddle_turns_waits(const heddle_connection *connection, heddle_turn turn)
{
    return heddle_link_is_listed(&connection->turn_link) && connection->turn == turn;
}

void heddle_turns_hang_up(heddle_connection *connection, uint8_t ready)
{
    bool waits = connection->late_events != 0;
    connection->late_events |= ready;
    if (waits)
        return;
    /*
     * A connection can wait in one queue only, so this removes it from the queue for reading or sending. Handling the
     * hang-up reads the remaining input.
     */
    heddle_link_remove(&connection->turn_link);
    heddle_turns_take(connection, HEDDLE_TURN_ENDS);
}

void heddle_turns_deliver(heddle_connection *connection, uint8_t ready)
{
    connection->late_events |= ready;
    heddle_turns_take(connection, HEDDLE_TURN_READS);
}

void heddle_turns_continue(heddle_connection *connection)
{
    connection->late_events |= HEDDLE_HAS_INPUT;
    heddle_turns_wait(connection, HEDDLE_TURN_READS);
}

void heddle_turns_run(heddle_sockets *sockets)
{
    bool any_left = false;
    for (heddle_turn turn = 0; turn < HEDDLE_TURN_KINDS; turn++) {
        heddle_link *link, *waiting = &sockets->turns.queues[turn].waiting;
        while ((link = heddle_link_first(waiting)) && has_part_left(sockets, turn)) {
            heddle_link_remove(link);
            take_turn(HEDDLE_CONTAINER_OF(link, heddle_connection, turn_link), turn);
            if (sockets->closed)
                return;
        }
        any_left = any_left || link;
    }
    if (any_left)
        heddle_sockets_schedule_resume(sockets);
}
