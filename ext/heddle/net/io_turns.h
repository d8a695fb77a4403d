#pragma once

/*
 * The turns of connections. In each tick, all connections together may read for a limited time, send for a limited
 * time, and handle a limited number of hang-ups. When a limit is reached, or when a connection has used up its own
 * turn, the connection waits in a queue for its next turn. There are three queues, so that no kind of work delays
 * another one:
 *
 * - Reading: input that can be expensive. This includes HTTP/2, WebSockets (whose pings are answered in the same
 *   turn) and many short records of TLS.
 * - Sending: the rest of complete responses, whose first part is sent in the request's own turn, and large output of
 *   running requests. The kernel may accept megabytes for each client. Without turns, a tick with sixty clients that
 *   read large responses took a quarter of a second.
 * - Hang-ups: closing a connection costs as much as a few requests. With turns, ten thousand clients that leave
 *   together do not block the others. A client that has sent a request and then ends only its own side of the
 *   connection waits here, too.
 */

#include "net/fate.h"
#include "net/link.h"

typedef struct heddle_connection heddle_connection;
typedef struct heddle_sockets heddle_sockets;

typedef enum {
    HEDDLE_TURN_READS,
    HEDDLE_TURN_SENDS,
    HEDDLE_TURN_ENDS, /* handles a hang-up: delivers `late_events`, which report it */
    HEDDLE_TURN_KINDS,
} heddle_turn;

typedef struct {
    struct {
        heddle_link waiting; /* connections, by `turn_link` */
        int64_t used;        /* how much of this tick's limit is used up: in ns; or the number of hang-ups */
    } queues[HEDDLE_TURN_KINDS];
    uint64_t tick; /* the tick of the loop to which `used` belongs */
} heddle_turns;

void heddle_turns_init(heddle_turns *turns);
/*
 * Gives the connection a turn, in this tick or a later one: delivers its `late_events`, or, if there are none, calls
 * `take_turn` of its protocol. Does nothing if the connection is in a queue already.
 */
HEDDLE_LAST_USE void heddle_turns_take(heddle_connection *connection, heddle_turn turn);
/* Queues a connection whose turn ends although it has more input, or more output that the kernel would accept. */
void heddle_turns_wait(heddle_connection *connection, heddle_turn turn);
/* If the connection is in a queue, gives it a turn now. Called before the connection's time limit is checked. */
HEDDLE_FATE heddle_turns_end_wait(heddle_connection *connection);
bool heddle_turns_waits(const heddle_connection *connection, heddle_turn turn);
/*
 * Delivers events that report a hang-up. If this tick's limit is reached, keeps them in `late_events` and queues the
 * connection. Later events of that connection are then delivered in the same turn.
 */
HEDDLE_LAST_USE void heddle_turns_hang_up(heddle_connection *connection, uint8_t ready);
/* Delivers events in this tick, or in a later one if the time for reading is used up. */
HEDDLE_LAST_USE void heddle_turns_deliver(heddle_connection *connection, uint8_t ready);
/*
 * Queues a connection that has read as much as its turn allows. In its next turn it gets an event for the remaining
 * input.
 */
void heddle_turns_continue(heddle_connection *connection);
/* Gives queued connections their turns until this tick's limits are reached. */
void heddle_turns_run(heddle_sockets *sockets);
