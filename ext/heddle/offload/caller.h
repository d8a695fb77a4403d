#pragma once

/*
 * Decides whether the calls of a fiber may be offloaded, and whether an exception may be raised in it now. Keeps the
 * exceptions that wait until its call has ended.
 */

#include "scheduler/loop.h"

/*
 * The loop of the calling fiber if its native calls may be offloaded (only in the main Ractor). NULL if they run as
 * without Heddle.
 */
heddle_loop *heddle_offload_find_loop(void);

/* Is the calling fiber in a block of without_offload? */
bool heddle_offload_is_refused(void);

/*
 * May an exception be raised in the calling fiber here? Not in a signal handler, nor during a garbage collection, nor
 * in the fiber that runs the loop.
 */
bool heddle_offload_may_interrupt(heddle_loop *loop);

/*
 * Is an exception pending in the calling fiber? If so, keeps it for heddle_offload_raise_postponed or the fiber's next
 * wait.
 */
bool heddle_offload_postpone_errors(heddle_loop *loop);

/* Called where an extension checks for interrupts: raises the exceptions that were postponed. */
void heddle_offload_raise_postponed(void);

/*
 * Postpones the exception of `state` (from rb_protect) to a later wait, because the native code that made the call
 * expects it to return. A kill can't be postponed: then this function does not return.
 */
void heddle_offload_postpone_cancellation(heddle_loop *loop, int state);

/* Once. */
void heddle_offload_caller_setup(void);
