#pragma once

#include "scheduler/loop.h"

/*
 * Prepares the current fiber for its next use. Removes its storage, fiber-locals, instance variables and pending
 * interrupt. Removes also the time limits and interrupt masks of abandoned nested fibers. Returns 0, or the state of a
 * raised exception.
 */
int heddle_fiber_reset(heddle_fiber *fiber);

void Init_heddle_fiber_reset(void);
