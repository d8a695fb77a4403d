#pragma once

/*
 * The owner word of a connection's record says which thread may use the record. The word changes by compare-and-swap.
 * The thread whose swap succeeds owns the record.
 *
 *   from      to        by      when
 *   LOOP      AT_REST   loop    the connection waits for input or a runner (a pooled fiber), and no call uses it
 *   AT_REST   LOOP      loop    the loop handles an event or a deadline, or a runner serves the connection
 *   AT_REST   HANDOFF   watch   the loop is blocked, so the watch thread, which holds `handoff.lock`, sends it
 *   LOOP      HANDOFF   loop    the loop sends the connection to another process, in a drain for example
 *   HANDOFF   AT_REST   watch   the handoff failed
 *   HANDOFF   LOOP      loop    the handoff failed
 *   HANDOFF   RELEASED  either  another process has the connection
 *   any       RELEASED  loop    the connection was closed
 *
 * A connection with running work items is never AT_REST.
 */

#include "selector/transitions.h"

typedef enum {
    HEDDLE_OWNER_LOOP,    /* the loop, without a lock */
    HEDDLE_OWNER_AT_REST, /* the loop or the watch thread, whichever swaps first */
    HEDDLE_OWNER_HANDOFF, /* the thread that sends the connection to another process */
    HEDDLE_OWNER_RELEASED, /* no thread; the loop only frees the record */
} heddle_owner;

/* The table of the allowed transitions. Debug builds abort on any other transition. */
HEDDLE_TRANSITIONS(heddle_owner_may_change,
    [HEDDLE_OWNER_LOOP] = 1 << HEDDLE_OWNER_AT_REST | 1 << HEDDLE_OWNER_HANDOFF | 1 << HEDDLE_OWNER_RELEASED,
    [HEDDLE_OWNER_AT_REST] = 1 << HEDDLE_OWNER_LOOP | 1 << HEDDLE_OWNER_HANDOFF | 1 << HEDDLE_OWNER_RELEASED,
    [HEDDLE_OWNER_HANDOFF] = 1 << HEDDLE_OWNER_LOOP | 1 << HEDDLE_OWNER_AT_REST | 1 << HEDDLE_OWNER_RELEASED,
    [HEDDLE_OWNER_RELEASED] = 0)
