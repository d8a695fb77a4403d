#pragma once

#include <ruby.h>

/* Heddle::Scheduler.guard_pages */
void Init_heddle_guard_pages(VALUE scheduler_class);

/*
 * Called with the exception raised by an attempt to start a fiber. If it is Ruby's FiberError about a missing stack,
 * returns a copy whose message states the limit and how to raise it. Otherwise returns the same exception.
 */
VALUE heddle_fiber_limit_error(VALUE exception);
