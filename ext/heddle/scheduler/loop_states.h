#pragma once

/*
 * The states of a loop.
 *
 *   from        to         when
 *   UNOPENED    OPEN       it is first used: the selector is opened, on the thread that then owns the loop
 *   OPEN        RUNNING    heddle_loop_run, or a fiber that waits where nothing runs the loop
 *   RUNNING     RUNNING    the same, from within a run
 *   RUNNING     OPEN       the run ends
 *   RUNNING     UNOPENED   the run ends that had to open the selector again after a fork
 *   OPEN        UNOPENED   a child process notices the fork: the parent's selector is not the child's
 *   UNOPENED    RUNNING    in a child whose program ends: the parent's run continues in it
 *   any         CLOSED     the scheduler is closed, or collected
 */

#include "selector/transitions.h"

typedef enum {
    HEDDLE_LOOP_UNOPENED,
    HEDDLE_LOOP_OPEN,
    HEDDLE_LOOP_RUNNING,
    HEDDLE_LOOP_CLOSED,
} heddle_loop_state;

/* A row for each state, a bit for each state that may follow it. */
HEDDLE_TRANSITIONS(heddle_loop_may_enter,
    [HEDDLE_LOOP_UNOPENED] = 1 << HEDDLE_LOOP_OPEN | 1 << HEDDLE_LOOP_RUNNING | 1 << HEDDLE_LOOP_CLOSED,
    [HEDDLE_LOOP_OPEN] = 1 << HEDDLE_LOOP_UNOPENED | 1 << HEDDLE_LOOP_RUNNING | 1 << HEDDLE_LOOP_CLOSED,
    [HEDDLE_LOOP_RUNNING] = 1 << HEDDLE_LOOP_UNOPENED | 1 << HEDDLE_LOOP_OPEN | 1 << HEDDLE_LOOP_RUNNING |
        1 << HEDDLE_LOOP_CLOSED,
    [HEDDLE_LOOP_CLOSED] = 0)
