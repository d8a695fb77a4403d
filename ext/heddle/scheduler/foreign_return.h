#pragma once

#include "scheduler/loop.h"

/*
 * Handles fibers that a program entered by Fiber#transfer. When such a fiber ends, Ruby switches to the thread's root
 * fiber, with the ended fiber's value or exception. But the root fiber runs the loop. The task that called
 * Fiber#transfer expects the value or exception. So the loop switches to that task, where Fiber#transfer returns or
 * raises.
 */

/* Called after each switch from the loop's fiber; `returned` is the switch's value. */
void heddle_foreign_return(heddle_loop *loop);
/*
 * Called instead if the switch has raised: `state` is the result of rb_protect, and the error is in errinfo. Afterwards
 * `state` is 0, or the state of an exception raised meanwhile. An exception for the loop itself stays pending.
 */
void heddle_foreign_raise(heddle_loop *loop, int *state);
