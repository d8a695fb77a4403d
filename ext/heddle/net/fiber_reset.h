#pragma once

#include "scheduler/loop.h"

/*
 * Prepares the current fiber, which is pooled, for its next request. Removes its storage, fiber-local variables,
 * instance variables and pending interrupt. Also removes the time limits and interrupt masks that abandoned Enumerators
 * have left. Returns 0, or the state of rb_protect if an exception was raised.
 */
int heddle_fiber_reset(heddle_fiber *fiber);

void Init_heddle_fiber_reset(void);
