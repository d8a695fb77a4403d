#pragma once

#include "scheduler/fiber_notes.h"
#include "scheduler/loop.h"

/*
 * The hook fiber_interrupt: IO#close raises IOError in the fibers that wait for the IO (Ruby >= 4.0). Ruby calls it on
 * any thread, and then waits until each of these fibers has left its call. So the exception must be raised in the wait
 * that the fiber is in at that moment, and not in a later one. The exception is stored in the park of that wait.
 */

/* Raises the exception, or a copy if it is frozen, because raising an exception sets its backtrace. */
NORETURN(void heddle_interrupt_raise(VALUE exception));

/*
 * Calls the original Thread#raise. For threads that serve requests, Heddle overrides that method to discard exceptions
 * from other threads.
 */
VALUE heddle_thread_raise(VALUE thread, VALUE exception);

/*
 * Makes the fiber's next wait raise the exception. Called when the fiber does not wait, or must not raise in its
 * current wait. Discards the exception of Ruby's IO#close (only IO#close passes a frozen one), because the interrupted
 * call itself checks whether its IO is closed, and the next wait may belong to a later call.
 */
void heddle_interrupt_defer(heddle_loop *loop, VALUE fiber, VALUE exception);

/*
 * Called when a wait in place ends, perhaps by another exception. Discards the exception of an IO#close during that
 * wait, because a later wait must not raise it.
 */
void heddle_interrupt_leave_in_place(heddle_loop *loop, VALUE fiber);

void heddle_interrupt_raise_kept(heddle_loop *loop, VALUE fiber);

static inline void heddle_interrupt_raise_deferred(heddle_loop *loop, VALUE fiber)
{
    if (__builtin_expect(heddle_fiber_notes_any(loop->interrupts.deferred), 0))
        heddle_interrupt_raise_kept(loop, fiber);
}
