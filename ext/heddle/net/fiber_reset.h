#pragma once

#include "scheduler/loop.h"

/*
 * Removes everything that one use of the current fiber must not leave to the next: storage, fiber-locals, instance
 * variables, a pending interrupt, and the time limits and interrupt masks of abandoned nested fibers. Returns 0, or the
 * state of a raised exception.
 */
int heddle_fiber_reset(heddle_fiber *fiber);

void Init_heddle_fiber_reset(void);
