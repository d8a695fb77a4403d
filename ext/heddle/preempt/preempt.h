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



/* Makes the calling thread raise the exception as soon as it takes interrupts again. False: that was not possible. */
bool heddle_exception_deliver(VALUE exception);

void Init_heddle_preempt(VALUE heddle);
