#pragma once

/*
 * Bounds the part of a tick that expensive input takes, over all connections, and the part that is spent on the rest of
 * large responses. Connections that come after that part, or have used up their share, wait in a queue for the next
 * ticks. There are three queues, so that none waits for the others:
 *
 * - reading by a protocol whose input can be expensive, such as HTTP/2, of many short records of TLS, or of a WebSocket
 *   that has read its share;
 * - hang-ups, because closing a connection costs as much as a few requests: ten thousand clients that leave together do
 *   not block those that stay. A client that ends only its own side with its request waits among them;
 * - sending what is left of responses over HTTP/1.1: the kernel takes some megabytes of each at once, so the tick of
 *   sixty clients that read large ones took a quarter of a second.
 */

#include "net/fate.h"
#include "net/link.h"

typedef struct heddle_connection heddle_connection;
typedef struct heddle_sockets heddle_sockets;

/* The time for reading in one tick, and for sending, ns. */
#define HEDDLE_INPUT_TIME INT64_C(2000000)

typedef struct {
    heddle_link reading, leaving, sending; /* waiting connections, by `turn_link` */
    uint64_t tick;                         /* the loop's tick that the following members belong to */
    int64_t read_for, sent_for;            /* ns */
    unsigned hang_ups;                     /* delivered */
} heddle_input_turns;

void heddle_input_turns_init(heddle_input_turns *turns);
/*
 * Calls `take_turn` of the connection's protocol, in this tick or a later one. Does nothing for a connection that waits
 * already.
 */
HEDDLE_LAST_USE void heddle_input_turns_read(heddle_connection *connection);
/* The same for a connection that sends what is left of a response. */
HEDDLE_LAST_USE void heddle_input_turns_send(heddle_connection *connection);
/* Ends the connection's turn with input left: queues it. */
void heddle_input_turns_wait(heddle_connection *connection);
/*
 * Delivers events that tell of a hang-up, or queues the connection and keeps them in `late_events`. A connection with
 * such events gets later ones in the same turn.
 */
HEDDLE_LAST_USE void heddle_input_turns_hang_up(heddle_connection *connection, uint8_t ready);
/* For a connection that has read its share of what is there: tells it of further input in its turn. */
void heddle_input_turns_continue(heddle_connection *connection);
/* Gives queued connections their turns, as many as this tick has left. */
void heddle_input_turns_run(heddle_sockets *sockets);
