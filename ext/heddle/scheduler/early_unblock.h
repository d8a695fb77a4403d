#ifndef HEDDLE_EARLY_UNBLOCK_H
#define HEDDLE_EARLY_UNBLOCK_H

#include "scheduler/loop.h"

/*
 * Wake-ups that came before their fiber had parked. Ruby lists a fiber with its queue or mutex first and calls the hook
 * then. Code that runs in between (an instrumented hook, a TracePoint) may let another thread run, which unblocks it.
 *
 * Only the newest one of a fiber is kept, with the blocker it was for: a later wait for something else does not see it.
 */

/* With the GVL, from any thread. */
void heddle_early_unblock_keep(heddle_loop *loop, VALUE fiber, VALUE blocker);
/* True, once: the calling fiber was unblocked for this blocker before it parked. */
bool heddle_early_unblock_take(heddle_loop *loop, VALUE blocker);
/*
 * The same for kernel_sleep, which gets no blocker. Mutex#sleep (and with it ConditionVariable#wait) may end early,
 * as Ruby documents; Kernel#sleep may not, and its fiber is in no list: a kept unblock is stale.
 */
bool heddle_early_unblock_take_asleep(heddle_loop *loop);

#endif
