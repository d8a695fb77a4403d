#pragma once

/*
 * The event loop of one thread: its ready fibers, waiting fibers and timers.
 *
 * A tick is one pass of the loop. It runs each fiber that is ready when the tick begins, then at most one preempted
 * fiber (a fiber that has used up its time slice), and then polls the selector. While fibers are ready, some ticks skip
 * the poll. All functions must be called with the GVL, on the loop's thread, unless their comments say otherwise.
 */

#include "scheduler/spin.h"
#include "scheduler/inbox.h"
#include "scheduler/timer_heap.h"
#include "scheduler/token_ring.h"
#include "selector/selector.h"
#include "scheduler/heartbeat.h"
#include "scheduler/layer_hooks.h"
#include "scheduler/loop_states.h"
#include "scheduler/fiber.h"

#include <ruby.h>
#include <ruby/st.h>

typedef struct heddle_attachment heddle_attachment;

/*
 * An object that belongs to a loop, such as its sockets. The loop marks `object` for the garbage collector, and calls
 * `closing` when the loop closes.
 */
struct heddle_attachment {
    VALUE object;
    /* called before any part of the loop is freed; must call heddle_loop_detach */
    void (*closing)(heddle_attachment *attachment);
    /*
     * Begins waiting work, such as requests. Called at the end of a tick, after the poll, if the loop's `work_waits` is
     * set. Must not raise.
     */
    void (*begin_work)(heddle_attachment *attachment);
    heddle_attachment *next, *previous;
};

typedef struct {
    heddle_park *park;
    uint32_t generation;
    uint32_t next_free;
} heddle_slot;

static inline uint64_t heddle_park_token(const heddle_park *park)
{
    return (uint64_t)park->generation << 32 | park->slot;
}

/* The parts of heddle_loop, one struct for each concern. */

/*
 * The table of parks. A token refers to a park by its slot and the slot's generation. When the fiber leaves the park,
 * the generation changes, so the token becomes invalid.
 */
typedef struct {
    heddle_slot *items;
    uint32_t count, first_free;
} heddle_loop_slots;

/* The switches between the loop's fiber and other fibers; see foreign_return.h. */
typedef struct {
    bool left_by_wait; /* a waiting fiber has made the last switch to the loop's fiber; false if Ruby has made it */
    VALUE returned;    /* the value that Ruby passed in its last switch to the loop's fiber */
    heddle_park *next_unblocked; /* the park to switch to before any other */
    heddle_park *switching_to;       /* the park that the loop is switching to */
    /* the Fiber that the loop's fiber last switched to; marked for the same reason as park->switched_to */
    VALUE last_target;
    VALUE ending;  /* a fiber that ends when the loop switches to it once more; or Qfalse */
} heddle_loop_switching;

/* The run of the loop: see heddle_loop_run. */
typedef struct {
    /* if a waiting fiber runs the loop (heddle_loop_run_until): its park; the run ends when this park is woken */
    heddle_park *until;
    /*
     * 1 while a scheduled fiber runs the loop on its own stack, else 0. In a forked child, the fiber that called fork
     * runs the loop whenever it waits (see `forked_by`). While it runs the loop, it does not count as a live fiber.
     */
    size_t runs_in_fiber;
    /*
     * In a forked child: the scheduled fiber that called fork; otherwise Qfalse. The code of this fiber is the child's
     * main program. The fiber runs the loop whenever it waits, so signals are raised in it. Ruby treats it as the
     * thread's root fiber, to which other fibers return when they end. The parent's code that ran the loop must not
     * continue in the child.
     */
    VALUE forked_by;
    /* the loop was running in the parent at the fork; the code that ran it is suspended in the loop's `fiber` */
    bool parent_ran;
} heddle_loop_runs;

/*
 * A sleep of a loop that has just looked for closed IOs, and need not look again before another thread has run. Listed
 * in io_rest.c.
 */
typedef struct heddle_io_rest heddle_io_rest;
struct heddle_io_rest {
    heddle_loop *loop;
    heddle_io_rest *next, *previous;
};

/*
 * The waits for IO objects that Heddle has not created, and notes about the last transfers of these objects
 * (scheduler/io_wait.h). Both arrays are indexed by descriptor.
 */
typedef struct {
    struct heddle_io_wait **waits;
    uint8_t *notes;
    int size;
    size_t unreported; /* the number of waits that Ruby does not end when their IO is closed */
    heddle_loop_message reopened; /* a message from heddle_io_fail_reopened_waits to this loop's thread */
    bool reopened_posted;
    int64_t swept; /* when the waits were last checked for closed IOs, and in which tick */
    uint64_t swept_tick;
    heddle_io_rest rest;
} heddle_loop_io;

/* See fiber_interrupt.h. */
typedef struct {
    VALUE deferred;              /* Hash from a Fiber to the exception that its next wait raises; 0 until needed */
    VALUE proxies;               /* Array of [proxy, exception], see fiber_interrupt.c; 0 until needed */
    heddle_loop_message message; /* notifies this loop's thread of new `proxies` */
    bool posted;
    VALUE in_place; /* the fiber that waits in place now (wait_in_place.h), or 0 */
} heddle_loop_interrupts;

/* The members that the loop updates for the watch thread and for other processes. */
typedef struct {
    heddle_heartbeat *heartbeat;     /* while the loop runs, in the main Ractor; else NULL */
    uint64_t word;                   /* the heartbeat's `word` while the current fiber runs; always odd */
    /*
     * points to memory that other processes read: the time at which the current tick began (coarse clock, ns), or 0
     * while the loop sleeps; NULL: not published
     */
    _Atomic int64_t *published_tick;
    /* when the loop last woke, or found a message instead of sleeping; set only while ticks are published */
    int64_t awake_since;
    bool unreported; /* the loop serves no requests of the application, so its stalls are not recorded */
} heddle_loop_watch;

/* The state of preemption; see preempt.h. */
typedef struct {
    VALUE switched_to; /* the target of the last switch of fibers on this thread; valid while `hooked` */
    bool hooked;
    int64_t slice_ended; /* CPU time of the thread when a fiber last used up its slice, ns */
    /*
     * the thread was killed while C code of preempt/ caught all exceptions; the loop raises an exception for it later
     */
    bool killed;
    /* the whole run ends, and all fibers are cancelled: one that computes gets Cancelled where it is preempted */
    bool ending;
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
    heddle_selector *selector; /* NULL until the loop is opened, also in a forked child */
    unsigned fork_generation;

    heddle_token_ring ready, preempted;
    uint32_t left; /* ready fibers that this tick must still run */
    unsigned preempted_turns; /* how often the loop has run a preempted fiber */
    bool work_waits; /* an attachment has work that waits: `begin_work` is called at the end of the tick */
    heddle_loop_slots slots;

    heddle_timer_heap timers;
    heddle_inbox inbox;
    /* 1 while the loop is in a blocking wait or about to enter one: a thread that posts a message must wake it */
    _Atomic int sleeping;
    /* until this time the loop polls its inbox instead of sleeping, because it expects a message; 0: no polling */
    int64_t spin_until;
    heddle_spin spins;

    heddle_fiber *fibers;
    size_t fiber_count;
    unsigned starts; /* how many fibers were started by fibers in this tick */
    /* Tables whose keys are addresses of Fibers. The loop marks a Fiber, and so pins it, while it is in a table. */
    struct st_table *by_fiber;  /* scheduled fibers */
    struct st_table *by_waiter; /* parks of nested fibers, which the program made itself */
    /* the implicit task: owns the waits of fibers outside of all scheduled fibers, such as the thread's root fiber */
    heddle_fiber implicit;
    heddle_park *parks;
    size_t park_count;
    size_t idle; /* the number of idle parks: their fibers do not keep the loop running */
    heddle_attachment *attachments;
    VALUE early_unblocks; /* 0 until needed; see early_unblock.h */
    heddle_loop_interrupts interrupts;
    /*
     * the last method of IO for which the hook io_read waited: a frame of rb_profile_frames, or 0 (is_caller_waiting)
     */
    VALUE waiting_method;

    /*
     * the scheduled fiber that runs now, or that has resumed the nested fiber that runs; NULL while the loop itself
     * runs
     */
    heddle_fiber *current;
    heddle_loop_switching switching;
    heddle_loop_runs run;
    uint8_t state; /* heddle_loop_state, changed by heddle_loop_enter alone */
    bool in_main_ractor;
    heddle_loop *next, *previous; /* the loops of the main Ractor: see heddle_loops_in_main_ractor */

    size_t armed;   /* the number of armed waiters, that is, of waits that only the selector can end */
    int64_t polled; /* when a selector that lacks the operation `pending` was last polled */
    int64_t ran_since; /* when this tick began to run fibers; 0 while requests have no time accounts (account.h) */
    /* `ran_since` while the loop polls for events, which may have come at any time since then; otherwise 0 */
    int64_t held_since;
    heddle_loop_io io;
    heddle_loop_watch watch;
    heddle_loop_preempt preempt;
    heddle_loop_statistics statistics;
};

/* Changes the loop's state. Debug builds abort on an invalid transition (loop_states.h). */
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

/* Converts seconds to ns. Returns -1 for nil. Raises the exceptions of Kernel#sleep for an invalid duration. */
int64_t heddle_parse_duration(VALUE seconds);
/*
 * Is the duration too large to be a limit, such as Float::INFINITY? For some of these, heddle_parse_duration raises
 * RangeError.
 */
bool heddle_never_comes(VALUE seconds);
/*
 * Converts a time limit in seconds to ns. Accepts any number, because programs compute limits: returns -1 (no limit)
 * for nil and for a limit that is too large, and 0 (already passed) for a negative one.
 */
int64_t heddle_parse_limit(VALUE seconds);
/*
 * Parses the keyword `timeout:` of a method that has this many positional arguments and no other keyword. Returns ns as
 * heddle_parse_limit does, or -1 if the keyword is not given.
 */
int64_t heddle_parse_timeout(int argc, const VALUE *argv, int positional);
/* The time `duration` ns from now, CLOCK_MONOTONIC ns; INT64_MAX if the sum would overflow. */
int64_t heddle_deadline_after(int64_t duration);

/* -- life -------------------------------------------------------------------------------------------------------- */

void heddle_loop_initialize(heddle_loop *loop, VALUE scheduler, const heddle_selector_operations *operations);
/*
 * Opens the selector unless it is open. In a forked child, first discards the parent's state. Raises RuntimeError if
 * the loop is closed.
 */
void heddle_loop_open(heddle_loop *loop);
bool heddle_in_main_ractor(void);
void heddle_loop_release(heddle_loop *loop);
/*
 * The list of the main Ractor's loops, of all threads. Changed with the main Ractor's GVL, or while a garbage
 * collection has stopped all Ractors. Read only with the main Ractor's GVL.
 */
extern heddle_loop *heddle_loops_in_main_ractor;
/* Called by the garbage collector, which passes the loop as void *. */
void heddle_loop_mark(void *loop);
void heddle_loop_compact(void *loop);
void heddle_loop_attach(heddle_loop *loop, heddle_attachment *attachment);
void heddle_loop_detach(heddle_loop *loop, heddle_attachment *attachment); /* idempotent */
/*
 * The number of forks between the first process and this one. It is atomic only so that ThreadSanitizer reports no
 * race.
 */
extern _Atomic unsigned heddle_forks;
/* Starts counting forks; called once. */
void heddle_fork_watch(void);
/*
 * Is this a forked child's copy of a parent's loop? False again after heddle_loop_notice_fork, which heddle_loop_open
 * calls.
 */
bool heddle_loop_forked(const heddle_loop *loop);
/*
 * At the first call in a forked child, discards the parent's fibers, except the one that called fork. Must be called
 * before `current` changes.
 */
void heddle_loop_notice_fork(heddle_loop *loop);
/* Runs one tick: runs the fibers that are ready, and polls the selector, or waits in it if no fiber is ready. */
void heddle_loop_tick(heddle_loop *loop);
/* Is there a fiber that is not idle and does not run the loop itself? */
bool heddle_loop_has_live_fiber(const heddle_loop *loop);

/* Returns the park of this token, or NULL if the token is invalid. */
static inline heddle_park *heddle_loop_find_park(const heddle_loop *loop, uint64_t token)
{
    uint32_t index = (uint32_t)token, generation = (uint32_t)(token >> 32);
    bool valid = index < loop->slots.count && loop->slots.items[index].generation == generation;
    return valid ? loop->slots.items[index].park : NULL;
}

/* Is there a ready or preempted fiber for whose park `test` returns true? */
bool heddle_loop_has_ready(const heddle_loop *loop, bool (*test)(const heddle_park *park));

/*
 * Runs ticks until there is no live fiber (heddle_loop_has_live_fiber). An exception raised in the loop's fiber ends
 * the run and is raised in the caller. The loop can run again afterwards.
 */
void heddle_loop_run(heddle_loop *loop);
/*
 * Called when a fiber waits while the loop does not run: runs the loop in that fiber until the park is woken. `park` is
 * NULL when heddle_loop_run calls this function.
 */
void heddle_loop_run_until(heddle_loop *loop, heddle_park *park);
/*
 * Returns the park of the fiber to which the waiting fiber can switch directly. Returns NULL if it must switch to the
 * loop's fiber, because the loop has other work to do first.
 */
heddle_park *heddle_loop_choose_next(heddle_loop *loop, const heddle_park *leaving);
/*
 * Ends the loop's sleep in the selector, so that it starts another tick. May be called on any thread, with or without
 * the GVL.
 */
void heddle_loop_wake(heddle_loop *loop);

/* -- the heartbeat ----------------------------------------------------------------------------------------------- */

/*
 * Makes the watch thread watch this loop, which runs on the calling thread. If it returns true, the caller must call
 * heddle_loop_end_watch.
 */
bool heddle_loop_begin_watch(heddle_loop *loop);
void heddle_loop_end_watch(heddle_loop *loop);
/*
 * Records a stall, unless `unreported` is set. Called when the watch thread has marked the current heartbeat as late.
 * `idle`: the loop has waited in the selector since the late tick, so the time of that tick's end is unknown.
 */
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

/* -- waits that only the selector can end ------------------------------------------------------------------------ */

/*
 * Arms the waiter in the selector and counts it: a loop with armed waiters is not deadlocked. Returns 0, or -errno, or
 * a readiness mask if the descriptor is ready already.
 */
int heddle_loop_arm(heddle_loop *loop, heddle_waiter *waiter);
void heddle_loop_disarm(heddle_loop *loop, heddle_waiter *waiter);
int heddle_loop_submit(heddle_loop *loop, heddle_waiter *waiter, const heddle_operation *operation);
/* Must be called by a waiter's callback for its only or last event. */
static inline void heddle_loop_count_disarmed(heddle_loop *loop)
{
    loop->armed--;
}

/* Returns the loop of a Heddle::Scheduler; raises for any other object. */
heddle_loop *heddle_loop_of(VALUE scheduler);
/* Returns the loop of a Heddle::Scheduler, or NULL for any other object. */
heddle_loop *heddle_loop_if(VALUE scheduler);
/*
 * Returns the calling fiber's loop. Returns NULL if there is none, or if it is closed or belongs to a parent process.
 */
heddle_loop *heddle_loop_current(void);
/*
 * Returns the loop for use on the calling thread, and opens it if necessary. Raises if another thread owns the loop, or
 * if it is closed.
 */
heddle_loop *heddle_loop_get(VALUE scheduler);

/* Called before the calling fiber switches away: reports callbacks from native code, if that is switched on. */
static inline void heddle_loop_note_switch(heddle_loop *loop)
{
    if (__builtin_expect(heddle_reporting_callbacks, 0))
        heddle_hooks.report_callback(loop);
}
