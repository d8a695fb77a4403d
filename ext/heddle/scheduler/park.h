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
 * One wait of one fiber. It lies on that fiber's own stack, so waiting allocates nothing. Its token (slot and
 * generation) becomes invalid when the fiber leaves the park: a later wake-up with that token does nothing.
 */
struct heddle_park {
    heddle_loop *loop;
    /* the scheduled fiber to which the wait belongs: `fiber` itself, or the fiber that has resumed it */
    heddle_fiber *owner;
    VALUE fiber;         /* the fiber that waits */
    uint32_t slot, generation;
    bool queued;    /* its token is in the ready or preempted ring */
    bool woken;     /* the wait was ended */
    bool timed_out; /* the wait was ended by its deadline */
    bool switched_away;      /* the fiber has switched away and not come back */
    bool idle;   /* the fiber is idle: it does not keep the loop running */
    bool blocked;   /* in the hooks block or kernel_sleep, which Ruby's unblock ends */
    bool unblocked; /* unblock has ended the wait, and has woken no other fiber for that unlock or push */
    VALUE switched_to; /* see heddle_park_note_target */
    VALUE interrupt;   /* the exception to raise at the end of this wait (fiber_interrupt.h), or 0 */
    bool put_back;  /* Fiber#raise or #transfer has left the fiber, which was queued again; switching to it may fail */
    bool preempted; /* the fiber does not wait: it has used up its time slice */
    uint8_t waits_for; /* a heddle_spent, for the account of its request */
    int64_t ready_at;  /* when it was woken; 0: not yet, or there is no account */
    heddle_timer timer;
    heddle_park *outer; /* the owner's park before this one */
    heddle_park *next, *previous;
};

void heddle_park_enter(heddle_loop *loop, heddle_park *park);
void heddle_park_leave(heddle_park *park); /* idempotent */
VALUE heddle_park_leave_ensured(VALUE park); /* the same for rb_ensure */
bool heddle_park_entered(const heddle_park *park);
/* Called when the fiber runs again: sets `current`. */
void heddle_park_finish_switch(heddle_park *park);
/*
 * Notes the target of a switch, if that is not the loop's fiber. When a fiber switches back, Ruby 3.4 reads the
 * target's record without marking it, and returns the target's stack if the target has ended. So the target is marked
 * until then. If it has ended, Ruby's list of vacant stacks is locked before the switch back (fiber_stacks.h). Ruby 3.3
 * leaves the stack to the collector, so there the fiber is not marked.
 */
static inline void heddle_park_note_target(heddle_park *park, VALUE fiber)
{
    park->switched_to = HEDDLE_SWITCH_RETURNS_STACKS ? fiber : Qfalse;
}
/* Wakes the park at this time (CLOCK_MONOTONIC ns); < 0: never. */
void heddle_park_set_deadline(heddle_park *park, int64_t deadline);
/* Marks the park idle: until it is woken or left, it does not keep the loop running. */
void heddle_park_mark_idle(heddle_park *park);
/*
 * Switches to the loop until the park is woken. Raises interrupts and timeouts. Call it under rb_ensure with
 * heddle_park_leave.
 */
void heddle_park_wait(heddle_park *park);
/* Waits like heddle_park_wait, and leaves the park in any case. For callers that don't need the result. */
void heddle_park_wait_and_leave(heddle_park *park);
/* Waits like heddle_park_wait, but pending exceptions are raised only at the next wait. */
void heddle_park_wait_uninterruptibly(heddle_park *park);
/*
 * Waits in the same way, and leaves the park. Fiber#raise and Fiber#kill in other fibers do not end this wait. An
 * exception of the loop itself ends it: then the park was not woken. Returns the state for rb_jump_tag, or 0 if nothing
 * was raised.
 */
int heddle_park_wait_until_woken_and_leave(heddle_park *park);
/*
 * Waits for a submitted operation. An exception cancels the operation, and is raised after the last event of the
 * operation: until then the kernel owns the operation's memory.
 */
void heddle_park_wait_completion(heddle_park *park, heddle_waiter *waiter);
/* Ends the wait. Idempotent. May be called on any thread with the GVL. */
void heddle_park_wake(heddle_park *park);
/* Puts the park at the end of the preempted queue: the fiber runs after all ready ones have had a tick. */
void heddle_park_wake_preempted(heddle_park *park);
/*
 * Takes the first fiber out of the preempted queue. That fiber never runs again, and does not keep the loop running.
 * Returns the fiber's park, or NULL if there is none.
 */
heddle_park *heddle_park_abandon_preempted(heddle_loop *loop);
/* The park in which this fiber itself waits, or NULL. */
heddle_park *heddle_park_find(heddle_loop *loop, VALUE fiber);
