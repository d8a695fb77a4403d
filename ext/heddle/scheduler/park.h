#pragma once

/* The waits of fibers. All functions are called with the GVL, on the loop's thread, unless they say otherwise. */

#include "scheduler/timer_heap.h"
#include "selector/selector.h"

#include <ruby.h>
#include <ruby/version.h>

#define HEDDLE_SWITCH_RETURNS_STACKS (RUBY_API_VERSION_CODE >= 30400)

typedef struct heddle_loop heddle_loop;
typedef struct heddle_fiber heddle_fiber;
typedef struct heddle_park heddle_park;

/*
 * One wait of one fiber. It lies on that fiber's own stack (except a `queue_park`, which lies in the fiber's record),
 * so waiting allocates nothing. Its token (slot and generation) becomes invalid when the fiber leaves the park: a later
 * wake-up with that token does nothing.
 */
struct heddle_park {
    heddle_loop *loop;
    /* the scheduled fiber for which `fiber` waits: `fiber` itself, or the fiber that has resumed it */
    heddle_fiber *owner;
    VALUE fiber;         /* the fiber that waits */
    uint32_t slot, generation;
    bool queued;    /* its token is in the ready or preempted ring */
    bool woken;     /* the wait was ended */
    bool timed_out; /* the wait was ended by its deadline */
    bool switched_away;      /* the fiber has switched away and not come back */
    bool one_tick; /* the loop, which does not run yet, wakes the park after its first tick */
    bool idle;   /* the fiber is idle: it does not keep the loop running */
    bool blocked;   /* the fiber waits in the hook block or kernel_sleep; the hook unblock can end this wait */
    /* the hook unblock has ended the wait; Ruby has woken only this fiber for the unlocked mutex or the pushed item */
    bool unblocked;
    VALUE switched_to; /* see heddle_park_note_target */
    VALUE interrupt;   /* the exception to raise at the end of this wait (fiber_interrupt.h), or 0 */
    /* the fiber has called Fiber#raise or #transfer of another fiber, and was queued again; switching to it may fail */
    bool put_back;
    bool preempted; /* the fiber does not wait: it has used up its time slice */
    uint8_t waits_for; /* a heddle_spent: the part of the request's time account (account.h) that the wait counts as */
    int64_t ready_at;  /* when the awaited event occurred; 0 if it has not, or if the request has no account */
    heddle_timer timer;
    heddle_park *outer; /* the park that the owner entered before this one, and has not left yet */
    heddle_park *next, *previous;
};

void heddle_park_enter(heddle_loop *loop, heddle_park *park);
void heddle_park_leave(heddle_park *park); /* idempotent */
VALUE heddle_park_leave_ensured(VALUE park); /* calls heddle_park_leave; for rb_ensure */
bool heddle_park_entered(const heddle_park *park);
/* Called when the fiber runs again: sets the loop's `current`. */
void heddle_park_finish_switch(heddle_park *park);
/*
 * Records the target of the switch by which this park's fiber leaves. Not called if the target is the loop's fiber.
 * When this park's fiber continues, Ruby 3.4 reads the target's record, and releases the target's stack if the target
 * has ended. But Ruby does not keep that record from being garbage collected. So Heddle marks the target until then. If
 * the target has ended, Heddle also locks Ruby's list of vacant stacks before the switch back (fiber_stacks.h). Ruby
 * 3.3 leaves the stack to the garbage collector, so there is nothing to mark.
 */
static inline void heddle_park_note_target(heddle_park *park, VALUE fiber)
{
    park->switched_to = HEDDLE_SWITCH_RETURNS_STACKS ? fiber : Qfalse;
}
/* Makes the loop wake the park at this time (CLOCK_MONOTONIC ns). Does nothing if the time is negative. */
void heddle_park_set_deadline(heddle_park *park, int64_t deadline);
/* Marks the park idle: until it is woken or left, it does not keep the loop running. */
void heddle_park_mark_idle(heddle_park *park);
/*
 * Suspends the fiber until the park is woken. Raises interrupts and timeouts; if the hook unblock has woken the park,
 * they are raised at the fiber's next wait. Call this function in rb_ensure, and leave the park in the ensure function
 * (heddle_park_leave_ensured).
 */
void heddle_park_wait(heddle_park *park);
/* Waits like heddle_park_wait, and then leaves the park, even if an exception ends the wait. */
void heddle_park_wait_and_leave(heddle_park *park);
/* Waits like heddle_park_wait, but pending exceptions are raised only at the next wait. */
void heddle_park_wait_uninterruptibly(heddle_park *park);
/*
 * Waits like heddle_park_wait_uninterruptibly, and leaves the park. Other fibers can't end this wait by Fiber#raise or
 * Fiber#kill. An exception raised by the loop itself ends it; then the park's `woken` is false. Returns the state for
 * rb_jump_tag, or 0 if nothing was raised.
 */
int heddle_park_wait_until_woken_and_leave(heddle_park *park);
/*
 * Waits for a submitted operation. An exception or the park's deadline cancels the operation. The function returns or
 * raises only after the operation's last event, because until then the kernel uses the operation's memory.
 */
void heddle_park_wait_completion(heddle_park *park, heddle_waiter *waiter);
/* Ends the wait. Idempotent. May be called on any thread with the GVL. */
void heddle_park_wake(heddle_park *park);
/* Puts the park at the end of the preempted queue: all fibers that are ready run before it. */
void heddle_park_wake_preempted(heddle_park *park);
/*
 * Removes the first fiber from the preempted queue. That fiber never runs again, and does not keep the loop running.
 * Returns the fiber's park, or NULL if no fiber is preempted.
 */
heddle_park *heddle_park_abandon_preempted(heddle_loop *loop);
/* Returns the park in which this fiber itself waits, or NULL. */
heddle_park *heddle_park_find(heddle_loop *loop, VALUE fiber);
