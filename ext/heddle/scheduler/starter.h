#pragma once

#include "scheduler/loop.h"

/*
 * Makes the first switch to a fiber while the loop's fiber runs. Returns Qnil, or the error if the fiber could not
 * begin: Ruby had no stack for it, or another thread raised an exception before (see heddle_starter_visit).
 *
 * The loop runs on a blocking fiber. If a first switch from a blocking fiber fails, Ruby (at least 3.3 and 3.4)
 * miscounts the blocking fibers. From then on, every fiber of the thread counts as blocking, so waits no longer call
 * the scheduler. So the loop has a non-blocking fiber, the starter, which makes these switches.
 */
VALUE heddle_starter_switch(heddle_loop *loop, VALUE fiber);
/* Creates the starter in advance, while a stack for it is available. */
void heddle_starter_prepare(heddle_loop *loop);
/*
 * Switches from the current fiber, which belongs to the loop, to the starter and back. Returns Qnil, or the exception
 * that another thread raised meanwhile. After a kill, returns the value that heddle_take_errinfo returns for it.
 */
VALUE heddle_starter_visit(heddle_loop *loop);
