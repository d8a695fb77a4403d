#pragma once

/*
 * A wait in place blocks the whole loop instead of switching to another fiber. Ruby code must wait in place
 * if a library that is listed as not re-entrant has called it (a callback). The thread waits as it would without a
 * scheduler: other threads run, other fibers don't.
 */

#include "scheduler/loop.h"

#include <poll.h>

/*
 * Must the calling fiber wait in place? If so, records the library and the line of code for the stall report. While no
 * loaded library is listed as not re-entrant, this costs one comparison, and otherwise a search of the fiber's stack.
 */
bool heddle_must_wait_in_place(heddle_loop *loop);

/*
 * Must a native call that could be offloaded run in place, because a library that is not re-entrant has called the Ruby
 * code that makes the native call? Returns false if the library itself makes the call.
 */
bool heddle_must_call_in_place(heddle_loop *loop);

/*
 * Waits until one of these descriptors is ready, `*woken` is true (`woken` may be NULL), or the deadline
 * (CLOCK_MONOTONIC ns; < 0: none) has passed. Returns the number of ready descriptors, or 0. Raises the exceptions that
 * any wait of this fiber may raise, and SystemCallError.
 */
int heddle_wait_in_place(heddle_loop *loop, struct pollfd *polls, nfds_t count, int64_t deadline, const bool *woken);
