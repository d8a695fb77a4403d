#pragma once

#include "scheduler/fiber_notes.h"
#include "scheduler/loop.h"

/*
 * The hook fiber_interrupt: IO#close raises IOError in the fibers that wait for the IO (Ruby >= 4.0). Ruby calls it on
 * any thread, and then waits until each of these fibers has left its call. So the exception belongs to the wait that
 * the fiber is in at that moment, and not to a later one: it is kept in the park.
 */

/* Raises the exception; if it is frozen, a copy, because raising sets the backtrace. */
NORETURN(void heddle_interrupt_raise(VALUE exception));

/*
 * Calls the original Thread#raise. A thread whose loop serves overrides that method, and drops exceptions from other
 * threads.
 */
VALUE heddle_thread_raise(VALUE thread, VALUE exception);

/*
 * Called when the fiber does not wait, or must not raise in its current wait: its next wait raises the exception. Drops
 * the exception of Ruby's IO#close, which is a frozen object: the interrupted call itself checks whether its IO is
 * closed, and may have ended before the next wait.
 */
void heddle_interrupt_defer(heddle_loop *loop, VALUE fiber, VALUE exception);

/*
 * Called when a wait in place ends, perhaps by another exception. Drops the exception of an IO#close during that wait,
 * which must not reach a later wait.
 */
void heddle_interrupt_leave_in_place(heddle_loop *loop, VALUE fiber);

void heddle_interrupt_raise_kept(heddle_loop *loop, VALUE fiber);

static inline void heddle_interrupt_raise_deferred(heddle_loop *loop, VALUE fiber)
{
    if (__builtin_expect(heddle_fiber_notes_any(loop->interrupts.deferred), 0))
        heddle_interrupt_raise_kept(loop, fiber);
}
