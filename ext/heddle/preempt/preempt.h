#pragma once

/*
 * Preempts a fiber that computes in Ruby for longer than its time slice. The watch thread triggers a postponed job
 * (ruby/debug.h). Ruby runs the job where it handles interrupts, and the job switches to the loop. Ruby switches
 * threads at the same points, so all code must allow for a switch there. These dangers remain:
 * - Ruby discards exceptions that are raised in a postponed job. So the job does nothing while an interrupt of the
 *   thread is pending. If an exception is raised in the fiber while it is preempted, the job catches it, and a helper
 *   thread raises it again by Thread#raise when the job has ended (thread_raise.c).
 * - Ruby also handles interrupts within a switch of fibers, before it reads the value that the switch passes. A second
 *   switch at that point would lose the value of an Enumerator, or the exception of Fiber#raise. So a hook, which Ruby
 *   calls after that point, records the target of each switch. If the recorded target is not the current fiber, then
 *   either a switch is under way, or Ruby has not called the hook. Then the job looks at the frames. It preempts
 *   only if Ruby code runs and no frame further out is a switch, because a signal handler may run within a switch (see
 *   is_switching in preempt.c).
 * - Ruby runs all triggered jobs one after another, and a job that preempts returns only when the fiber continues. So
 *   the job's first run only triggers the job again. The other jobs, such as finalizers, run before its second run,
 *   which preempts.
 * - Heddle's own Ruby code expects switches only where it waits, so it is not preempted.
 */

#include "scheduler/loop.h"
#include "scheduler/own_code.h"

/*
 * Adds the exception to the calling thread's pending interrupts, so that the thread raises it when it next handles
 * interrupts. Returns false if that was not possible.
 */
bool heddle_exception_deliver(heddle_loop *loop, VALUE exception);

/*
 * Makes the fiber raise the exception at its next wait, unless the fiber already has another one to raise there. If it
 * is the exception of an expired Timeout.timeout, and the fiber is preempted before that wait, it is raised there.
 */
void heddle_exception_postpone(heddle_fiber *fiber, VALUE exception);

/*
 * Calls the function, and returns the exception that it has raised, or Qundef. If the thread is killed meanwhile, sets
 * loop->preempt.killed.
 */
VALUE heddle_exception_catch(heddle_loop *loop, VALUE (*function)(VALUE), VALUE data);

/*
 * Have Heddle's own calls exceeded the fiber's stack (SystemStackError)? The stack may be large enough for the fiber's
 * own code, so this exception must not be raised in the fiber.
 */
bool heddle_exception_is_own(VALUE error);

/*
 * Would Ruby raise a pending exception of the thread here? Ruby delays exceptions in finalizers, for example, and newer
 * versions also in hooks that wake fibers. A delayed exception belongs to the thread: after a switch, another fiber
 * would raise it. So if an earlier preemption has added an exception for this fiber to the thread, and
 * Thread.handle_interrupt still delays it, this function takes the exception from the thread. If the thread raises an
 * exception during the test, this function catches it. In both cases stores the exception in `kept`, and the caller
 * must deliver it again. Otherwise sets `kept` to Qundef.
 */
bool heddle_exception_would_be_raised(heddle_loop *loop, VALUE *kept);

VALUE heddle_exception_make_cancelled(const char *message);

/* See heddle_layer_hooks (scheduler/layer_hooks.h). */
void heddle_exception_raise_delivered(heddle_fiber *fiber);
void heddle_exception_take_back(heddle_fiber *fiber);
void heddle_exception_raise_kill(heddle_loop *loop);

void Init_heddle_preempt(VALUE heddle);
