#ifndef HEDDLE_FOREIGN_RETURN_H
#define HEDDLE_FOREIGN_RETURN_H

#include "scheduler/loop.h"

/*
 * A fiber that a program entered by Fiber#transfer has nobody to return to: when it ends, Ruby switches to the thread's
 * root fiber, with its value or its exception. That fiber runs the loop. For a task the root fiber is the task, so the
 * loop switches on to it, and Fiber#transfer returns or raises there.
 */

/* After each switch from the loop's fiber, with what it returned in `returned`. */
void heddle_foreign_return(heddle_loop *loop);
/*
 * The same for an exception: `state` is rb_protect's, with the error in errinfo. Afterwards it is 0, or that of what was
 * raised then. An exception that is the loop's own is left alone.
 */
void heddle_foreign_raise(heddle_loop *loop, int *state);
/* Switches to a fiber once more, for its end (`ending`). */
void heddle_loop_switch_to_ending(heddle_loop *loop);

#endif
