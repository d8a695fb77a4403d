#pragma once

/*
 * The turns of connections. In each tick, all connections together get a bounded time for reading, one for sending, and
 * one for hang-ups. A connection waits in a queue for the next ticks when that time is used up, or when it has used up
 * its own share. There are three queues, so that no kind of work waits for another:
 *
 * - Reading: protocols whose input can be expensive, such as HTTP/2, and WebSockets, whose pings are answered in the
 *   same turn; many short records of TLS.
 * - Sending: the rest of complete responses, whose first part is sent in the request's own turn; large output of
 *   running requests. The kernel takes some megabytes of each at once. Without turns, a tick with sixty clients that
 *   read large responses took a quarter of a second.
 * - Hang-ups: closing a connection costs as much as a few requests. So ten thousand clients that leave together do not
 *   block those that stay. A client that ends only its own side of the connection after its request waits here, too.
 */

#include "net/fate.h"
#include "net/link.h"

typedef struct heddle_connection heddle_connection;
typedef struct heddle_sockets heddle_sockets;

typedef enum {
    HEDDLE_TURN_READS,
    HEDDLE_TURN_SENDS,
    HEDDLE_TURN_ENDS, /* delivers `late_events`, which report a hang-up */
    HEDDLE_TURN_KINDS,
} heddle_turn;

typedef struct {
    struct {
        heddle_link waiting; /* connections, by `turn_link` */
        int64_t used;        /* how much of this tick's part is used, in ns; for hang-ups, their number */
    } queues[HEDDLE_TURN_KINDS];
    uint64_t tick; /* the loop's tick that `used` belongs to */
} heddle_turns;

void heddle_turns_init(heddle_turns *turns);
/*
 * Calls `take_turn` of the connection's protocol, in this tick or a later one. Does nothing for a connection that waits
 * already.
 */
HEDDLE_LAST_USE void heddle_turns_take(heddle_connection *connection, heddle_turn turn);
/* Ends the connection's turn with input left, or with output that the kernel has room for: queues it. */
void heddle_turns_wait(heddle_connection *connection, heddle_turn turn);
/* If the connection waits in a queue, gives it its turn now. Called before its deadline is checked. */
HEDDLE_FATE heddle_turns_end_wait(heddle_connection *connection);
bool heddle_turns_waits(const heddle_connection *connection, heddle_turn turn);
/*
 * Delivers events that report a hang-up, or keeps them in `late_events` and queues the connection. Later events of that
 * connection are delivered in the same turn.
 */
HEDDLE_LAST_USE void heddle_turns_hang_up(heddle_connection *connection, uint8_t ready);
/* Delivers events, at most in the time for reading: in this tick or a later one. */
HEDDLE_LAST_USE void heddle_turns_deliver(heddle_connection *connection, uint8_t ready);
/* Called for a connection that has read its share: it gets an event for the remaining input in its next turn. */
void heddle_turns_continue(heddle_connection *connection);
/* Gives queued connections their turns, as long as this tick's parts last. */
void heddle_turns_run(heddle_sockets *sockets);
