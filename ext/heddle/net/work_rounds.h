#pragma once

/*
 * Rounds divide the runners' time fairly between connections with many work items (HTTP/2, pipelining) and connections
 * with one item. In a round each connection has one turn. All turns have the same length in items: the smallest number
 * of items that any connection had ready recently (work_turn_length.h).
 *
 * A connection with several ready items could have a turn in every tick, while the next requests of other clients are
 * still on their way. So after a connection's turn, its next item is deferred. Deferred items become ready when the
 * round ends, or when nothing else is ready after the loop has polled the sockets.
 *
 * A round ends in one of three cases:
 *
 * - A connection begins its second turn in the round, because its next request has arrived.
 * - A new connection begins its first turn, with an item that became ready only after the first item was deferred.
 * - A turn begins, although a deferred item of another address should come first (ready_list.c).
 */

#include "net/ready_list.h"
#include "net/work_turn_length.h"

/* In ns. A turn of several items ends early after this time. So if requests are slow, a turn has only one or two. */
#define HEDDLE_TURN_TIME INT64_C(200000)

typedef struct heddle_sockets heddle_sockets;

typedef struct {
    heddle_ready_list deferred;
    uint64_t tick;   /* the last tick in which force_poll (work_rounds.c) was called, so that it ended with a poll */
    uint32_t number; /* the number of the current round, 1 or more */
    uint32_t served; /* the latest round of addresses (ready_list.c) of which an item was served */
    size_t first_turns; /* how many connections may still have their first turn before the deferred items */
    heddle_turn_length length;
    int64_t turn_began; /* when the last turn of several items began, ns */
} heddle_rounds;

void heddle_rounds_start(heddle_rounds *rounds);
/*
 * Called when a runner has taken this item from the ready list. Returns true if the item is to be served now: it
 * belongs to its connection's current turn, or begins the connection's next turn. Returns false if the current turn has
 * lasted too long; this function has then deferred the item.
 */
bool heddle_rounds_use_turn(heddle_sockets *sockets, heddle_work *work);
/* Returns whether the connection's next item may be served in the same turn. */
bool heddle_rounds_has_turn_left(const heddle_sockets *sockets, const heddle_connection *connection);
/*
 * Called when no item is ready. Makes the deferred items ready if the loop has polled the sockets since it deferred
 * them.
 */
void heddle_rounds_release(heddle_sockets *sockets);
