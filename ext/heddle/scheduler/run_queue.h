#pragma once

/*
 * The run queue of a loop: which fibers run in a tick, and in which order. First, each fiber that was ready when the
 * tick began runs, then one preempted fiber (a fiber that had used up its time slice).
 */

#include "scheduler/loop.h"

/* Runs the fibers whose turn it is in this tick. */
void heddle_loop_run_ready(heddle_loop *loop);

/* Is any fiber ready or preempted? */
static inline bool heddle_loop_has_queued(const heddle_loop *loop)
{
    return heddle_token_ring_count(&loop->ready) || heddle_token_ring_count(&loop->preempted);
}

/* Will Ruby release the stack of an ended fiber when this park's fiber is switched to (heddle_park_note_target)? */
static inline bool heddle_park_returns_stack(const heddle_park *park)
{
    return park->switched_to && !RTEST(rb_fiber_alive_p(park->switched_to));
}

/* Updates the loop's state before a switch to this park's fiber. */
static inline void heddle_loop_prepare_switch(heddle_loop *loop, heddle_park *park)
{
    park->queued = false;
    loop->current = park->owner;
    loop->switching.switching_to = park;
    loop->switching.left_by_wait = false;
    loop->statistics.switches++;
    heddle_loop_advance_heartbeat(loop);
}
