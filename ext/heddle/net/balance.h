#pragma once

/*
 * Balances new connections between workers. Several workers listen on the same sockets, and the kernel wakes any of
 * them. A worker that is clearly busier than another one stops accepting until the scoreboard (the shared memory with
 * the load of each worker) shows that the load is even again.
 */

#include "net/scoreboard.h"
#include "scheduler/loop.h"

typedef struct {
    VALUE object; /* the Ruby object that owns the scoreboard; 0: none */
    const heddle_scoreboard *scoreboard;
    heddle_scoreboard_slot *slot; /* NULL: this process is not one of several workers */
    /* this loop's parts of the slot's in_flight, accepting and open, which are sums over all loops of the process */
    uint32_t load;
    bool accepting, open;
    heddle_waiter notification; /* waits for a write to the scoreboard's notify_fd */
    heddle_timer again; /* makes a worker that has stopped accepting read the scoreboard regularly */
    VALUE pool_follower; /* the Fiber to wake when the pools' shares have changed, or 0 */
    uint32_t pool_changes; /* the scoreboard's pool_changes when it was last read */
    bool publishes_ticks; /* the loop writes the start of its tick into the slot */
} heddle_balance;

/* The interval in ns at which a worker that has stopped accepting reads the scoreboard. */
#define HEDDLE_BALANCE_CHECK_INTERVAL INT64_C(10000000)
