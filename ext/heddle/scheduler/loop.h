#ifndef HEDDLE_LOOP_H
#define HEDDLE_LOOP_H

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

#include <ruby.h>
#include <ruby/version.h>

#define HEDDLE_SWITCH_RETURNS_STACKS (RUBY_API_VERSION_CODE >= 30400)

typedef struct heddle_loop heddle_loop;
typedef struct heddle_fiber heddle_fiber;
typedef struct heddle_park heddle_park;
typedef struct heddle_timeout heddle_timeout;
typedef struct heddle_interrupt_mask heddle_interrupt_mask;
typedef struct heddle_attachment heddle_attachment;

/*
 * One wait of one fiber. It lives on that fiber's own stack, so that waiting allocates nothing. Its token (slot and
 * generation) is void as soon as the fiber leaves the park: a late wake-up finds nothing.
 */
struct heddle_park {
    heddle_loop *loop;
    heddle_fiber *owner; /* the scheduled fiber on whose behalf `fiber` waits: itself, or what resumed it */
    VALUE fiber;         /* the one that waits */
    uint32_t slot, generation;
    bool queued;    /* has its one live entry in the ready or preempted ring */
    bool woken;     /* somebody ended the wait */
    bool timed_out; /* … and it was the deadline */
    bool away;      /* switched away, not yet back */
    bool resting;   /* its fiber has nothing to do: it does not keep the loop running */
    bool blocked;   /* in the hooks block or kernel_sleep, which Ruby's unblock ends */
    VALUE switched_to; /* see heddle_park_note_target */
    bool put_back;  /* its fiber switched away by Fiber#raise or #transfer and was queued again; switching to it may fail */
    bool preempted; /* its fiber does not wait: it computes, and gave way to the others */
    heddle_timer timer;
    heddle_park *outer; /* the owner's park before this one */
    heddle_park *next, *previous;
};

/* A fiber that this scheduler started. Nested fibers (an Enumerator's) act on behalf of the one that resumed them. */
struct heddle_fiber {
    heddle_loop *loop;
    VALUE fiber;
    VALUE job;
    VALUE interrupt;          /* an exception for its wait or else its next one, or Qundef */
    unsigned calls_inline;    /* in so many blocks whose native calls are not offloaded */
    bool must_raise;               /* something has to be raised: an interrupt, or a timeout that fired */
    heddle_timeout *timeouts; /* the blocks of timeout_after it is in, innermost first */
    heddle_interrupt_mask *masks; /* the blocks of Thread.handle_interrupt it is in, innermost first */
    heddle_park *park;        /* where it waits, or NULL */
    heddle_park *starter;     /* the fiber that started it at once and goes on when it first waits */
    heddle_park entry;        /* its own place in the queue: to be started, or put back after a foreign switch */
    unsigned unpreempted;     /* how many blocks of without_preemption it is in */
    VALUE delivering;         /* an exception that its thread was given for it at a preemption, or 0 */
    /* Its purpose in words, for a report: the number of bytes, 0 if none. NULL: not known. */
    size_t (*describe)(heddle_fiber *fiber, char *text, size_t size);
    /* The request that reports name: an object and a number in it, see `describe`; child fibers inherit all three. */
    VALUE request; /* or nil */
    unsigned request_number;
    uint32_t label; /* of its request, hashed: another process tells by it what holds this one up. 0: none; inherited */
    heddle_fiber *next, *previous;
};

struct heddle_timeout {
    heddle_timer timer;
    heddle_fiber *owner; /* NULL once that has ended, or its loop was closed: then nothing strikes */
    heddle_timeout *outer;
    VALUE fiber;     /* whose block it is: the owner, or one nested in it; kept, as this lies on its stack */
    VALUE exception; /* class or instance, and message, as for Kernel#raise; on the waiting fiber's stack */
    VALUE message;
    VALUE raised;    /* the exception raised for it, or Qundef */
    bool fired;
    bool delayed;    /* by an interrupt mask, at a wait or a preemption: it is raised where the mask ends */
};

/*
 * Something that lives in the loop and has more than fibers: the loop keeps it alive and calls it when the loop closes.
 */
struct heddle_attachment {
    VALUE object;
    void (*closing)(heddle_attachment *attachment); /* the loop is still whole; detaches itself */
    heddle_attachment *next, *previous;
};

typedef struct {
    heddle_park *park;
    uint32_t generation;
    uint32_t next_free;
} heddle_slot;

/* Open addressing from a pinned fiber to its record; heddle_fiber_table in fiber_table.h. */
typedef struct {
    VALUE *keys;
    void **values;
    uint32_t size, count;
} heddle_fiber_table;

/* Records of the loop, one for each concern. */

/* The slots of parks; a token is a slot and its generation. */
typedef struct {
    heddle_slot *items;
    uint32_t count, first_free;
} heddle_loop_slots;

/* The last switch and the next one; see foreign_return.h. */
typedef struct {
    bool left_to_wait; /* the last switch to the loop's fiber was a wait's, not Ruby's own */
    VALUE returned;    /* the value of Ruby's last switch to the loop's fiber */
    heddle_park *next_unblocked; /* to be switched to before anybody else */
    heddle_park *arriving;       /* the fiber that the loop switches to at this moment */
    VALUE last_target; /* the fiber that it last switched to: an address, not held */
    VALUE ending;  /* a fiber that the loop is to switch to once more, for its end; or Qfalse */
} heddle_loop_switching;

/* The code that runs the loop. */
typedef struct {
    heddle_park *until; /* the fiber whose end the run waits for, which runs the loop itself */
    size_t runs_in_fiber; /* 1 when a scheduled fiber runs the loop: a forked child's, on its way out */
    /*
     * In a child process: the scheduled fiber that called fork, or Qfalse. It is the program here, as a thread that
     * forks is, and runs the loop itself wherever it waits: so signals are raised in it, and Ruby takes it for the
     * thread's root fiber, to which fibers return that end. In a forked child the parent's code that ran the loop must
     * not go on.
     */
    VALUE forked_by;
    bool parent_ran; /* … and something did run the loop: it waits in the loop's `fiber` */
} heddle_loop_runs;

/* Waits on IO that we don't own, and notes (scheduler/io_wait.h), both by descriptor. */
typedef struct {
    struct heddle_io_wait **waits;
    uint8_t *notes;
    int size;
    size_t wait_count;
    heddle_loop_message reopened; /* from heddle_io_reopened to this loop's thread */
    bool reopened_posted;
    int64_t swept; /* when the foreign waits were last looked at, and what had happened until then */
    uint64_t swept_switches;
} heddle_loop_io;

/* For the watch thread, and for other processes. */
typedef struct {
    heddle_heartbeat *heartbeat;     /* while the loop runs, in the main Ractor; else NULL */
    uint64_t word;                   /* odd */
    _Atomic int64_t *published_tick; /* its start, coarsely; 0: asleep; NULL: not published */
} heddle_loop_watch;

/* See preempt.h. */
typedef struct {
    VALUE switched_to; /* the fiber that the last switch on this thread has led to, while `hooked` */
    bool hooked;
    bool killed; /* the thread was killed while a preempted fiber ran, in which that can't be raised */
} heddle_loop_preempt;

/* Counters, for tests and for `heddle top`. */
typedef struct {
    uint64_t ticks, switches, waits, preemptions;
} heddle_loop_counts;

struct heddle_loop {
    VALUE scheduler;
    VALUE thread;
    VALUE fiber; /* the one that runs the loop, and what fibers switch to when they wait */
    VALUE body;  /* the block of all fibers; see fiber.c */
    VALUE starter, starting, start_home, start_error; /* see starter.h; starter: 0 until needed */

    const heddle_selector_operations *operations;
    heddle_selector *selector; /* NULL until first needed, and in a child after fork */
    unsigned fork_generation;

    heddle_token_ring ready, preempted;
    uint32_t left; /* of this tick's snapshot of `ready` */
    heddle_loop_slots slots;

    heddle_timer_heap timers;
    heddle_inbox inbox;
    _Atomic int sleeping; /* in a blocking wait, or about to be: a thread that posts a message must wake it */
    int64_t spin_until;   /* a message is expected before: instead of sleeping the loop looks for it until then; or 0 */
    heddle_spin spins;

    heddle_fiber *fibers;
    size_t fiber_count;
    unsigned starts; /* of fibers by others, in this tick */
    heddle_fiber_table by_fiber;  /* scheduled fibers */
    heddle_fiber_table by_waiter; /* parks of nested and foreign fibers */
    heddle_fiber foreign;         /* stands for fibers that no scheduled fiber is responsible for */
    heddle_park *parks;
    size_t park_count;
    size_t resting; /* parks, and so fibers, that don't keep the loop running */
    heddle_attachment *attachments;
    VALUE early_unblocks; /* 0 until needed; see early_unblock.h */
    VALUE waiting_method; /* the last one that io_read has waited for: a frame, as rb_profile_frames gives it; or 0 */

    heddle_fiber *current; /* on whose behalf code runs now; NULL in the loop itself */
    heddle_loop_switching switching;
    heddle_loop_runs run;
    uint8_t state; /* heddle_loop_state, changed by heddle_loop_enter alone */
    bool in_main_ractor;
    heddle_loop *next_of_main, *previous_of_main; /* the loops of the main Ractor; see heddle_loop_each_of_main */

    size_t armed;   /* waits that something outside this process's Ruby can end */
    int64_t polled; /* when a selector with `pending_unknown` was last polled */
    heddle_loop_io io;
    heddle_loop_watch watch;
    heddle_loop_preempt preempt;
    heddle_loop_counts counts;
};

/* Aborts in debug builds when the table of states does not allow it. */
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

/* nil: -1. Raises as Kernel#sleep does for what is not a duration. */
int64_t heddle_parse_duration(VALUE seconds);
/* Adds without overflow. */
int64_t heddle_deadline_after(int64_t duration);

/* -- life -------------------------------------------------------------------------------------------------------- */

void heddle_loop_initialize(heddle_loop *loop, VALUE scheduler, const heddle_selector_operations *operations);
/* Opens the selector if need be; takes care of a fork; raises when the loop is closed. */
void heddle_loop_open(heddle_loop *loop);
bool heddle_in_main_ractor(void);
void heddle_loop_release(heddle_loop *loop);
/* Calls the function for each loop of the main Ractor, of all threads: from this Ractor, with the GVL. */
void heddle_loop_each_of_main(void (*visit)(heddle_loop *loop, int number), int number);
void heddle_loop_mark(heddle_loop *loop);
void heddle_loop_compact(heddle_loop *loop);
size_t heddle_loop_memory_size(const heddle_loop *loop);
void heddle_loop_attach(heddle_loop *loop, heddle_attachment *attachment);
void heddle_loop_detach(heddle_loop *loop, heddle_attachment *attachment); /* idempotent */
/* Counts forks of this process; set up once. */
void heddle_fork_watch(void);
/* Is this a child's copy of a parent's loop? Opening it makes it the child's own. */
bool heddle_loop_forked(const heddle_loop *loop);
/* Forgets the parent's fibers in a child, the first time it is called there: before `current` changes. */
void heddle_loop_notice_fork(heddle_loop *loop);
void heddle_ticks_setup(void); /* once */
/* One tick: runs the fibers that are ready, asks the selector, and waits for it where no fiber is ready. */
void heddle_loop_tick(heddle_loop *loop);
/* Is there any fiber but those that rest until they are called, and the one that runs the loop itself? */
bool heddle_loop_has_live_fiber(const heddle_loop *loop);

/* Runs ticks until no fiber is left. Raises what is raised into it; the loop stays consistent. */
void heddle_loop_run(heddle_loop *loop);
/* The same for a fiber that waits where nothing runs the loop: it does so itself until the park is woken. */
void heddle_loop_run_until(heddle_loop *loop, heddle_park *park);
/*
 * The fiber to run next: a leaving fiber switches there directly, and not through the loop. NULL: to the loop,
 * which has something else to do first.
 */
heddle_park *heddle_loop_choose_next(heddle_loop *loop, const heddle_park *leaving);
/* Makes the loop look again, from any thread, with or without the GVL. */
void heddle_loop_wake(heddle_loop *loop);

/* -- the heartbeat ----------------------------------------------------------------------------------------------- */

/* Its fibers run from here on, on this thread: true if that is watched, and so has to be ended. */
bool heddle_loop_begin_watch(heddle_loop *loop);
void heddle_loop_end_watch(heddle_loop *loop);
/* The heartbeat that ends now was found late: notes a stall. `idle`: the loop has waited in the selector since. */
void heddle_loop_note_late(heddle_loop *loop, bool idle);

static inline void heddle_loop_check_heartbeat(heddle_loop *loop, bool idle)
{
    int verdict = atomic_load_explicit(&loop->watch.heartbeat->verdict, memory_order_relaxed);
    if (__builtin_expect(verdict != HEDDLE_IN_TIME, 0))
        heddle_loop_note_late(loop, idle);
}

/* Something else runs from here on: a fiber, or another request in the same one. */
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

/* A fiber that will run job.call, once it is started or enqueued. */
heddle_fiber *heddle_fiber_spawn(heddle_loop *loop, VALUE job);
/* Runs it at once, until it first waits; then the caller goes on. Raises FiberError where there is no stack for it. */
void heddle_fiber_start(heddle_fiber *fiber);
heddle_park *heddle_fiber_acquire_starter(heddle_fiber *fiber);
/* Runs it in a later tick. */
void heddle_fiber_enqueue(heddle_fiber *fiber);
/* It could not be switched to for the first time: tells the scheduler, forgets it. */
void heddle_fiber_handle_start_failure(heddle_fiber *fiber, VALUE error);
/* rb_fiber_transfer without arguments, in the form that rb_protect takes. */
static inline VALUE heddle_fiber_transfer(VALUE fiber)
{
    return rb_fiber_transfer(fiber, 0, NULL);
}
/* The same with Fiber#transfer's own checks; without them Ruby goes on in a fiber that has resumed another one. */
static inline VALUE heddle_fiber_transfer_checked(VALUE fiber, int count, const VALUE *values)
{
    return rb_fiber_transfer_kw(fiber, count, values, RB_NO_KEYWORDS);
}
bool heddle_is_fiber_error(VALUE error);
/* It was killed before it ran: tells the scheduler, forgets it. */
void heddle_fiber_handle_kill(heddle_fiber *fiber);
void heddle_fiber_setup(void); /* once */
/* The block that the fibers of a scheduler's loop run. */
VALUE heddle_fiber_make_body(VALUE scheduler);
/* Its timeouts strike no more, its masks delay none; the blocks that are still open find that out. */
void heddle_fiber_drop_timeouts(heddle_fiber *fiber);
/* Would a wait of the fiber `waiting`, on behalf of the timeout's owner, be within the timeout's block? */
bool heddle_timeout_holds(const heddle_timeout *timeout, VALUE waiting);
/* Gives it a token of its own; raises NoMemoryError. */
void heddle_fiber_reserve_entry(heddle_fiber *fiber);
heddle_fiber *heddle_fiber_find(heddle_loop *loop, VALUE fiber);
/*
 * The outermost of its timeouts that have passed and hold for `running`, a fiber that acts in its name; NULL if none.
 * It is taken for raised once `raised` is set.
 */
heddle_timeout *heddle_fiber_timeout_due(heddle_fiber *fiber, VALUE running);
VALUE heddle_timeout_exception(heddle_timeout *timeout); /* runs Ruby code */
/* Raises at the wait it is in, or else at its next one. */
void heddle_fiber_interrupt(heddle_fiber *fiber, VALUE exception);
/* On whose behalf the calling fiber runs; never NULL. */
heddle_fiber *heddle_fiber_current(heddle_loop *loop);

/* -- parks ------------------------------------------------------------------------------------------------------- */

void heddle_park_enter(heddle_loop *loop, heddle_park *park);
void heddle_park_leave(heddle_park *park); /* idempotent */
bool heddle_park_entered(const heddle_park *park);
/* The fiber is back: settles on whose behalf code runs now. */
void heddle_park_arrive(heddle_park *park);
/*
 * The switch away leads to this fiber, not to the one that runs the loop. When Ruby 3.4 is back from a switch it looks,
 * without having held it, at the fiber that this led to, and puts its stack back if it has ended: so the fiber is kept
 * until then, and the code that switches back claims the stacks if it has ended. Ruby 3.3 leaves that to the collector,
 * from which the fiber is not to be kept.
 */
static inline void heddle_park_note_target(heddle_park *park, VALUE fiber)
{
    park->switched_to = HEDDLE_SWITCH_RETURNS_STACKS ? fiber : Qfalse;
}
/* Wakes the park at this time (CLOCK_MONOTONIC ns); < 0: never. */
void heddle_park_until(heddle_park *park, int64_t deadline);
/* From here until it is woken or left the loop may end without it. */
void heddle_park_rest(heddle_park *park);
/* Switches to the loop until woken. Raises interrupts and timeouts. Between enter and leave, under rb_ensure. */
void heddle_park_wait(heddle_park *park);
/* The same for a wait without a result of its own: leaves it, whatever is raised. */
void heddle_park_wait_and_leave(heddle_park *park);
/* As heddle_park_wait, but what is to be raised waits for the next wait. */
void heddle_park_wait_uninterruptibly(heddle_park *park);
/* Raises what a wait of this fiber would raise before it begins. The calling fiber's own. */
void heddle_fiber_check(heddle_loop *loop, VALUE fiber);
/*
 * Raises the time limit that an interrupt mask has delayed, if no other mask does. Nothing else: between two waits a
 * cancellation, or a time limit that has just passed, would strike code that expects none.
 */
void heddle_fiber_raise_delayed(heddle_loop *loop, VALUE fiber);
/*
 * Waits for a submitted operation. An exception meanwhile cancels the operation, and propagates only after its last
 * event: until then the kernel owns the operation's memory.
 */
void heddle_park_wait_completion(heddle_park *park, heddle_waiter *waiter);
/* Ends the wait. Idempotent; from any thread that has the GVL. */
void heddle_park_wake(heddle_park *park);
/* Puts the park at the end of the preempted queue: it runs once everybody ready had a tick. */
void heddle_park_wake_preempted(heddle_park *park);
/* The park in which this very fiber waits, or NULL. */
heddle_park *heddle_park_find(heddle_loop *loop, VALUE fiber);

/* -- waits that only the selector can end ------------------------------------------------------------------------ */

/* As the selector's own, and counted: a loop with armed waiters is not deadlocked. */
int heddle_loop_arm(heddle_loop *loop, heddle_waiter *waiter);
void heddle_loop_disarm(heddle_loop *loop, heddle_waiter *waiter);
int heddle_loop_submit(heddle_loop *loop, heddle_waiter *waiter, const heddle_operation *operation);
/* To be called by each one-shot or final callback. */
static inline void heddle_loop_disarmed(heddle_loop *loop)
{
    loop->armed--;
}

/* The loop of a Heddle::Scheduler. */
heddle_loop *heddle_loop_of(VALUE scheduler);
/* The same, or NULL for an object of another class. */
heddle_loop *heddle_loop_if(VALUE scheduler);
/* The same for the thread it belongs to: open, and on the right side of a fork. */
heddle_loop *heddle_loop_get(VALUE scheduler);

/* The calling fiber is about to be left for another one. */
static inline void heddle_loop_note_switch(heddle_loop *loop)
{
    if (__builtin_expect(heddle_reporting_callbacks, 0))
        heddle_hooks.report_callback(loop);
}

#endif
