#pragma once

#include "scheduler/loop.h"

/*
 * Makes the first switch to a fiber while the loop's fiber runs. Returns Qnil, or the error when the fiber got no
 * stack.
 *
 * The loop runs on a blocking fiber. If a first switch from a blocking fiber fails, Ruby (at least 3.3 and 3.4)
 * miscounts the blocking fibers: from then on every fiber of the thread counts as blocking, and no wait calls the
 * scheduler any more. So a non-blocking fiber, the starter, makes the switch.
 */
VALUE heddle_starter_switch(heddle_loop *loop, VALUE fiber);
/* Makes the starter in advance, while a stack for it is available. */
void heddle_starter_prepare(heddle_loop *loop);
/*
 * Switches from the current fiber, which the loop runs, to the starter and back. Returns Qnil, or what another thread
 * raised meanwhile: an exception, or what heddle_take_errinfo returns for a kill.
 */
VALUE heddle_starter_visit(heddle_loop *loop);
