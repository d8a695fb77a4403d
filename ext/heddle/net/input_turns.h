#pragma once

/*
 * Bounds the part of a tick that expensive input takes, over all connections. Connections that come after that part, or
 * have used up their share, wait in a queue for the next ticks. There are two queues, so that neither waits for the
 * other:
 *
 * - reading by a protocol whose input can be expensive, such as HTTP/2;
 * - hang-ups, because closing a connection costs as much as a few requests: ten thousand clients that leave together do
 *   not block those that stay. A client that ends only its own side with its request waits among them.
 */

#include "net/fate.h"
#include "net/link.h"

typedef struct heddle_connection heddle_connection;
typedef struct heddle_sockets heddle_sockets;

/* The time for reading in one tick, ns. */
#define HEDDLE_INPUT_TIME INT64_C(2000000)

typedef struct {
    heddle_link reading, leaving; /* waiting connections, by `turn_link` */
    uint64_t tick;                /* the loop's tick that the following members belong to */
    int64_t used;                 /* by reading, ns */
    unsigned hang_ups;            /* delivered */
} heddle_input_turns;

void heddle_input_turns_init(heddle_input_turns *turns);
/*
 * Calls `read_turn` of the connection's protocol, in this tick or a later one. Does nothing for a connection that waits
 * already.
 */
HEDDLE_LAST_USE void heddle_input_turns_read(heddle_connection *connection);
/* Ends the connection's turn with input left: queues it. */
void heddle_input_turns_wait(heddle_connection *connection);
/*
 * Delivers events that tell of a hang-up, or queues the connection and keeps them in `late_events`. A connection with
 * such events gets later ones in the same turn.
 */
HEDDLE_LAST_USE void heddle_input_turns_hang_up(heddle_connection *connection, uint8_t ready);
/* Gives queued connections their turns, as many as this tick has left. */
void heddle_input_turns_run(heddle_sockets *sockets);
