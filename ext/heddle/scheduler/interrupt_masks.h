#pragma once

#include "scheduler/loop.h"

/*
 * An interrupt mask: an open block of Thread.handle_interrupt, which delays exceptions that other threads raise.
 * Without a loop, Ruby's Timeout raises the exceptions of time limits from another thread, so these blocks delay them.
 * They must delay the loop's time limits in the same way.
 */
struct heddle_interrupt_mask {
    heddle_fiber *owner; /* NULL after heddle_fiber_drop_masks */
    heddle_interrupt_mask *outer;
    /*
     * the fiber that runs the block: `owner`, or one nested in it; marked, so that its stack, on which this record
     * lies, is not freed
     */
    VALUE fiber;
    /* {class or module => :immediate, :on_blocking or :never}; kept alive by the stack of the block's caller */
    VALUE timings;
};

/*
 * Does the innermost block of `fiber` that concerns this exception (a class or an instance) have :never for it?
 * `waiting`: the fiber in which the exception would be raised, `fiber` itself or one nested in it. Runs no Ruby code.
 */
bool heddle_interrupt_masked(const heddle_fiber *fiber, VALUE waiting, VALUE exception);
/* Does that block have :never or :on_blocking, so that code between two waits must not be interrupted? */
bool heddle_interrupt_delayed(const heddle_fiber *fiber, VALUE running, VALUE exception);

void heddle_fiber_mark_masks(const heddle_fiber *fiber);

/*
 * Unlinks the fiber's masks, whose blocks may still be open. Called when the fiber has ended or is reset
 * (net/fiber_reset.h), and when its loop is closed.
 */
void heddle_fiber_drop_masks(heddle_fiber *fiber);

void heddle_define_interrupt_masks(VALUE scheduler_class);
