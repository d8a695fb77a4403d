#pragma once

/* The fibers of a loop, and their time limits. All functions are called with the GVL, on the loop's thread. */

#include "scheduler/account.h"
#include "scheduler/park.h"
#include "scheduler/quantum.h"

typedef struct heddle_timeout heddle_timeout;
typedef struct heddle_interrupt_mask heddle_interrupt_mask;

/*
 * A scheduled fiber: one that this scheduler started. When a nested fiber waits, such as an Enumerator's, the scheduled
 * fiber that resumed it owns the wait.
 */
struct heddle_fiber {
    heddle_loop *loop;
    VALUE fiber;
    VALUE job;
    VALUE interrupt;          /* the exception to raise at its current or next wait, or Qundef */
    unsigned calls_inline;    /* the number of open blocks in which native calls are not offloaded */
    bool must_raise;               /* an exception is pending: an interrupt, or a timeout that has passed */
    heddle_timeout *timeouts; /* its open timeout_after blocks, innermost first */
    heddle_interrupt_mask *masks; /* its interrupt masks: open Thread.handle_interrupt blocks, innermost first */
    heddle_park *park;        /* its innermost wait, or NULL */
    heddle_park *parent_park; /* the park of the fiber that started it, which continues when this one first waits */
    /*
     * the park by which the fiber is queued while it does not wait: before the first switch to it, or after it has
     * called Fiber#raise or #transfer of another fiber
     */
    heddle_park queue_park;
    unsigned unpreempted;     /* the number of open without_preemption blocks */
    /* an exception that preemption has added to the thread's pending interrupts, to be raised in this fiber; or 0 */
    VALUE delivered_error;
    /*
     * Writes a description of the fiber's work into `text`, for reports, and returns its size in bytes, which may be 0.
     * NULL if the fiber has no description.
     */
    size_t (*describe)(heddle_fiber *fiber, char *text, size_t size);
    /*
     * The request that the fiber works for: an object, and the number of the request within it. `describe` uses both. A
     * fiber inherits `describe`, `request` and `request_number` from the fiber that starts it.
     */
    VALUE request; /* or nil */
    unsigned request_number;
    /*
     * counts the CPU time of the request (quantum.h); lies in the object `request`; NULL: it is not counted; inherited
     */
    heddle_quantum *quantum;
    heddle_spender spender;    /* counts its time in the request's account; inherited */
    /*
     * hash of the request's label (its method and path), by which other processes identify the request that blocks this
     * process; 0: none; inherited
     */
    uint32_t label;
    heddle_fiber *next, *previous;
};

struct heddle_timeout {
    heddle_timer timer;
    heddle_fiber *owner; /* NULL once the fiber has ended, or its loop was closed: then the timeout is not raised */
    heddle_timeout *outer;
    /*
     * the fiber that runs the block: the owner, or one nested in it; marked, so that its stack, on which this record
     * lies, is not freed
     */
    VALUE fiber;
    VALUE exception; /* `exception` and `message` are arguments of Kernel#raise; the fiber's stack keeps them alive */
    VALUE asked;     /* the exception that the caller of timeout_after requested, see timeout_hook.c */
    VALUE message;
    VALUE raised;    /* the exception that was raised for this timeout, or Qundef */
    bool fired;      /* its time has passed */
    bool delayed;    /* an interrupt mask has delayed it, at a wait or a preemption; it is raised when the mask ends */
};

/* Makes a fiber that calls job.call once it is started or enqueued. */
heddle_fiber *heddle_fiber_spawn(heddle_loop *loop, VALUE job);
/*
 * Runs the fiber at once, until its first wait; then the caller continues. Raises FiberError if Ruby has no stack for
 * it.
 */
void heddle_fiber_start(heddle_fiber *fiber);
heddle_park *heddle_fiber_take_parent_park(heddle_fiber *fiber);
/* Queues the fiber for a later tick. */
void heddle_fiber_enqueue(heddle_fiber *fiber);
/* Called when the first switch to the fiber has failed: reports that to the scheduler and removes the fiber. */
void heddle_fiber_handle_start_failure(heddle_fiber *fiber, VALUE error);
/* rb_fiber_transfer without arguments, with rb_protect's signature. */
static inline VALUE heddle_fiber_transfer(VALUE fiber)
{
    return rb_fiber_transfer(fiber, 0, NULL);
}
/*
 * Transfers with the checks of the method Fiber#transfer. Without them, Ruby would continue a fiber that has resumed
 * another fiber.
 */
static inline VALUE heddle_fiber_transfer_checked(VALUE fiber, int count, const VALUE *values)
{
    return rb_fiber_transfer_kw(fiber, count, values, RB_NO_KEYWORDS);
}
bool heddle_is_fiber_error(VALUE error);
/* Called when the fiber was killed before it ran: reports that to the scheduler and removes the fiber. */
void heddle_fiber_handle_kill(heddle_fiber *fiber);
void heddle_fiber_setup(void); /* called once */
/* The block that the fibers of a scheduler's loop run. */
VALUE heddle_fiber_make_body(VALUE scheduler);
/* Invalidates the fiber's timeouts and interrupt masks, whose blocks may still be on a stack. */
void heddle_fiber_drop_timeouts(heddle_fiber *fiber);
/*
 * May the fiber `waiting` be waiting within the timeout's block? `waiting` is the timeout's owner, or a fiber that the
 * owner has resumed.
 */
bool heddle_timeout_covers_wait(const heddle_timeout *timeout, VALUE waiting);
/* Does an interrupt mask delay the timeout in the fiber `waiting`? */
bool heddle_timeout_masked(const heddle_timeout *timeout, VALUE waiting);
/* Reserves a slot for the fiber's `queue_park`. Raises NoMemoryError if memory is exhausted. */
void heddle_fiber_reserve_queue_park(heddle_fiber *fiber);
heddle_fiber *heddle_fiber_find(heddle_loop *loop, VALUE fiber);
/* Raises the exception at the fiber's current wait, or else at its next one. */
void heddle_fiber_interrupt(heddle_fiber *fiber, VALUE exception);
/*
 * Returns the scheduled fiber that runs, or that has resumed the running fiber. If there is none, returns the loop's
 * implicit task.
 */
heddle_fiber *heddle_fiber_current(heddle_loop *loop);

/* Does the fiber belong to a request within its quantum? */
static inline bool heddle_fiber_has_quantum_left(const heddle_fiber *fiber)
{
    return heddle_quantum_is_left(fiber->quantum, fiber->request_number);
}

/*
 * Sets the part of the request's account that this wait counts as. The default is IO, or the part that an adapter of a
 * library, such as a database driver's, has set for the fiber. Does nothing if the adapter's part takes precedence
 * (heddle_spent_overrides).
 */
static inline void heddle_park_waits_for(heddle_park *park, heddle_spent part)
{
    if (heddle_spent_overrides(part, park->owner->spender.waits_for))
        park->waits_for = part;
}
/*
 * Called before the fiber, or a fiber nested in it, switches away. The thread's pending interrupts may include an
 * exception for this fiber that an interrupt mask delays (`delivered_error`). After the switch, a fiber without a mask
 * would raise this exception. So this function removes the exception from the thread, and the next wait of this fiber
 * raises it.
 */
void heddle_fiber_keep_error(heddle_fiber *fiber);

/* -- pending_exceptions.c ------------------------------------------------------------------------------------------ */

/*
 * Marks the fiber's timeouts that have passed while it computed, so that its next wait raises them at once. Without
 * this, only the next tick would notice them.
 */
void heddle_fiber_fire_passed_timeouts(heddle_fiber *fiber);
/*
 * Raises one of the exceptions that are pending for the park's owner: `delivered_error` unless an interrupt mask with
 * :never delays it, else `interrupt`, else the exception of the outermost passed timeout that may be raised now.
 * Returns if there is none.
 */
void heddle_park_raise_pending(heddle_park *park);
/*
 * Returns the outermost of the fiber's passed timeouts that may be raised in `running` (the fiber itself, or one nested
 * in it) now, or NULL. The caller must set the timeout's `raised`.
 */
heddle_timeout *heddle_fiber_timeout_due(heddle_fiber *fiber, VALUE running);
VALUE heddle_timeout_exception(heddle_timeout *timeout); /* runs Ruby code */
/* Raises the exception that the calling fiber's next wait would raise at its beginning. */
void heddle_fiber_raise_pending(heddle_loop *loop, VALUE fiber);
/*
 * Raises `delivered_error`, or else the exception of a time limit that an interrupt mask with :never has delayed,
 * unless another mask still delays it. Cancellations, and time limits that no mask has delayed, are
 * not raised here: code between two waits does not expect them.
 */
void heddle_fiber_raise_delayed(heddle_loop *loop, VALUE fiber);
