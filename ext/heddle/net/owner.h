#pragma once

/*
 * Which thread may touch a connection's record. The word changes by compare-and-swap: the thread whose swap succeeds
 * owns the record.
 *
 *   from      to        by      when
 *   LOOP      AT_REST   loop    it waits for input or a runner, and no call uses it
 *   AT_REST   LOOP      loop    an event, a deadline or a runner
 *   AT_REST   HANDOFF   watch   the loop is blocked; under the lock of net/handoff.h
 *   LOOP      HANDOFF   loop    a drain, or a reserve that stops serving
 *   HANDOFF   AT_REST   watch   the other processes take no more
 *   HANDOFF   LOOP      loop    the same
 *   HANDOFF   RELEASED  both    another process has the connection
 *   any       RELEASED  loop    it closes the record
 *
 * A connection with running work items is never AT_REST.
 */

#include "selector/transitions.h"

typedef enum {
    HEDDLE_OWNER_LOOP,    /* the loop, which needs no lock */
    HEDDLE_OWNER_AT_REST, /* the loop or the watch thread, whichever swaps first: see net/handoff.h */
    HEDDLE_OWNER_HANDOFF, /* the thread that sends it to another process */
    HEDDLE_OWNER_RELEASED,    /* no thread: the loop only frees the record */
} heddle_owner;

/* One row for each state, one bit for each state that may follow. */
HEDDLE_TRANSITIONS(heddle_owner_may_change,
    [HEDDLE_OWNER_LOOP] = 1 << HEDDLE_OWNER_AT_REST | 1 << HEDDLE_OWNER_HANDOFF | 1 << HEDDLE_OWNER_RELEASED,
    [HEDDLE_OWNER_AT_REST] = 1 << HEDDLE_OWNER_LOOP | 1 << HEDDLE_OWNER_HANDOFF | 1 << HEDDLE_OWNER_RELEASED,
    [HEDDLE_OWNER_HANDOFF] = 1 << HEDDLE_OWNER_LOOP | 1 << HEDDLE_OWNER_AT_REST | 1 << HEDDLE_OWNER_RELEASED,
    [HEDDLE_OWNER_RELEASED] = 0)

/* Aborts in debug builds on a transition that the table doesn't have. */
static inline void heddle_owner_check(uint8_t from, uint8_t to)
{
    HEDDLE_ASSERT(heddle_owner_may_change(from, to));
}
