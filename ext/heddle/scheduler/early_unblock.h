#pragma once

#include "scheduler/loop.h"

/*
 * Wake-ups that come before their fiber has parked. Ruby adds a fiber to the list of its queue or mutex first, and
 * calls the hook then. Code that runs in between (an instrumented hook, a TracePoint) may let another thread run, which
 * unblocks the fiber.
 *
 * Only the newest wake-up of a fiber is kept, together with its blocker: a later wait for another blocker ignores it.
 */

/* With the GVL, from any thread. */
void heddle_early_unblock_record(heddle_loop *loop, VALUE fiber, VALUE blocker);
/*
 * True, once: the calling fiber was unblocked for this blocker before it parked. Where a subclass's kernel_sleep calls
 * #block, with a blocker of its own, it was unblocked for any.
 */
bool heddle_early_unblock_consume(heddle_loop *loop, VALUE blocker);
/*
 * The same for kernel_sleep, which gets no blocker. Mutex#sleep (and with it ConditionVariable#wait) may end early, as
 * Ruby documents. Kernel#sleep may not: Ruby lists its fiber nowhere, so a kept wake-up is stale.
 */
bool heddle_early_unblock_consume_asleep(heddle_loop *loop);
