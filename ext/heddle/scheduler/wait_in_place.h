#ifndef HEDDLE_WAIT_IN_PLACE_H
#define HEDDLE_WAIT_IN_PLACE_H

/*
 * Waits that hold the loop up: in Ruby code that a library calls which no other fiber may enter meanwhile. The thread
 * waits as it would without a scheduler; other threads run, no other fiber does.
 */

#include "scheduler/loop.h"

#include <poll.h>

/*
 * Must the calling fiber wait in place? Notes for the stall report which library's call it is in, and where. Costs a
 * comparison while no such library is loaded, then a look at the fiber's stack.
 */
bool heddle_must_wait_in_place(heddle_loop *loop);

/* The same of a native call that could be offloaded, unless it is the library itself that makes it. */
bool heddle_must_call_in_place(heddle_loop *loop);

/*
 * Until one of these descriptors is ready, `woken` (may be NULL) is true or the deadline (CLOCK_MONOTONIC ns; < 0: none)
 * has passed. How many are ready, or 0. Raises what any wait of this fiber raises, and SystemCallError.
 */
int heddle_wait_in_place(heddle_loop *loop, struct pollfd *polls, nfds_t count, int64_t deadline, const bool *woken);

#endif
