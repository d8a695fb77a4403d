#pragma once

/*
 * Preempts a fiber that computes in Ruby beyond its time slice. The watch thread triggers a postponed job
 * (ruby/debug.h), which Ruby runs where it takes interrupts, and which switches to the loop there. Ruby's own thread
 * switches happen at the same points, so all code must allow for them. These dangers are left:
 * - Ruby swallows exceptions that are raised in such a job. So the job does nothing while an interrupt of the thread is
 *   pending. An exception that is raised in the fiber while it is preempted is caught in the job. When the job ends,
 *   another thread delivers it by Thread#raise.
 * - Ruby takes interrupts within a switch of fibers, before it reads the value that the switch passes: a switch at
 *   that point would lose an Enumerator's value or the exception of Fiber#raise. A hook at each switch, called after
 *   that point, notes the target of the switch. While that is not the current fiber, a switch is under way, or Ruby has
 *   not called the hook (see is_switching in preempt.c). Then the frames decide: the job does nothing unless the
 *   current code is Ruby code, and not a signal's handler that Ruby calls within a switch.
 * - Ruby runs the jobs that were triggered together one after another, and this one returns only when the fiber
 *   continues. So its first run only triggers it again: finalizers, say, run before the second run, which preempts.
 * - Heddle's own Ruby code expects switches only where it waits: it is not interrupted.
 */

#include "scheduler/loop.h"
#include "scheduler/own_code.h"

/*
 * Makes the calling thread raise the exception as soon as it takes interrupts again. Returns false if that was not
 * possible.
 */
bool heddle_exception_deliver(heddle_loop *loop, VALUE exception);

/* Makes the fiber's next wait or next slice raise the exception. */
void heddle_exception_postpone(heddle_fiber *fiber, VALUE exception);

/*
 * Calls the function, and returns the exception that it raises, or Qundef. If the thread is killed meanwhile, sets
 * `killed` of the loop.
 */
VALUE heddle_exception_catch(heddle_loop *loop, VALUE (*function)(VALUE), VALUE data);

/*
 * Would Ruby raise an exception of the thread here? Ruby delays exceptions in finalizers, for example, and newer
 * versions in the hooks that wake fibers. A delayed exception stays with the thread, which may switch to another fiber
 * meanwhile. If an earlier preemption has delivered an exception to this fiber, and Thread.handle_interrupt still
 * delays it, takes it from the thread and stores it in `kept`: the caller delivers it again. Else `kept` is Qundef.
 */
bool heddle_exception_would_be_raised(heddle_loop *loop, VALUE *kept);

VALUE heddle_exception_make_cancelled(const char *message);

/* See heddle_hooks. */
void heddle_exception_raise_delivered(heddle_fiber *fiber);
void heddle_exception_take_back(heddle_fiber *fiber);
void heddle_exception_raise_kill(heddle_loop *loop);

void Init_heddle_preempt(VALUE heddle);
