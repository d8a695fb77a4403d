#ifndef HEDDLE_PREEMPT_H
#define HEDDLE_PREEMPT_H

/*
 * A fiber that computes in Ruby beyond its slice gives way to the others: the watch triggers a job (a postponed one,
 * ruby/debug.h) that Ruby runs where it takes interrupts, and that switches to the loop there.
 *
 * Ruby's own thread switches demand the same of any code at these points. Beside that it is safe for these reasons:
 *
 * - Ruby swallows what is raised in such a job. So it does nothing while an interrupt of the thread is pending, and an
 *   exception that strikes the fiber meanwhile is given to it by Thread#raise, from another thread, as the job ends.
 * - Ruby takes interrupts within a switch of fibers, before it reads the value that the switch passes: to switch there would lose
 *   an Enumerator's value or the exception of Fiber#raise. A hook on each switch, called after that point, notes where
 *   it led to; the job does nothing as long as that is not the current fiber.
 * - Ruby runs the jobs that were triggered together one after the other, and this one may not come back for long: so
 *   that no finalizer waits for it, it first does nothing but trigger itself again.
 * - Heddle's own code in Ruby reckons with switches only where it waits: it is not interrupted.
 */

#include "scheduler/loop.h"
#include "scheduler/own_code.h"

/* Switches the hook of this thread's loop on or off; not within a switch of fibers. */
void heddle_preempt_follow(heddle_loop *loop, bool follow);
/* Raises what was delivered to the calling fiber, if Thread.handle_interrupt has kept it until now. */
void heddle_preempt_raise_delivered(heddle_fiber *fiber);
/* The same when it is not to be raised here: at the fiber's next wait, or in its next slice. It may be let go. */
void heddle_preempt_take_back(heddle_fiber *fiber);
/* Raises, in the loop, for a kill of its thread that nothing else can give effect to. */
void heddle_preempt_raise_kill(heddle_loop *loop);

/*
 * Before a loop runs: the watch, which ends with the program, goes on if this is a handler of the program's end
 * (at_exit) that comes after that; there tests are run, for example.
 */
void heddle_preempt_see_to_end(void);

/*
 * Gives an exception to the calling thread, which is raised as soon as it takes interrupts again. false: it could not.
 */
bool heddle_exception_deliver(VALUE exception);

void Init_heddle_preempt(VALUE heddle);

#endif
