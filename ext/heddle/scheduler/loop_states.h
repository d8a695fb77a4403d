#pragma once

/*
 * The states of a loop.
 *
 *   from        to         when
 *   UNOPENED    OPEN       the loop is first used, or is first used in a forked child: the calling thread opens the
 *                          selector, and owns the loop from then on
 *   OPEN        RUNNING    heddle_loop_run is called, or a fiber waits while nothing runs the loop
 *   RUNNING     OPEN       the run ends
 *   RUNNING     UNOPENED   a forked child notices the fork during a run; or a run ends in a forked child that has not
 *                          opened a selector
 *   OPEN        UNOPENED   a forked child notices the fork: it can't use the parent's selector
 *   UNOPENED    RUNNING    in a forked child, the fiber that called fork ends: the parent's run continues there
 *   any         CLOSED     the scheduler is closed, or garbage collected
 */

#include "selector/transitions.h"

typedef enum {
    HEDDLE_LOOP_UNOPENED,
    HEDDLE_LOOP_OPEN,
    HEDDLE_LOOP_RUNNING,
    HEDDLE_LOOP_CLOSED,
} heddle_loop_state;

/* One row for each state, with a bit for each state that may follow it. */
HEDDLE_TRANSITIONS(heddle_loop_may_enter,
    [HEDDLE_LOOP_UNOPENED] = 1 << HEDDLE_LOOP_OPEN | 1 << HEDDLE_LOOP_RUNNING | 1 << HEDDLE_LOOP_CLOSED,
    [HEDDLE_LOOP_OPEN] = 1 << HEDDLE_LOOP_UNOPENED | 1 << HEDDLE_LOOP_RUNNING | 1 << HEDDLE_LOOP_CLOSED,
    [HEDDLE_LOOP_RUNNING] = 1 << HEDDLE_LOOP_UNOPENED | 1 << HEDDLE_LOOP_OPEN | 1 << HEDDLE_LOOP_CLOSED,
    [HEDDLE_LOOP_CLOSED] = 0)
