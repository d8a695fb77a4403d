#ifndef HEDDLE_BALANCE_H
#define HEDDLE_BALANCE_H

/*
 * Several workers listen on the same sockets; the kernel wakes whoever it likes. A worker that is clearly busier than
 * another stops accepting until the scoreboard says otherwise.
 */

#include "net/scoreboard.h"
#include "scheduler/loop.h"

typedef struct {
    VALUE object; /* the Ruby object that keeps the scoreboard, 0: none */
    const heddle_scoreboard *scoreboard;
    heddle_scoreboard_slot *slot; /* NULL: this is no worker among others */
    heddle_waiter poked;
    heddle_timer again;
    VALUE pool_follower; /* the fiber that is woken when shares of pools have changed, or 0 */
    uint32_t pool_changes; /* that were seen */
    bool publishes_ticks; /* the loop writes the start of its tick into our slot */
} heddle_balance;

/* How long one that leaves connections to others does so without a look at the scoreboard, ns. */
#define HEDDLE_BALANCE_AGAIN INT64_C(10000000)

#endif
