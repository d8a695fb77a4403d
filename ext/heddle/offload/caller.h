#pragma once

/*
 * Decides whether the native calls of a fiber may be offloaded, and whether an exception may be raised in the fiber
 * now. Postpones exceptions that must not be raised before the fiber's native call has returned.
 */

#include "scheduler/loop.h"

/*
 * The interval at which a call is interrupted again (ns): a signal has no effect if it arrives just before the system
 * call that it should interrupt.
 */
enum { HEDDLE_INTERRUPT_INTERVAL = 10 * 1000 * 1000 };

/*
 * Returns the loop of the calling fiber if the fiber's native calls may be offloaded, which is possible only in the
 * main Ractor. Otherwise returns NULL: the calls run as without Heddle.
 */
heddle_loop *heddle_offload_find_loop(void);

/* Is the calling fiber in a block of without_offload? */
bool heddle_offload_is_refused(void);

/*
 * May an exception be raised in the calling fiber here? No in a signal handler, during a garbage collection, and in the
 * fiber that runs the loop.
 */
bool heddle_offload_may_interrupt(heddle_loop *loop);

/*
 * Is an exception pending for the calling fiber? If so, postpones it: heddle_offload_raise_postponed or the fiber's
 * next wait raises it.
 */
bool heddle_offload_postpone_errors(heddle_loop *loop);

/* Called when an extension checks for interrupts. Raises the exception that was postponed, if there is one. */
void heddle_offload_raise_postponed(void);

/*
 * Postpones the exception of `state` (from rb_protect), as heddle_offload_postpone_errors does, because the native code
 * that made the call expects the call to return. A kill or a throw can't be postponed: this function continues it and
 * does not return.
 */
void heddle_offload_postpone_cancellation(heddle_loop *loop, int state);

/* Called once. */
void heddle_offload_caller_setup(void);
