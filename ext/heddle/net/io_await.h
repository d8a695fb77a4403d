#pragma once

/* Waits for an IO that belongs to no loop: in a Heddle loop, under another scheduler, or in a plain thread. */

#include "scheduler/io_wait.h"

/*
 * Waits until `io` is ready for one of these events, at most until `deadline` (CLOCK_MONOTONIC ns; < 0: forever).
 * Returns the events, or 0 after the deadline. Raises IOError when the IO is closed meanwhile, and any interrupt of
 * this fiber or thread.
 */
int heddle_await_io(VALUE io, int events, int64_t deadline);

/*
 * In a Heddle loop, lets the other ready fibers run, and raises as above. Returns false elsewhere, and if the calling
 * fiber must not be switched away.
 */
bool heddle_await_tick(VALUE io);
