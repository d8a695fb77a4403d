#pragma once

#include "scheduler/loop.h"

/*
 * Wake-ups of fibers that have not begun to wait yet. Ruby first adds a fiber to the list of waiters of a Queue or
 * Mutex, and then calls the hook `block`. Code that runs in between (an instrumented hook, a TracePoint) may let
 * another thread run, which may unblock the fiber before the fiber waits.
 *
 * Only the newest wake-up of a fiber is kept, together with its blocker (the Queue or Mutex). A wait for another
 * blocker ignores the wake-up.
 */

/* Called with the GVL, on any thread. */
void heddle_early_unblock_record(heddle_loop *loop, VALUE fiber, VALUE blocker);
/*
 * Was the calling fiber unblocked for this blocker before it began to wait? If so, removes the wake-up. The
 * kernel_sleep of a subclass of Heddle::Scheduler may call #block with a blocker of its own. Then a wake-up for any
 * blocker counts, except in Kernel#sleep.
 */
bool heddle_early_unblock_consume(heddle_loop *loop, VALUE blocker);
/*
 * Was the calling fiber unblocked before its wait in the hook kernel_sleep, which gets no blocker? Always removes the
 * wake-up. Returns true only in Mutex#sleep (and so ConditionVariable#wait), which may end early, as Ruby documents.
 * Kernel#sleep must not end early: its fiber is in no list of waiters, so the wake-up was for an earlier wait.
 */
bool heddle_early_unblock_consume_asleep(heddle_loop *loop);
