#pragma once

#include "scheduler/fiber_notes.h"
#include "scheduler/loop.h"

/*
 * The hook fiber_interrupt: IO#close raises IOError in the fibers that wait for the IO (Ruby >= 4.0). Ruby calls it on
 * any thread, and then waits until each of these fibers has left its call. So the exception belongs to the wait that
 * the fiber is in at that moment, and not to a later one: it is kept in the park.
 */

/* Raises a frozen exception as a copy of its own: to raise sets the backtrace. */
NORETURN(void heddle_interrupt_raise(VALUE exception));

/* Calls Thread#raise itself: a thread whose loop serves overrides it, and drops exceptions from other threads. */
VALUE heddle_thread_raise(VALUE thread, VALUE exception);

/*
 * The fiber does not wait, or may not raise where it waits: its next wait raises the exception. Not the one of Ruby's
 * IO#close, a frozen object: the call that it is for checks by itself whether its IO is closed, and may be over before
 * the next wait.
 */
void heddle_interrupt_defer(heddle_loop *loop, VALUE fiber, VALUE exception);

/* A wait in place ends, maybe by another exception: the one of an IO#close meanwhile is not for a later wait. */
void heddle_interrupt_leave_in_place(heddle_loop *loop, VALUE fiber);

void heddle_interrupt_raise_kept(heddle_loop *loop, VALUE fiber);

static inline void heddle_interrupt_raise_deferred(heddle_loop *loop, VALUE fiber)
{
    if (__builtin_expect(heddle_fiber_notes_any(loop->interrupts.deferred), 0))
        heddle_interrupt_raise_kept(loop, fiber);
}
