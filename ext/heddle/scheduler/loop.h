#pragma once

/*
 * The run loop of one thread: ready fibers, waiting fibers, timers.
 *
 * In each tick it runs a snapshot of the ready tokens, each once, then at most one preempted fiber, then asks the
 * selector. All functions are called with the GVL, on the loop's thread, unless they say otherwise.
 */

#include "selector/clock.h"
#include "scheduler/spin.h"
#include "scheduler/inbox.h"
#include "scheduler/timer_heap.h"
#include "scheduler/token_ring.h"
#include "selector/selector.h"
#include "scheduler/heartbeat.h"
#include "scheduler/loop_hooks.h"
#include "scheduler/loop_states.h"
#include "scheduler/quantum.h"
#include "scheduler/account.h"

#include <ruby.h>
#include <ruby/st.h>
#include <ruby/version.h>

#define HEDDLE_SWITCH_RETURNS_STACKS (RUBY_API_VERSION_CODE >= 30400)

typedef struct heddle_loop heddle_loop;
typedef struct heddle_fiber heddle_fiber;
typedef struct heddle_park heddle_park;
typedef struct heddle_timeout heddle_timeout;
typedef struct heddle_interrupt_mask heddle_interrupt_mask;
typedef struct heddle_attachment heddle_attachment;

/*
 * One wait of one fiber. It lies on that fiber's own stack, so waiting allocates nothing. Its token (slot and
 * generation) becomes invalid when the fiber leaves the park: a later wake-up with that token does nothing.
 */
struct heddle_park {
    heddle_loop *loop;
    heddle_fiber *owner; /* the scheduled fiber that the wait counts for: `fiber` itself, or the one that resumed it */
    VALUE fiber;         /* the fiber that waits */
    uint32_t slot, generation;
    bool queued;    /* its token is in the ready or preempted ring */
    bool woken;     /* the wait was ended */
    bool timed_out; /* the wait was ended by its deadline */
    bool switched_away;      /* the fiber has switched away and not come back */
    bool idle;   /* the fiber is idle: it does not keep the loop running */
    bool blocked;   /* in the hooks block or kernel_sleep, which Ruby's unblock ends */
    bool unblocked; /* unblock has ended the wait: for that unlock or push no other fiber was woken */
    VALUE switched_to; /* see heddle_park_note_target */
    VALUE interrupt;   /* raised at the end of this very wait (fiber_interrupt.h), or 0 */
    bool put_back;  /* the fiber was left by Fiber#raise or #transfer and queued again; the switch to it may fail */
    bool preempted; /* the fiber does not wait: it has used up its time slice */
    uint8_t waits_for; /* a heddle_spent, for the account of its request */
    int64_t ready_at;  /* when it was woken; 0: not yet, or there is no account */
    heddle_timer timer;
    heddle_park *outer; /* the owner's park before this one */
    heddle_park *next, *previous;
};

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

/* A part of the loop beside its fibers (sockets, for example): the loop marks it and calls it when the loop closes. */
struct heddle_attachment {
    VALUE object;
    void (*closing)(heddle_attachment *attachment); /* called while the loop is still complete; detaches itself */
    /* Called at the end of a tick, after its poll, while the loop's `work_waits` is set. Never raises. */
    void (*begin_work)(heddle_attachment *attachment);
    heddle_attachment *next, *previous;
};

typedef struct {
    heddle_park *park;
    uint32_t generation;
    uint32_t next_free;
} heddle_slot;

/* The parts of heddle_loop, one struct for each concern. */

/* The slots of the parks; a token is a slot and its generation. */
typedef struct {
    heddle_slot *items;
    uint32_t count, first_free;
} heddle_loop_slots;

/* The last switch and the next one; see foreign_return.h. */
typedef struct {
    bool left_by_wait; /* the last switch to the loop's fiber was made by a wait, not by Ruby */
    VALUE returned;    /* the value of Ruby's last switch to the loop's fiber */
    heddle_park *next_unblocked; /* the park to switch to before any other */
    heddle_park *switching_to;       /* the park that the loop is switching to */
    VALUE last_target; /* the Fiber that it last switched to; marked as park->switched_to is */
    VALUE ending;  /* a fiber that the loop has to switch to once more so that it can end; or Qfalse */
} heddle_loop_switching;

/* The run of the loop: see heddle_loop_run. */
typedef struct {
    heddle_park *until; /* the fiber whose wait runs the loop: the run ends when this park is woken */
    /*
     * 1 while a scheduled fiber runs the loop: in a child of fork without a block, the forking fiber, after its own end
     */
    size_t runs_in_fiber;
    /*
     * In a forked child: the scheduled fiber that called fork, or Qfalse. It is the child's program, as a thread that
     * forks is, and runs the loop itself wherever it waits. So signals are raised in it, and Ruby takes it for the
     * thread's root fiber, to which other fibers return when they end. The parent's code that ran the loop must not
     * continue in the child.
     */
    VALUE forked_by;
    bool parent_ran; /* the parent's loop ran at that fork: the code that ran it waits in the loop's `fiber` */
} heddle_loop_runs;

/* Waits for IO that Heddle has not created, and notes (scheduler/io_wait.h); both indexed by descriptor. */
typedef struct {
    struct heddle_io_wait **waits;
    uint8_t *notes;
    int size;
    size_t wait_count;
    heddle_loop_message reopened; /* from heddle_io_fail_reopened_waits to this loop's thread */
    bool reopened_posted;
    int64_t swept; /* when the waits were last checked for closed IOs, and the number of switches at that time */
    uint64_t swept_switches;
} heddle_loop_io;

/* See fiber_interrupt.h. */
typedef struct {
    VALUE deferred;              /* Hash: a Fiber, and what its next wait raises; 0 until needed */
    VALUE proxies;               /* Array of pairs, a proxy and an exception, for `message`; 0 until needed */
    heddle_loop_message message; /* to this loop's thread: there are proxies */
    bool posted;
    VALUE in_place; /* the running fiber while it waits in place, or 0 */
} heddle_loop_interrupts;

/* Read by the watch thread and by other processes. */
typedef struct {
    heddle_heartbeat *heartbeat;     /* while the loop runs, in the main Ractor; else NULL */
    uint64_t word;                   /* odd */
    /* start of the current tick, from the coarse clock; 0: asleep; NULL: not published */
    _Atomic int64_t *published_tick;
    int64_t awake_since; /* when the loop last slept, or a message kept it from it; only while ticks are published */
    bool unreported;                 /* it serves no requests of the application: none of its stalls is noted */
} heddle_loop_watch;

/* See preempt.h. */
typedef struct {
    VALUE switched_to; /* the Fiber that the last switch on this thread led to, while `hooked` */
    bool hooked;
    int64_t slice_ended; /* CPU time of the thread when a fiber last had used up its slice, ns */
    bool killed; /* the thread was killed while a preempted fiber ran, where the kill can't be raised */
} heddle_loop_preempt;

/* Counters, for tests and for `heddle top`. */
typedef struct {
    uint64_t ticks, switches, waits, preemptions;
    uint64_t asleep; /* ns in the selector, with nothing to do */
} heddle_loop_statistics;

struct heddle_loop {
    VALUE scheduler;
    VALUE thread;
    VALUE fiber; /* the Fiber that runs the loop, to which fibers switch when they wait */
    VALUE body;  /* the body of all fibers; see fiber.c */
    VALUE starter, starting, start_home, start_error; /* see starter.h; starter: 0 until needed */

    const heddle_selector_operations *operations;
    heddle_selector *selector; /* NULL until first needed, and in a child after fork */
    unsigned fork_generation;

    heddle_token_ring ready, preempted;
    uint32_t left; /* ready fibers that this tick has still to run */
    unsigned preempted_turns; /* how many turns preempted fibers have had */
    bool work_waits; /* an attachment has work to begin: `begin_work` is called at the end of the tick */
    heddle_loop_slots slots;

    heddle_timer_heap timers;
    heddle_inbox inbox;
    /* 1 while the loop is in a blocking wait or about to enter one: a thread that posts a message must wake it */
    _Atomic int sleeping;
    /* until when the loop polls its inbox instead of sleeping, because it expects a message; or 0 */
    int64_t spin_until;
    heddle_spin spins;

    heddle_fiber *fibers;
    size_t fiber_count;
    unsigned starts; /* how many fibers were started by fibers in this tick */
    /* Tables whose keys are Fibers, that is addresses: they are marked and pinned as long as they are in there. */
    struct st_table *by_fiber;  /* scheduled fibers */
    struct st_table *by_waiter; /* parks of fibers that the program made itself */
    heddle_fiber implicit;         /* the implicit task: owns the waits of fibers that no scheduled fiber has resumed */
    heddle_park *parks;
    size_t park_count;
    size_t idle; /* how many parks, and so fibers, don't keep the loop running */
    heddle_attachment *attachments;
    VALUE early_unblocks; /* 0 until needed; see early_unblock.h */
    heddle_loop_interrupts interrupts;
    VALUE waiting_method; /* the method that called io_read last only to try, and waits on its own: a frame of
                             rb_profile_frames; or 0 */

    /* the scheduled fiber that runs now, itself or by a nested fiber; NULL while the loop itself runs */
    heddle_fiber *current;
    heddle_loop_switching switching;
    heddle_loop_runs run;
    uint8_t state; /* heddle_loop_state, changed by heddle_loop_enter alone */
    bool in_main_ractor;
    heddle_loop *next, *previous; /* the loops of the main Ractor: see heddle_loop_each_in_main_ractor */

    size_t armed;   /* armed waiters: waits that the kernel or another process can end */
    int64_t polled; /* when a selector with `pending_unknown` was last polled */
    int64_t ran_since; /* when this tick began to run fibers; 0: no request has an account */
    int64_t held_since; /* the same while the loop asks for events, which may have come at any time since; else 0 */
    heddle_loop_io io;
    heddle_loop_watch watch;
    heddle_loop_preempt preempt;
    heddle_loop_statistics statistics;
};

/* The transition is checked in debug builds. */
static inline void heddle_loop_enter(heddle_loop *loop, heddle_loop_state state)
{
    HEDDLE_ASSERT(heddle_loop_may_enter(loop->state, state));
    loop->state = state;
}

static inline bool heddle_loop_is_running(const heddle_loop *loop)
{
    return loop->state == HEDDLE_LOOP_RUNNING;
}

static inline bool heddle_loop_is_closed(const heddle_loop *loop)
{
    return loop->state == HEDDLE_LOOP_CLOSED;
}

/* nil: -1. Raises as Kernel#sleep does for an invalid duration. */
int64_t heddle_parse_duration(VALUE seconds);
/* Is it too large to be a limit, such as Float::INFINITY? heddle_parse_duration raises RangeError for it. */
bool heddle_never_comes(VALUE seconds);
/* The keyword timeout: of a method that has this many positional arguments and no other keyword; -1 when not given. */
int64_t heddle_parse_timeout(int argc, const VALUE *argv, int positional);
/* Returns INT64_MAX instead of an overflow. */
int64_t heddle_deadline_after(int64_t duration);

/* -- life -------------------------------------------------------------------------------------------------------- */

void heddle_loop_initialize(heddle_loop *loop, VALUE scheduler, const heddle_selector_operations *operations);
/* Opens the selector if it is not open; handles a fork; raises when the loop is closed. */
void heddle_loop_open(heddle_loop *loop);
bool heddle_in_main_ractor(void);
void heddle_loop_release(heddle_loop *loop);
/* Calls the function for each loop of the main Ractor, of all threads: from this Ractor, with the GVL. */
void heddle_loop_each_in_main_ractor(void (*visit)(heddle_loop *loop, int argument), int argument);
void heddle_loop_mark(heddle_loop *loop);
void heddle_loop_compact(heddle_loop *loop);
size_t heddle_loop_memory_size(const heddle_loop *loop);
void heddle_loop_attach(heddle_loop *loop, heddle_attachment *attachment);
void heddle_loop_detach(heddle_loop *loop, heddle_attachment *attachment); /* idempotent */
/* Counts forks of this process; set up once. */
void heddle_fork_watch(void);
/* Is this a child's copy of a parent's loop? Opening it makes it the child's own. */
bool heddle_loop_forked(const heddle_loop *loop);
/* Forgets the parent's fibers at its first call in a forked child; must be called before `current` changes. */
void heddle_loop_notice_fork(heddle_loop *loop);
/* One tick: runs the fibers that are ready, asks the selector, and waits for it where no fiber is ready. */
void heddle_loop_tick(heddle_loop *loop);
/* Is there a fiber beside the idle ones and the one that runs the loop itself? */
bool heddle_loop_has_live_fiber(const heddle_loop *loop);

/* Does the fiber belong to a request within its quantum? */
static inline bool heddle_fiber_has_quantum_left(const heddle_fiber *fiber)
{
    return heddle_quantum_is_left(fiber->quantum, fiber->request_number);
}
/* Is a fiber ready, or preempted, for whose last wait `test` is true? */
bool heddle_loop_has_ready(const heddle_loop *loop, bool (*test)(const heddle_park *park));

/* Runs ticks until no fiber is left. Raises what is raised into it; the loop stays consistent. */
void heddle_loop_run(heddle_loop *loop);
/* The same for a fiber that waits while the loop does not run: runs the loop itself until the park is woken. */
void heddle_loop_run_until(heddle_loop *loop, heddle_park *park);
/*
 * The fiber that a waiting fiber can switch to directly, without the loop's fiber. NULL: switch to the loop's fiber,
 * which has other work first.
 */
heddle_park *heddle_loop_choose_next(heddle_loop *loop, const heddle_park *leaving);
/* Makes the loop start another tick. From any thread, with or without the GVL. */
void heddle_loop_wake(heddle_loop *loop);

/* -- the heartbeat ----------------------------------------------------------------------------------------------- */

/* Begins to watch this loop, on this thread. True if the caller has to call heddle_loop_end_watch. */
bool heddle_loop_begin_watch(heddle_loop *loop);
void heddle_loop_end_watch(heddle_loop *loop);
/* The current heartbeat was found late: notes a stall. `idle`: the loop has waited in the selector since. */
void heddle_loop_note_late(heddle_loop *loop, bool idle);

static inline void heddle_loop_check_heartbeat(heddle_loop *loop, bool idle)
{
    int verdict = atomic_load_explicit(&loop->watch.heartbeat->verdict, memory_order_relaxed);
    if (__builtin_expect(verdict != HEDDLE_IN_TIME, 0))
        heddle_loop_note_late(loop, idle);
}

/* Called when another fiber, or another request in the same fiber, begins to run. */
static inline void heddle_loop_advance_heartbeat(heddle_loop *loop)
{
    if (!loop->watch.heartbeat)
        return;
    loop->watch.word += 2;
    atomic_store_explicit(&loop->watch.heartbeat->label, loop->current ? loop->current->label : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&loop->watch.heartbeat->word, loop->watch.word, memory_order_relaxed);
    heddle_loop_check_heartbeat(loop, false);
}

/* -- fibers ------------------------------------------------------------------------------------------------------ */

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
/*
 * The outermost passed timeout of the fiber whose block contains `running`, the fiber itself or one nested in it; NULL
 * if there is none. The caller sets `raised`, which marks the timeout as raised.
 */
heddle_timeout *heddle_fiber_timeout_due(heddle_fiber *fiber, VALUE running);
VALUE heddle_timeout_exception(heddle_timeout *timeout); /* runs Ruby code */
/* Raises the exception at the fiber's current wait, or else at its next one. */
void heddle_fiber_interrupt(heddle_fiber *fiber, VALUE exception);
/* The scheduled fiber that the calling fiber counts for; never NULL. */
heddle_fiber *heddle_fiber_current(heddle_loop *loop);

/* -- parks ------------------------------------------------------------------------------------------------------- */

void heddle_park_enter(heddle_loop *loop, heddle_park *park);
/* Says what this wait is for, in the account of the request. At first it is for IO, or what an adapter has said. */
static inline void heddle_park_waits_for(heddle_park *park, heddle_spent part)
{
    if (heddle_spent_beats(part, park->owner->spender.waits_for))
        park->waits_for = part;
}
void heddle_park_leave(heddle_park *park); /* idempotent */
VALUE heddle_park_leave_ensured(VALUE park); /* the same for rb_ensure */
bool heddle_park_entered(const heddle_park *park);
/* Called when the fiber runs again: sets `current`. */
void heddle_park_finish_switch(heddle_park *park);
/*
 * Notes the fiber that is switched to, if that is not the loop's. When a fiber switches back, Ruby 3.4 reads the record
 * of the fiber switched to without marking it, and returns its stack if it has ended. So it is marked until then. If it
 * has ended, Ruby's list of vacant stacks is locked before the switch back (fiber_stacks.h). Ruby 3.3 leaves the stack
 * to the collector, so there the fiber is not marked.
 */
static inline void heddle_park_note_target(heddle_park *park, VALUE fiber)
{
    park->switched_to = HEDDLE_SWITCH_RETURNS_STACKS ? fiber : Qfalse;
}
/* Wakes the park at this time (CLOCK_MONOTONIC ns); < 0: never. */
void heddle_park_set_deadline(heddle_park *park, int64_t deadline);
/* From here until it is woken or left, this park does not keep the loop running. */
void heddle_park_mark_idle(heddle_park *park);
/*
 * Switches to the loop until the park is woken. Raises interrupts and timeouts. Call it under rb_ensure with
 * heddle_park_leave.
 */
void heddle_park_wait(heddle_park *park);
/* The same for a wait whose result the caller doesn't need: leaves the park in any case. */
void heddle_park_wait_and_leave(heddle_park *park);
/* As heddle_park_wait, but pending exceptions are raised at the next wait. */
void heddle_park_wait_uninterruptibly(heddle_park *park);
/*
 * The same, and leaves the park. Neither Fiber#raise nor Fiber#kill in another fiber ends this wait, but an exception
 * of the loop itself does: the park is not woken then. Returns the state for rb_jump_tag; 0: nothing was raised.
 */
int heddle_park_wait_until_woken_and_leave(heddle_park *park);
/*
 * Before a switch: an exception that was raised on the thread for this fiber, the calling one, and that a mask delays,
 * would be raised in the first fiber without a mask. It is raised at the fiber's next wait instead.
 */
void heddle_fiber_keep_error(heddle_fiber *fiber);
/* Raises the exception that a wait of the calling fiber would raise at its beginning. */
void heddle_fiber_raise_pending(heddle_loop *loop, VALUE fiber);
/*
 * Raises a time limit that an interrupt mask has delayed, unless another mask delays it. Cancellations, and time limits
 * that have just passed, are not raised here: code between two waits does not expect them.
 */
void heddle_fiber_raise_delayed(heddle_loop *loop, VALUE fiber);
/*
 * Waits for a submitted operation. An exception meanwhile cancels the operation and is raised after its last event:
 * until then the kernel owns the operation's memory.
 */
void heddle_park_wait_completion(heddle_park *park, heddle_waiter *waiter);
/* Ends the wait. Idempotent; from any thread with the GVL. */
void heddle_park_wake(heddle_park *park);
/* Puts the park at the end of the preempted queue: the fiber runs after all ready ones have had a tick. */
void heddle_park_wake_preempted(heddle_park *park);
/*
 * Takes the first fiber out of the preempted queue: it never runs again, and does not keep the loop running. Returns
 * its park; NULL: there is none.
 */
heddle_park *heddle_park_abandon_preempted(heddle_loop *loop);
/* The park in which this very fiber waits, or NULL. */
heddle_park *heddle_park_find(heddle_loop *loop, VALUE fiber);

/* -- waits that only the selector can end ------------------------------------------------------------------------ */

/* Arms the waiter in the selector and counts it: a loop with armed waiters is not deadlocked. */
int heddle_loop_arm(heddle_loop *loop, heddle_waiter *waiter);
void heddle_loop_disarm(heddle_loop *loop, heddle_waiter *waiter);
int heddle_loop_submit(heddle_loop *loop, heddle_waiter *waiter, const heddle_operation *operation);
/* Must be called by each one-shot or final callback. */
static inline void heddle_loop_count_disarmed(heddle_loop *loop)
{
    loop->armed--;
}

/* The loop of a Heddle::Scheduler. */
heddle_loop *heddle_loop_of(VALUE scheduler);
/* The same, or NULL for an object of another class. */
heddle_loop *heddle_loop_if(VALUE scheduler);
/* The same for the calling thread: raises unless it owns the loop, and handles closed loops and forks. */
heddle_loop *heddle_loop_get(VALUE scheduler);

/* Called before a switch from the calling fiber. */
static inline void heddle_loop_note_switch(heddle_loop *loop)
{
    if (__builtin_expect(heddle_reporting_callbacks, 0))
        heddle_hooks.report_callback(loop);
}
