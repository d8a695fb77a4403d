#ifndef HEDDLE_ROUNDS_H
#define HEDDLE_ROUNDS_H

/*
 * Fairness between a connection with many work items, as one of HTTP/2 or one that pipelines has, and those with one.
 * In a round each connection has one turn, of as many items as the connection with the fewest had at hand lately
 * (turn_length.h). A round ends when a connection that has sent its next request has its second turn, or when one that
 * came after an item was deferred has its first.
 *
 * A connection that has further items at hand would have a turn in every tick, while others are away for as long as an
 * answer and the next request are on their way. So its next item is deferred until the round has ended, or until
 * nothing else is ready after a look at the sockets.
 */

#include "net/ready_list.h"
#include "net/turn_length.h"

/* A turn of several items ends early after this long: ns. Slow requests are served one a turn, or two. */
#define HEDDLE_TURN_TIME INT64_C(200000)

typedef struct heddle_sockets heddle_sockets;

typedef struct {
    heddle_ready_list deferred;
    uint64_t tick;   /* of the loop, at the last turn */
    uint32_t number; /* of the round, from 1 */
    size_t first_turns; /* of new connections, at most, that may still come before the items that are deferred */
    heddle_turn_length length;
    int64_t turn_began; /* the last one of several items: ns */
} heddle_rounds;

void heddle_rounds_start(heddle_rounds *rounds);
/*
 * A runner has taken this item from the ready list, and is about to serve it. false: its connection's turn is over, and
 * the item is deferred.
 */
bool heddle_rounds_admit(heddle_sockets *sockets, heddle_work *work);
/* May the connection's next item follow in the same turn? */
bool heddle_rounds_has_turn_left(const heddle_sockets *sockets, const heddle_connection *connection);
/* Nothing is ready: the deferred items become ready, if the loop has polled the sockets since they were deferred. */
void heddle_rounds_release(heddle_sockets *sockets);

#endif
