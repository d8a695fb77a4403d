#ifndef HEDDLE_SCHEDULER_INTERRUPT_MASKS_H
#define HEDDLE_SCHEDULER_INTERRUPT_MASKS_H

#include "scheduler/loop.h"

/*
 * Thread.handle_interrupt delays what other threads raise. A time limit of the loop would be raised by another thread
 * in a program without a loop, so the same blocks delay it.
 */
struct heddle_interrupt_mask {
    heddle_fiber *owner; /* NULL once that has ended, or its loop was closed */
    heddle_interrupt_mask *outer;
    VALUE fiber;   /* the one that runs the block: `owner`, or nested in it. Kept alive, since this lies on its stack */
    VALUE timings; /* {class or module => :immediate, :on_blocking or :never}, on the stack of the block's caller */
};

/*
 * Does a block of `fiber` say :never for this exception, which is a class or an instance? `waiting`: the fiber that
 * would get it, `fiber` itself or one nested in it. Runs no Ruby code.
 */
bool heddle_interrupt_masked(const heddle_fiber *fiber, VALUE waiting, VALUE exception);

void heddle_fiber_mark_masks(const heddle_fiber *fiber);

/* The blocks that are still open find out that their fiber is gone. */
void heddle_fiber_drop_masks(heddle_fiber *fiber);

void heddle_define_interrupt_masks(VALUE scheduler_class);

#endif
