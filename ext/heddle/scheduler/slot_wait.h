#pragma once

/*
 * A fiber's wait that a field of a record, its slot, points to, so that the code with the record can end the wait. It
 * lies on that fiber's stack. One fiber at a time waits in a slot.
 */

#include "scheduler/loop.h"

typedef struct heddle_wait heddle_wait;
struct heddle_wait {
    heddle_park park;
    heddle_wait **slot; /* NULL: the record is gone */
    int64_t deadline;
    heddle_spent part; /* what a request waits for; 0: for something that its account does not name */
    /* Called when the slot has been set, and when the wait ends: the record may be gone then. May be NULL. */
    void (*note)(heddle_wait *wait, bool begins);
    void *data; /* for `note` */
};

typedef enum {
    HEDDLE_WAIT_READY,
    HEDDLE_WAIT_TIMED_OUT,
    HEDDLE_WAIT_CLOSED, /* the record is gone */
} heddle_wait_result;

/*
 * Waits in `wait->slot`; `deadline` as for heddle_park_set_deadline. Raises interrupts, and IOError with this message
 * when another fiber waits there.
 */
heddle_wait_result heddle_wait_in_slot(heddle_loop *loop, heddle_wait wait, const char *busy);

static inline void heddle_wait_wake(const heddle_wait *wait)
{
    if (wait)
        heddle_park_wake((heddle_park *)&wait->park);
}

/* The record of the slot is about to be freed. */
void heddle_wait_drop(heddle_wait **slot);
