#pragma once

#include "scheduler/loop.h"

/*
 * Handles fibers that a program entered by Fiber#transfer. When such a fiber ends, Ruby switches to the thread's root
 * fiber, with the ended fiber's value or exception. But the root fiber runs the loop. The task that called
 * Fiber#transfer expects the value or exception. So the loop switches to that task, where Fiber#transfer returns or
 * raises.
 */

/* Called when a switch from the loop's fiber has returned; its value is in `switching.returned`. */
void heddle_foreign_return(heddle_loop *loop);
/*
 * Called instead of heddle_foreign_return if the switch has raised: `state` is the result of rb_protect, and the error
 * is in errinfo. Passes the error to the task that expects it, and sets `state` to 0, or to the state of an exception
 * raised meanwhile. Changes nothing if the error is for the loop itself.
 */
void heddle_foreign_raise(heddle_loop *loop, int *state);
