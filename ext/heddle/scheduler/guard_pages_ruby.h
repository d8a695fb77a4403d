#pragma once

#include <ruby.h>

/* Heddle::Scheduler.guard_pages */
void Init_heddle_guard_pages(VALUE scheduler_class);

/*
 * Improves the exception that the start of a fiber has raised. If it is Ruby's FiberError about a missing stack,
 * returns a copy whose message tells the limit and how to raise it; otherwise returns the same exception.
 */
VALUE heddle_fiber_limit_error(VALUE exception);
