#ifndef HEDDLE_FIBER_RESET_H
#define HEDDLE_FIBER_RESET_H

#include "scheduler/loop.h"

/*
 * Takes from the current fiber what one use must not see of another: its storage, fiber-locals, instance variables,
 * an interrupt that has not struck, time limits and interrupt masks of nested fibers that were left. 0, or the state of
 * what was raised.
 */
int heddle_fiber_reset(heddle_fiber *fiber);

void Init_heddle_fiber_reset(void);

#endif
