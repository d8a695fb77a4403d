#ifndef HEDDLE_INPUT_TURNS_H
#define HEDDLE_INPUT_TURNS_H

/*
 * Bounds what reading takes of a tick, over all connections of a protocol whose input may cost much, as that of HTTP/2
 * does. Connections that come after this time, or have more than their share, wait in a queue for the next ticks.
 */

#include "net/fate.h"
#include "net/link.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct heddle_connection heddle_connection;
typedef struct heddle_sockets heddle_sockets;

/* Of a tick, ns. */
#define HEDDLE_INPUT_TIME INT64_C(2000000)

typedef struct {
    heddle_link waiting; /* connections, by `turn_link` */
    uint64_t tick;       /* of the loop, to which `used` belongs */
    int64_t used;        /* ns */
} heddle_input_turns;

void heddle_input_turns_init(heddle_input_turns *turns);
/*
 * The connection's turn: calls its protocol's `read_on`, in this tick or a later one. For a connection that
 * waits already nothing changes.
 */
HEDDLE_LAST_USE void heddle_input_turns_read(heddle_connection *connection);
/* Its turn is over, and there is more to read. */
void heddle_input_turns_wait(heddle_connection *connection);
/* This tick's share for those that wait. */
void heddle_input_turns_run(heddle_sockets *sockets);

#endif
