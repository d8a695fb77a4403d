#pragma once

/*
 * Fairness between connections with many work items (HTTP/2, pipelining) and those with one. In a round each connection
 * has one turn. All turns have the same length: the smallest number of items that a connection had ready lately
 * (work_turn_length.h).
 *
 * A round ends when a connection that has sent its next request begins its second turn, or when a connection that came
 * after an item was deferred begins its first turn. A connection with more items ready could have a turn in every tick,
 * while other clients' next requests are still on their way. So its next item is deferred until the round has ended, or
 * until nothing else is ready after the loop has polled the sockets.
 */

#include "net/ready_list.h"
#include "net/work_turn_length.h"

/* A turn of several items ends early after this time, ns: if requests are slow, a turn has one or two of them. */
#define HEDDLE_TURN_TIME INT64_C(200000)

typedef struct heddle_sockets heddle_sockets;

typedef struct {
    heddle_ready_list deferred;
    uint64_t tick;   /* the loop's tick at the last turn */
    uint32_t number; /* number of the round, from 1 */
    uint32_t served; /* the round, among addresses, of the item served last: see ready_list.c */
    size_t first_turns; /* how many first turns of connections may still come before the deferred items */
    heddle_turn_length length;
    int64_t turn_began; /* when the last turn of several items began, ns */
} heddle_rounds;

void heddle_rounds_start(heddle_rounds *rounds);
/*
 * Called when a runner has taken this item from the ready list. Returns true if the item belongs to its connection's
 * current turn, or begins the next one: then it is served now. Returns false if the turn is over: then the item was
 * deferred.
 */
bool heddle_rounds_use_turn(heddle_sockets *sockets, heddle_work *work);
/* May the connection's next item be served in the same turn? */
bool heddle_rounds_has_turn_left(const heddle_sockets *sockets, const heddle_connection *connection);
/*
 * Called when nothing is ready. Makes the deferred items ready if the loop has polled the sockets since it deferred
 * them.
 */
void heddle_rounds_release(heddle_sockets *sockets);
