#pragma once

/*
 * Several workers listen on the same sockets, and the kernel wakes any of them. A worker that is clearly busier than
 * another one stops accepting, until the scoreboard shows that the load is even again.
 */

#include "net/scoreboard.h"
#include "scheduler/loop.h"

typedef struct {
    VALUE object; /* the Ruby object that keeps the scoreboard, 0: none */
    const heddle_scoreboard *scoreboard;
    heddle_scoreboard_slot *slot; /* NULL: this process is not one of several workers */
    uint32_t load; /* this loop's part of the slot's in_flight; all loops of the process share the slot */
    heddle_waiter notification;
    heddle_timer again;
    VALUE pool_follower; /* the fiber to wake when shares of pools have changed, or 0 */
    uint32_t pool_changes; /* the scoreboard's pool_changes when it was last read */
    bool publishes_ticks; /* the loop writes the start of its tick into our slot */
} heddle_balance;

/* The interval, in ns, at which a worker that has stopped accepting reads the scoreboard. */
#define HEDDLE_BALANCE_CHECK_INTERVAL INT64_C(10000000)
