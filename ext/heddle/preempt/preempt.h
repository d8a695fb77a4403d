#pragma once

/*
 * Preempts a fiber that computes in Ruby beyond its time slice. The watch thread triggers a postponed job
 * (ruby/debug.h), which Ruby runs where it takes interrupts, and which switches to the loop there. Ruby's own thread
 * switches happen at the same points, so all code must allow for them. It is safe for these reasons, too:
 * - Ruby swallows exceptions that are raised in such a job. So the job does nothing while an interrupt of the thread is
 *   pending. An exception that is raised in the fiber meanwhile is delivered by Thread#raise, from another thread, when
 *   the job ends.
 * - Ruby takes interrupts within a switch of fibers, before it reads the value that the switch passes: a switch at that
 *   point would lose an Enumerator's value or the exception of Fiber#raise. A hook at each switch, called after that
 *   point, notes where the switch led to; the job does nothing unless that is the current fiber.
 * - Ruby runs the jobs that were triggered together one after another, and this one may not return for long. So that
 *   finalizers don't wait for it, it first only triggers itself again.
 * - Heddle's own Ruby code expects switches only where it waits: it is not interrupted.
 */

#include "scheduler/loop.h"
#include "scheduler/own_code.h"

/* Switches the hook of this thread's loop on or off; must not be called within a switch of fibers. */
void heddle_preempt_follow(heddle_loop *loop, bool follow);
/* Raises the delivered exception that Thread.handle_interrupt has delayed in the calling fiber. */
void heddle_preempt_raise_delivered_error(heddle_fiber *fiber);
/*
 * Takes a delivered exception back from the thread: it is raised at the fiber's next wait or in its next slice, or
 * dropped with the fiber.
 */
void heddle_preempt_take_back_error(heddle_fiber *fiber);
/* Raises a kill of the loop's thread in the loop's fiber, where no other code can raise it. */
void heddle_preempt_raise_kill(heddle_loop *loop);

/*
 * Called before a loop runs. The watch thread is paused when the program ends; this continues it for loops in later
 * at_exit handlers, which run tests, for example.
 */
void heddle_preempt_register_end(void);

/* Makes the calling thread raise the exception as soon as it takes interrupts again. False: that was not possible. */
bool heddle_exception_deliver(VALUE exception);

void Init_heddle_preempt(VALUE heddle);
