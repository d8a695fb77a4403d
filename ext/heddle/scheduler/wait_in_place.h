#pragma once

/*
 * Waits that block the whole loop: in Ruby code that was called back by a library which is not re-entrant. The thread
 * waits as it would without a scheduler; other threads run, other fibers don't.
 */

#include "scheduler/loop.h"

#include <poll.h>

/*
 * Must the calling fiber wait in place? Notes the library and the place for the stall report. Costs one comparison
 * while no such library is loaded, and otherwise a search of the fiber's stack.
 */
bool heddle_must_wait_in_place(heddle_loop *loop);

/* Must a native call that could be offloaded run in place? Also returns false if the library itself makes the call. */
bool heddle_must_call_in_place(heddle_loop *loop);

/*
 * Waits until one of these descriptors is ready, `woken` (may be NULL) is true or the deadline (CLOCK_MONOTONIC ns; <
 * 0: none) has passed. Returns how many are ready, or 0. Raises the same exceptions as any other wait of this fiber,
 * and SystemCallError.
 */
int heddle_wait_in_place(heddle_loop *loop, struct pollfd *polls, nfds_t count, int64_t deadline, const bool *woken);
