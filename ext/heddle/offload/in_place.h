#pragma once

/*
 * Native calls that run on the loop's own thread, and how Timeout.timeout ends them. The loop's timers don't run during
 * such a call. So a native thread ends the call when a time limit of its fiber has passed: it calls the unblocking
 * function that the library has given to Ruby. Without Heddle, Timeout's thread makes Ruby do the same.
 */

#include "scheduler/loop.h"

#include <ruby/thread.h>

/*
 * Called before the call: raises the pending exceptions of its fiber. With RB_NOGVL_INTR_FAIL it raises nothing, but
 * returns false if one is pending. Then the call must not run, as in Ruby: its caller checks for interrupts next.
 */
bool heddle_in_place_begin(heddle_loop *loop, int flags);

/* Like rb_nogvl, but a time limit of the fiber ends the call. */
void *heddle_in_place_run(heddle_loop *loop, void *(*function)(void *data), void *data, rb_unblock_function_t *unblock,
                          void *unblock_data, int flags);

/* Called after the call: raises exceptions that are pending now, or keeps them for the caller's check. */
void heddle_in_place_end(heddle_loop *loop, int flags);

/* Like rb_thread_call_with_gvl. No time limit ends the native function while its callback runs. */
void *heddle_in_place_call_back(void *(*function)(void *data), void *data);
