#ifndef HEDDLE_OFFLOAD_IN_PLACE_H
#define HEDDLE_OFFLOAD_IN_PLACE_H

/*
 * Native calls that run on the loop's own thread. The loop's timers don't run meanwhile. So a thread of the process ends
 * such a call when a time limit of its fiber has passed: through the function that the library gave Ruby for that, as
 * Timeout's thread does in plain Ruby.
 */

#include "scheduler/loop.h"

#include <ruby/thread.h>

/*
 * Before the call: raises what is due in its fiber. With RB_NOGVL_INTR_FAIL it raises nothing, but returns false where
 * something is due. Then the call must not run, as in Ruby: its caller takes interrupts next.
 */
bool heddle_in_place_begin(heddle_loop *loop, int flags);

/* rb_nogvl, but the fiber's time limits end the call. */
void *heddle_in_place_run(heddle_loop *loop, void *(*function)(void *data), void *data, rb_unblock_function_t *unblock,
                          void *unblock_data, int flags);

/* After it: raises what has become due, or leaves it for the caller that takes interrupts. */
void heddle_in_place_end(heddle_loop *loop, int flags);

/* rb_thread_call_with_gvl: while the callback runs, no time limit ends the native function that has called it. */
void *heddle_in_place_call_back(void *(*function)(void *data), void *data);

#endif
