#include "net/sockets.h"

void heddle_rounds_start(heddle_rounds *rounds)
{
    heddle_ready_list_init(&rounds->deferred);
    rounds->number = 1;
}

static void release_deferred(heddle_sockets *sockets)
{
    heddle_work *work;
    while ((work = heddle_ready_list_take_first(&sockets->rounds.deferred)))
        heddle_ready_list_add(&sockets->ready, work, false);
}

/* Items that are ready by then come first. A selector that has to be asked is asked at the end of this tick. */
static void await_look(heddle_sockets *sockets)
{
    sockets->rounds.tick = sockets->loop->counts.ticks;
    sockets->loop->polled = 0;
}

void heddle_rounds_note_turn(heddle_sockets *sockets, heddle_connection *connection)
{
    heddle_rounds *rounds = &sockets->rounds;
    if (connection->round == rounds->number) {
        rounds->number++;
        release_deferred(sockets);
    }
    connection->round = rounds->number;
    if (rounds->deferred.count)
        await_look(sockets);
}

void heddle_rounds_release(heddle_sockets *sockets)
{
    if (sockets->rounds.deferred.count && sockets->rounds.tick != sockets->loop->counts.ticks)
        release_deferred(sockets);
}

void heddle_sockets_queue_in_turn(heddle_sockets *sockets, heddle_work *work)
{
    heddle_rounds *rounds = &sockets->rounds;
    if (work->connection->round != rounds->number) {
        heddle_sockets_queue(sockets, work, false);
        return;
    }
    if (!heddle_admission_open(sockets) && !heddle_admission_admit(sockets, work))
        return;
    heddle_ready_list_add(&rounds->deferred, work, false);
    await_look(sockets);
    heddle_connection_leave_at_rest(work->connection);
    heddle_runners_call(sockets);
}
