#ifndef HEDDLE_ROUNDS_H
#define HEDDLE_ROUNDS_H

/*
 * Fairness between a connection with many work items, as one of HTTP/2 has, and those with one. In a round each
 * connection has one turn. A round ends when a connection that has sent its next request has its second turn.
 *
 * A connection that has further items at hand would have a turn in every tick, while others are away for as long as an
 * answer and the next request are on their way. So its next item is deferred until the round has ended, or until
 * nothing else is ready after a look at the sockets.
 */

#include "net/ready_list.h"

typedef struct heddle_sockets heddle_sockets;

typedef struct {
    heddle_ready_list deferred;
    uint64_t tick;   /* of the loop, at the last turn */
    uint32_t number; /* of the round, from 1 */
} heddle_rounds;

void heddle_rounds_start(heddle_rounds *rounds);
/* A runner has taken an item of this connection, in the order of the ready list. */
void heddle_rounds_note_turn(heddle_sockets *sockets, heddle_connection *connection);
/* Nothing is ready: if the loop has looked at the sockets since, those that were deferred are. */
void heddle_rounds_release(heddle_sockets *sockets);

#endif
