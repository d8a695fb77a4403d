#pragma once

/*
 * Native calls in place, that is, on the loop's own thread, and the time limits of Timeout.timeout that end them. The
 * loop's timers don't run during such a call. So another native thread ends the call when a time limit of the call's
 * fiber has passed. To do so, this thread calls the unblocking function that the library has passed to Ruby. Without
 * Heddle, Ruby does the same when Timeout's thread raises the exception.
 */

#include "scheduler/loop.h"

#include <ruby/thread.h>

/*
 * Called before the native call. Returns whether the call may run. If the fiber has time limits and an exception is
 * pending for it, raises the exception. With RB_NOGVL_INTR_FAIL, returns false instead, and the caller checks for
 * interrupts next, as in Ruby.
 */
bool heddle_in_place_begin(heddle_loop *loop, int flags);

/* Like rb_nogvl, but a time limit of the fiber ends the call. */
void *heddle_in_place_run(heddle_loop *loop, void *(*function)(void *data), void *data, rb_unblock_function_t *unblock,
                          void *unblock_data, int flags);

/*
 * Called after the native call. If the fiber has time limits and an exception is pending for it now, raises the
 * exception. With RB_NOGVL_INTR_FAIL, postpones it instead, to the caller's check for interrupts.
 */
void heddle_in_place_end(heddle_loop *loop, int flags);

/* Like rb_thread_call_with_gvl. No time limit ends the native function while its callback runs. */
void *heddle_in_place_call_back(void *(*function)(void *data), void *data);
