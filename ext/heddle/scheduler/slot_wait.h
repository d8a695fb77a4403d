#pragma once

/*
 * A fiber's wait for a change of some record, such as a connection. The record has a field, the slot, that points to
 * the wait, so that code that changes the record can wake the fiber. The wait lies on the fiber's stack. Only one fiber
 * at a time can wait in a slot.
 */

#include "scheduler/loop.h"

typedef struct heddle_wait heddle_wait;
struct heddle_wait {
    heddle_park park;
    heddle_wait **slot; /* NULL if the record that contains the slot was freed */
    int64_t deadline;
    heddle_spent part; /* the part of the request's time account (account.h) that the wait counts as */
};

typedef enum {
    HEDDLE_WAIT_READY,
    HEDDLE_WAIT_TIMED_OUT,
    HEDDLE_WAIT_CLOSED, /* the record was freed */
} heddle_wait_result;

/*
 * Waits in `wait.slot`, until `wait.deadline` (see heddle_park_set_deadline) at the latest. Raises the exceptions that
 * any wait of the fiber may raise, and IOError with the text `busy` if another fiber waits in the slot already.
 */
heddle_wait_result heddle_wait_in_slot(heddle_loop *loop, heddle_wait wait, const char *busy);

static inline void heddle_wait_wake(const heddle_wait *wait)
{
    if (wait)
        heddle_park_wake((heddle_park *)&wait->park);
}

/* Called when the record that contains the slot is about to be freed: ends the wait with HEDDLE_WAIT_CLOSED. */
void heddle_wait_drop(heddle_wait **slot);
