#pragma once

/*
 * The states of a loop.
 *
 *   from        to         when
 *   UNOPENED    OPEN       it is first used: the selector is opened, on the thread that then owns the loop
 *   OPEN        RUNNING    heddle_loop_run, or a fiber that waits where nothing runs the loop
 *   RUNNING     RUNNING    the same, from within a run
 *   RUNNING     OPEN       the run ends
 *   RUNNING     UNOPENED   the same, where the run had to open it again after a fork
 *   OPEN        UNOPENED   a child process notices the fork: the parent's selector is not the child's
 *   UNOPENED    RUNNING    in a child whose program ends: the parent's run goes on in it
 *   any         CLOSED     the scheduler is closed, or collected
 */

#include "selector/assert.h"

typedef enum {
    HEDDLE_LOOP_UNOPENED,
    HEDDLE_LOOP_OPEN,
    HEDDLE_LOOP_RUNNING,
    HEDDLE_LOOP_CLOSED,
} heddle_loop_state;

/* A row for each state, a bit for each state that may follow it. */
static inline bool heddle_loop_may_enter(uint8_t from, uint8_t to)
{
    enum {
        UNOPENED = 1 << HEDDLE_LOOP_UNOPENED,
        OPEN = 1 << HEDDLE_LOOP_OPEN,
        RUNNING = 1 << HEDDLE_LOOP_RUNNING,
        CLOSED = 1 << HEDDLE_LOOP_CLOSED,
    };
    static const uint8_t allowed[] = {
        [HEDDLE_LOOP_UNOPENED] = OPEN | RUNNING | CLOSED,
        [HEDDLE_LOOP_OPEN] = UNOPENED | RUNNING | CLOSED,
        [HEDDLE_LOOP_RUNNING] = UNOPENED | OPEN | RUNNING | CLOSED,
        [HEDDLE_LOOP_CLOSED] = 0,
    };
    return allowed[from] >> to & 1;
}
