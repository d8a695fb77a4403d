#ifndef HEDDLE_STARTER_H
#define HEDDLE_STARTER_H

#include "scheduler/loop.h"

/*
 * The first switch to a fiber, from the one that runs the loop. Qnil, or the error of a fiber that has got no stack.
 *
 * The loop runs on a blocking fiber, and Ruby (3.3 and 3.4 at least) miscounts those when such a first switch fails
 * from there: afterwards every fiber of the thread passes for a blocking one, and no wait goes through the scheduler
 * any more. So another fiber, a non-blocking one, makes the switch.
 */
VALUE heddle_starter_switch(heddle_loop *loop, VALUE fiber);
/* Makes it and gives it its stack, while there is one to be had. */
void heddle_starter_prepare(heddle_loop *loop);

#endif
