#pragma once

#include <ruby.h>

/* Heddle::Scheduler.guard_pages */
void Init_heddle_guard_pages(VALUE scheduler_class);

/*
 * For an exception that the start of a fiber raised: if it is Ruby's FiberError about a stack that it could not get, a
 * copy that says what the limit is and how to raise it; else the same exception.
 */
VALUE heddle_fiber_limit_error(VALUE exception);
