#pragma once

/*
 * A fiber's wait in a slot. The slot is a field of some record, and points to the wait, so that code that has the
 * record can end the wait. The wait lies on the fiber's stack. Only one fiber at a time waits in a slot.
 */

#include "scheduler/loop.h"

typedef struct heddle_wait heddle_wait;
struct heddle_wait {
    heddle_park park;
    heddle_wait **slot; /* NULL: the record is gone */
    int64_t deadline;
    heddle_spent part; /* the part of the request's account that the wait counts as */
    /* Called when the slot was set, and when the wait ends. The record may no longer exist then. May be NULL. */
    void (*note)(heddle_wait *wait, bool begins);
    void *data; /* for `note` */
};

typedef enum {
    HEDDLE_WAIT_READY,
    HEDDLE_WAIT_TIMED_OUT,
    HEDDLE_WAIT_CLOSED, /* the record is gone */
} heddle_wait_result;

/*
 * Waits in `wait.slot`; `deadline` as for heddle_park_set_deadline. Raises the fiber's interrupts and timeouts, and
 * IOError with the text `busy` if another fiber waits in the slot.
 */
heddle_wait_result heddle_wait_in_slot(heddle_loop *loop, heddle_wait wait, const char *busy);

static inline void heddle_wait_wake(const heddle_wait *wait)
{
    if (wait)
        heddle_park_wake((heddle_park *)&wait->park);
}

/* Called when the record of the slot is about to be freed. */
void heddle_wait_drop(heddle_wait **slot);
