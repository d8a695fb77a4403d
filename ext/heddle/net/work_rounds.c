/* Rounds, in which each connection with work items has one turn: see work_rounds.h. */

#include "net/sockets.h"

void heddle_rounds_start(heddle_rounds *rounds)
{
    heddle_ready_list_init(&rounds->deferred);
    rounds->number = 1;
    heddle_turn_length_init(&rounds->length);
}

static void release_deferred(heddle_sockets *sockets)
{
    heddle_work *work;
    while ((work = heddle_work_of_link(heddle_link_first(&sockets->rounds.deferred.head))))
        heddle_ready_list_move(heddle_rounds_list_of(sockets, work), work);
}

/*
 * Makes the loop poll the selector at the end of this tick, so that items that are ready by then come before deferred
 * ones. Otherwise the loop might skip the poll, because with most selectors each poll costs a system call.
 */
static void force_poll(heddle_sockets *sockets)
{
    sockets->rounds.tick = sockets->loop->statistics.ticks;
    sockets->loop->polled = 0;
}

static void defer_item(heddle_sockets *sockets, heddle_work *work)
{
    if (!sockets->rounds.deferred.count)
        sockets->rounds.first_turns = sockets->ready.count + sockets->callbacks.count;
    heddle_ready_list_add(&sockets->rounds.deferred, work, false);
    force_poll(sockets);
    heddle_connection_release(work->connection);
}

/*
 * Counts the first turn of a new connection. Returns true if the connection came after all items that were ready when
 * the first item was deferred. In that case the round ends. Otherwise a stream of new connections with one request each
 * would prolong the round forever.
 */
static bool count_first_turn(heddle_rounds *rounds, const heddle_connection *connection)
{
    return connection->round == 0 && rounds->deferred.count && rounds->first_turns-- == 0;
}

/*
 * Returns whether a deferred item of another address should be served before this item, according to the rounds of
 * addresses (ready_list.c). If the deferred item waited for the end of this round, every connection of this item's
 * address would have its turn before the deferred item.
 */
static bool is_address_passed(const heddle_rounds *rounds, const heddle_work *work)
{
    const heddle_work *deferred = heddle_work_of_link(heddle_link_first(&rounds->deferred.head));
    return deferred && deferred->share && work->share && deferred->share != work->share &&
           (int32_t)(work->round - deferred->round) > 0;
}

static void begin_turn(heddle_sockets *sockets, const heddle_work *work)
{
    heddle_rounds *rounds = &sockets->rounds;
    heddle_connection *connection = work->connection;
    if (connection->round == rounds->number || is_address_passed(rounds, work) ||
        count_first_turn(rounds, connection)) {
        rounds->number++;
        release_deferred(sockets);
    }
    connection->round = rounds->number;
    heddle_turn_length_note(&rounds->length, connection->further + 1u, sockets->tick_began);
    connection->turn_left = (uint8_t)(rounds->length.items - 1);
    if (connection->turn_left)
        rounds->turn_began = heddle_clock_now();
    if (rounds->deferred.count)
        force_poll(sockets);
}

bool heddle_rounds_has_turn_left(const heddle_sockets *sockets, const heddle_connection *connection)
{
    return connection->turn_left && connection->round == sockets->rounds.number;
}

bool heddle_rounds_use_turn(heddle_sockets *sockets, heddle_work *work)
{
    heddle_connection *connection = work->connection;
    if (heddle_rounds_has_turn_left(sockets, connection)) {
        connection->turn_left--;
        if (heddle_clock_now() - sockets->rounds.turn_began < HEDDLE_TURN_TIME)
            return true;
        connection->turn_left = 0;
        defer_item(sockets, work);
        return false;
    }
    begin_turn(sockets, work);
    return true;
}

void heddle_rounds_release(heddle_sockets *sockets)
{
    /* force_poll was called when the last item was deferred. So in any later tick, the loop has polled since then. */
    if (sockets->rounds.deferred.count && sockets->rounds.tick != sockets->loop->statistics.ticks)
        release_deferred(sockets);
}

void heddle_sockets_queue_in_turn(heddle_sockets *sockets, heddle_work *work)
{
    const heddle_connection *connection = work->connection;
    bool at_front = heddle_rounds_has_turn_left(sockets, connection);
    if (at_front || work->probe || connection->round != sockets->rounds.number) {
        heddle_sockets_queue(sockets, work, at_front);
        return;
    }
    if (!heddle_admission_admit(sockets, work))
        return;
    defer_item(sockets, work);
    heddle_admission_request(sockets);
}
