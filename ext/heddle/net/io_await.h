#pragma once

/*
 * Waits for an IO that belongs to no loop. The caller may run in a Heddle loop, under another fiber scheduler, or in a
 * plain thread.
 */

#include "scheduler/io_wait.h"

/*
 * Waits until `io` is ready for one of these events, or until `deadline` (CLOCK_MONOTONIC in ns; < 0: no limit).
 * Returns the ready events, or 0 after the deadline. Raises IOError if the IO is closed meanwhile, and any interrupt of
 * this fiber or thread.
 */
int heddle_await_io(VALUE io, int events, int64_t deadline);

/*
 * Lets the other ready fibers of a Heddle loop run. Raises the same errors as heddle_await_io. Does nothing and returns
 * false if the caller is not in a Heddle loop, or if the calling fiber must not switch.
 */
bool heddle_await_tick(VALUE io);
