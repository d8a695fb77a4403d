/*
 * Several exceptions may be raised for a fiber while it does not run. This file chooses the one that the fiber's next
 * wait raises.
 */

#include "scheduler/fiber_interrupt.h"
#include "scheduler/interrupt_masks.h"
#include "scheduler/loop.h"

VALUE heddle_timeout_exception(heddle_timeout *timeout)
{
    VALUE arguments[] = {timeout->exception, timeout->message};
    return rb_make_exception(NIL_P(timeout->message) ? 1 : 2, arguments);
}

/*
 * Returns the outermost passed timeout that may be raised now, or NULL. Updates the fiber's `must_raise` and the
 * timeouts' `delayed`. The outermost timeout is raised first, because it unwinds all blocks within its own. A passed
 * timeout stays pending while the owner itself runs, but the timeout's block is in a nested fiber (see
 * heddle_timeout_covers_wait). It also stays pending while an interrupt mask delays it.
 */
static heddle_timeout *find_outermost_fired(heddle_fiber *fiber, VALUE running)
{
    heddle_timeout *outermost = NULL;
    fiber->must_raise = fiber->interrupt != Qundef || fiber->delivered_error;
    for (heddle_timeout *timeout = fiber->timeouts; timeout; timeout = timeout->outer) {
        if (!timeout->fired || timeout->raised != Qundef)
            continue;
        if (!heddle_timeout_covers_wait(timeout, running))
            fiber->must_raise = true;
        else if (heddle_timeout_masked(timeout, running))
            fiber->must_raise = timeout->delayed = true;
        else
            outermost = timeout;
    }
    return outermost;
}

void heddle_park_raise_pending(heddle_park *park)
{
    heddle_fiber *fiber = park->owner;
    VALUE interrupt = fiber->interrupt;
    if (fiber->delivered_error && heddle_interrupt_masked(fiber, park->fiber, fiber->delivered_error))
        heddle_fiber_keep_error(fiber);
    else if (fiber->delivered_error)
        heddle_hooks.raise_delivered_error(fiber);
    if (interrupt != Qundef) {
        fiber->interrupt = Qundef;
        rb_exc_raise(interrupt);
    }
    heddle_timeout *outermost = find_outermost_fired(fiber, park->fiber);
    if (outermost) {
        outermost->raised = heddle_timeout_exception(outermost);
        rb_exc_raise(outermost->raised);
    }
}

void heddle_fiber_fire_passed_timeouts(heddle_fiber *fiber)
{
    int64_t now = heddle_clock_now();
    for (heddle_timeout *timeout = fiber->timeouts; timeout; timeout = timeout->outer) {
        if (timeout->timer.slot && timeout->timer.deadline <= now) {
            heddle_timer_heap_remove(&fiber->loop->timers, &timeout->timer);
            timeout->fired = true;
            fiber->must_raise = true;
        }
    }
}

heddle_timeout *heddle_fiber_timeout_due(heddle_fiber *fiber, VALUE running)
{
    if (!fiber->timeouts)
        return NULL;
    heddle_fiber_fire_passed_timeouts(fiber);
    return fiber->must_raise ? find_outermost_fired(fiber, running) : NULL;
}

void heddle_fiber_raise_pending(heddle_loop *loop, VALUE fiber)
{
    heddle_park here = {.owner = heddle_fiber_current(loop), .fiber = fiber};
    if (here.owner->timeouts)
        heddle_fiber_fire_passed_timeouts(here.owner);
    if (here.owner->must_raise)
        heddle_park_raise_pending(&here);
    heddle_interrupt_raise_deferred(loop, fiber);
}

void heddle_fiber_raise_delayed(heddle_loop *loop, VALUE fiber)
{
    heddle_fiber *owner = heddle_fiber_current(loop);
    heddle_timeout *outermost = NULL;
    if (owner->delivered_error && !heddle_interrupt_delayed(owner, fiber, owner->delivered_error))
        heddle_hooks.raise_delivered_error(owner);
    for (heddle_timeout *timeout = owner->timeouts; timeout; timeout = timeout->outer) {
        if (timeout->delayed && timeout->raised == Qundef && heddle_timeout_covers_wait(timeout, fiber) &&
            !heddle_timeout_masked(timeout, fiber) && !heddle_interrupt_delayed(owner, fiber, timeout->exception))
            outermost = timeout;
    }
    if (outermost) {
        outermost->raised = heddle_timeout_exception(outermost);
        rb_exc_raise(outermost->raised);
    }
}
