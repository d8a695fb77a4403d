#pragma once

/* The fibers of a loop, and their time limits. All functions are called with the GVL, on the loop's thread. */

#include "scheduler/account.h"
#include "scheduler/park.h"
#include "scheduler/quantum.h"

typedef struct heddle_timeout heddle_timeout;
typedef struct heddle_interrupt_mask heddle_interrupt_mask;

/*
 * A fiber that this scheduler started. A nested fiber (an Enumerator's) acts for the one that resumed it.
 */
struct heddle_fiber {
    heddle_loop *loop;
    VALUE fiber;
    VALUE job;
    VALUE interrupt;          /* the exception to raise at its current or next wait, or Qundef */
    unsigned calls_inline;    /* the number of open blocks in which native calls are not offloaded */
    bool must_raise;               /* an exception is pending: an interrupt, or a timeout that has passed */
    heddle_timeout *timeouts; /* its open timeout_after blocks, innermost first */
    heddle_interrupt_mask *masks; /* its open Thread.handle_interrupt blocks, innermost first */
    heddle_park *park;        /* its innermost wait, or NULL */
    heddle_park *parent_park;     /* the fiber that started it and continues at its first wait */
    /* its own park in the queue: while it is to be started, or put back after a foreign switch */
    heddle_park queue_park;
    unsigned unpreempted;     /* the number of open without_preemption blocks */
    VALUE delivered_error;         /* the exception that preemption raised on its thread for it, or 0 */
    /*
     * Writes what the fiber does into `text`, for reports: returns the number of bytes, 0 if there is nothing to say.
     * NULL: unknown.
     */
    size_t (*describe)(heddle_fiber *fiber, char *text, size_t size);
    /* The request that reports name: an object, and a number in it for `describe`; child fibers inherit all three. */
    VALUE request; /* or nil */
    unsigned request_number;
    heddle_quantum *quantum; /* what the request has computed, in the object `request`; NULL: not known; inherited */
    heddle_spender spender;    /* counts its time in the request's account; inherited */
    /* the hashed label of its request, by which other processes know what blocks this one; 0: none; inherited */
    uint32_t label;
    heddle_fiber *next, *previous;
};

struct heddle_timeout {
    heddle_timer timer;
    heddle_fiber *owner; /* NULL once the fiber has ended, or its loop was closed: then the timeout is not raised */
    heddle_timeout *outer;
    /* the fiber that runs the block: the owner, or one nested in it. Marked, because this record lies on its stack */
    VALUE fiber;
    VALUE exception; /* class or instance, and message, as for Kernel#raise; on the waiting fiber's stack */
    VALUE asked;     /* the exception as given to Timeout.timeout, see convert_exception */
    VALUE message;
    VALUE raised;    /* the exception raised for it, or Qundef */
    bool fired;
    bool delayed;    /* an interrupt mask has delayed it, at a wait or a preemption: it is raised at the mask's end */
};

/* Makes a fiber that calls job.call once it is started or enqueued. */
heddle_fiber *heddle_fiber_spawn(heddle_loop *loop, VALUE job);
/* Runs the fiber at once, until its first wait; then the caller continues. Raises FiberError when it gets no stack. */
void heddle_fiber_start(heddle_fiber *fiber);
heddle_park *heddle_fiber_take_parent_park(heddle_fiber *fiber);
/* Queues the fiber for a later tick. */
void heddle_fiber_enqueue(heddle_fiber *fiber);
/* The first switch to the fiber has failed: reports that to the scheduler and removes the fiber. */
void heddle_fiber_handle_start_failure(heddle_fiber *fiber, VALUE error);
/* rb_fiber_transfer without arguments, with rb_protect's signature. */
static inline VALUE heddle_fiber_transfer(VALUE fiber)
{
    return rb_fiber_transfer(fiber, 0, NULL);
}
/* The same with the checks of Fiber#transfer: without them Ruby continues a fiber that has resumed another one. */
static inline VALUE heddle_fiber_transfer_checked(VALUE fiber, int count, const VALUE *values)
{
    return rb_fiber_transfer_kw(fiber, count, values, RB_NO_KEYWORDS);
}
bool heddle_is_fiber_error(VALUE error);
/* The fiber was killed before it ran: reports that to the scheduler and removes the fiber. */
void heddle_fiber_handle_kill(heddle_fiber *fiber);
void heddle_fiber_setup(void); /* once */
/* The block that the fibers of a scheduler's loop run. */
VALUE heddle_fiber_make_body(VALUE scheduler);
/* Invalidates the fiber's timeouts and interrupt masks, whose blocks may still be on a stack. */
void heddle_fiber_drop_timeouts(heddle_fiber *fiber);
/* May the wait of `waiting`, the timeout's owner or a fiber that it has resumed, be within the timeout's block? */
bool heddle_timeout_covers_wait(const heddle_timeout *timeout, VALUE waiting);
/* Does an interrupt mask delay it there? */
bool heddle_timeout_masked(const heddle_timeout *timeout, VALUE waiting);
/* Gives the fiber's `queue_park` a slot; raises NoMemoryError. */
void heddle_fiber_reserve_queue_park(heddle_fiber *fiber);
heddle_fiber *heddle_fiber_find(heddle_loop *loop, VALUE fiber);
/* Raises the exception at the fiber's current wait, or else at its next one. */
void heddle_fiber_interrupt(heddle_fiber *fiber, VALUE exception);
/* The scheduled fiber that the calling fiber counts for; never NULL. */
heddle_fiber *heddle_fiber_current(heddle_loop *loop);

/* Does the fiber belong to a request within its quantum? */
static inline bool heddle_fiber_has_quantum_left(const heddle_fiber *fiber)
{
    return heddle_quantum_is_left(fiber->quantum, fiber->request_number);
}

/* Says what this wait is for, in the account of the request. At first it is for IO, or what an adapter has said. */
static inline void heddle_park_waits_for(heddle_park *park, heddle_spent part)
{
    if (heddle_spent_beats(part, park->owner->spender.waits_for))
        park->waits_for = part;
}
/*
 * Before a switch: an exception that was raised on the thread for this fiber, the calling one, and that a mask delays,
 * would be raised in the first fiber without a mask. It is raised at the fiber's next wait instead.
 */
void heddle_fiber_keep_error(heddle_fiber *fiber);

/* -- pending_exceptions.c ------------------------------------------------------------------------------------------ */

/* A deadline may have passed while the fiber computed: it is raised at its next wait, not a tick later. */
void heddle_fiber_fire_passed_timeouts(heddle_fiber *fiber);
/*
 * Raises the first one of these: an exception that preemption raised on the thread for this fiber, an interrupt, the
 * outermost timeout.
 */
void heddle_park_raise_pending(heddle_park *park);
/*
 * The outermost passed timeout of the fiber whose block contains `running`, the fiber itself or one nested in it; NULL
 * if there is none. The caller sets `raised`, which marks the timeout as raised.
 */
heddle_timeout *heddle_fiber_timeout_due(heddle_fiber *fiber, VALUE running);
VALUE heddle_timeout_exception(heddle_timeout *timeout); /* runs Ruby code */
/* Raises the exception that a wait of the calling fiber would raise at its beginning. */
void heddle_fiber_raise_pending(heddle_loop *loop, VALUE fiber);
/*
 * Raises a time limit that an interrupt mask has delayed, unless another mask delays it. Cancellations, and time limits
 * that have just passed, are not raised here: code between two waits does not expect them.
 */
void heddle_fiber_raise_delayed(heddle_loop *loop, VALUE fiber);
