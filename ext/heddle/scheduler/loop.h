#pragma once

/*
 * The run loop of one thread: ready fibers, waiting fibers, timers.
 *
 * In each tick it runs once each fiber that is ready at the tick's beginning, then at most one preempted fiber, and
 * then polls the selector. All functions are called with the GVL, on the loop's thread, unless they say otherwise.
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

/* A part of the loop other than its fibers, such as sockets. The loop marks it, and calls it when the loop closes. */
struct heddle_attachment {
    VALUE object;
    /* called while the loop is still complete; must detach the attachment */
    void (*closing)(heddle_attachment *attachment);
    /* Called at the end of a tick, after its poll, while the loop's `work_waits` is set. Never raises. */
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
    VALUE last_target; /* the Fiber that the loop's fiber last switched to; marked like park->switched_to */
    VALUE ending;  /* a fiber that the loop has to switch to once more so that it can end; or Qfalse */
} heddle_loop_switching;

/* The run of the loop: see heddle_loop_run. */
typedef struct {
    heddle_park *until; /* the park of the fiber whose wait runs the loop: the run ends when the park is woken */
    /*
     * 1 while a scheduled fiber runs the loop from its own stack, so that it does not count as live: in a forked child,
     * the fiber that forked, while it waits (see forked_by)
     */
    size_t runs_in_fiber;
    /*
     * In a forked child: the scheduled fiber that called fork, or Qfalse. Its code is the child's program, and it runs
     * the loop itself whenever it waits. So signals are raised in it. Ruby takes it for the thread's root fiber, to
     * which other fibers return when they end. The parent's code that ran the loop must not continue in the child.
     */
    VALUE forked_by;
    bool parent_ran; /* the parent's loop was running at the fork; the code that ran it waits in the loop's `fiber` */
} heddle_loop_runs;

/* Waits for IO that Heddle has not created, and notes (scheduler/io_wait.h); both indexed by descriptor. */
typedef struct {
    struct heddle_io_wait **waits;
    uint8_t *notes;
    int size;
    size_t wait_count;
    heddle_loop_message reopened; /* a message from heddle_io_fail_reopened_waits to this loop's thread */
    bool reopened_posted;
    int64_t swept; /* when the waits were last checked for closed IOs, and the number of switches at that time */
    uint64_t swept_switches;
} heddle_loop_io;

/* See fiber_interrupt.h. */
typedef struct {
    VALUE deferred;              /* Hash of each Fiber's exception, which its next wait raises; 0 until needed */
    VALUE proxies;               /* Array of pairs, a proxy and an exception, for `message`; 0 until needed */
    heddle_loop_message message; /* tells this loop's thread that there are proxies */
    bool posted;
    VALUE in_place; /* the running fiber while it waits in place, or 0 */
} heddle_loop_interrupts;

/* Read by the watch thread and by other processes. */
typedef struct {
    heddle_heartbeat *heartbeat;     /* while the loop runs, in the main Ractor; else NULL */
    uint64_t word;                   /* odd */
    /* start of the current tick, from the coarse clock; 0: asleep; NULL: not published */
    _Atomic int64_t *published_tick;
    /* when the loop last slept, or found a message when it was about to sleep; only while ticks are published */
    int64_t awake_since;
    bool unreported;                 /* it serves no requests of the application: its stalls are not noted */
} heddle_loop_watch;

/* See preempt.h. */
typedef struct {
    VALUE switched_to; /* the Fiber that the last switch on this thread led to, while `hooked` */
    bool hooked;
    int64_t slice_ended; /* CPU time of the thread when a fiber last used up its slice, ns */
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
    uint32_t left; /* ready fibers that this tick must still run */
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
    size_t idle; /* the number of idle parks: their fibers do not keep the loop running */
    heddle_attachment *attachments;
    VALUE early_unblocks; /* 0 until needed; see early_unblock.h */
    heddle_loop_interrupts interrupts;
    /* the last method that called io_read for one attempt, and waits itself: a frame of rb_profile_frames; or 0 */
    VALUE waiting_method;

    /* the scheduled fiber that runs now, itself or by a nested fiber; NULL while the loop itself runs */
    heddle_fiber *current;
    heddle_loop_switching switching;
    heddle_loop_runs run;
    uint8_t state; /* heddle_loop_state, changed by heddle_loop_enter alone */
    bool in_main_ractor;
    heddle_loop *next, *previous; /* the loops of the main Ractor: see heddle_loops_in_main_ractor */

    size_t armed;   /* armed waiters: waits that the kernel or another process can end */
    int64_t polled; /* when a selector without `pending` was last polled */
    int64_t ran_since; /* when this tick began to run fibers; 0: accounts are off */
    /* `ran_since` while the loop polls for events, which may have come at any time since then; otherwise 0 */
    int64_t held_since;
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

/* Returns -1 for nil. Raises like Kernel#sleep for an invalid duration. */
int64_t heddle_parse_duration(VALUE seconds);
/* Is the duration too large to be a limit, such as Float::INFINITY? heddle_parse_duration raises RangeError for it. */
bool heddle_never_comes(VALUE seconds);
/*
 * Parses a time limit, which a program may have computed: one that never comes is none (-1), and a negative one has
 * passed already (0). Returns -1 for nil.
 */
int64_t heddle_parse_limit(VALUE seconds);
/*
 * Parses the keyword `timeout:` of a method that has this many positional arguments and no other keyword. Returns -1 if
 * it is not given.
 */
int64_t heddle_parse_timeout(int argc, const VALUE *argv, int positional);
/* Returns INT64_MAX instead of an overflow. */
int64_t heddle_deadline_after(int64_t duration);

/* -- life -------------------------------------------------------------------------------------------------------- */

void heddle_loop_initialize(heddle_loop *loop, VALUE scheduler, const heddle_selector_operations *operations);
/* Opens the selector if it is not open; handles a fork; raises when the loop is closed. */
void heddle_loop_open(heddle_loop *loop);
bool heddle_in_main_ractor(void);
void heddle_loop_release(heddle_loop *loop);
/*
 * The list of the main Ractor's loops, of all threads. Changed with the GVL of the main Ractor, or while a garbage
 * collection has stopped all Ractors; read from this Ractor, with the GVL.
 */
extern heddle_loop *heddle_loops_in_main_ractor;
/* For the collector, which knows only pointers to void. */
void heddle_loop_mark(void *loop);
void heddle_loop_compact(void *loop);
void heddle_loop_attach(heddle_loop *loop, heddle_attachment *attachment);
void heddle_loop_detach(heddle_loop *loop, heddle_attachment *attachment); /* idempotent */
/*
 * The number of forks between the first process and this one. It is atomic only because ThreadSanitizer would report a
 * race.
 */
extern _Atomic unsigned heddle_forks;
/* Begins to count forks; called once. */
void heddle_fork_watch(void);
/* Is this a child's copy of a parent's loop? Opening it makes it the child's own. */
bool heddle_loop_forked(const heddle_loop *loop);
/* Forgets the parent's fibers at its first call in a forked child; must be called before `current` changes. */
void heddle_loop_notice_fork(heddle_loop *loop);
/* Runs one tick: runs the fibers that are ready, and polls the selector, or waits in it if no fiber is ready. */
void heddle_loop_tick(heddle_loop *loop);
/* Is there a fiber that is not idle and does not run the loop itself? */
bool heddle_loop_has_live_fiber(const heddle_loop *loop);

/* The park of this token, or NULL if the token is invalid. */
static inline heddle_park *heddle_loop_find_park(const heddle_loop *loop, uint64_t token)
{
    uint32_t index = (uint32_t)token, generation = (uint32_t)(token >> 32);
    bool valid = index < loop->slots.count && loop->slots.items[index].generation == generation;
    return valid ? loop->slots.items[index].park : NULL;
}

/* Is there a ready or preempted fiber for whose last wait `test` returns true? */
bool heddle_loop_has_ready(const heddle_loop *loop, bool (*test)(const heddle_park *park));

/*
 * Runs ticks until no fiber is left. Raises exceptions that are raised in the loop's fiber; the loop stays consistent.
 */
void heddle_loop_run(heddle_loop *loop);
/* Called when a fiber waits while the loop does not run: runs the loop in that fiber until the park is woken. */
void heddle_loop_run_until(heddle_loop *loop, heddle_park *park);
/*
 * The fiber to which a waiting fiber can switch directly. NULL if the waiting fiber must switch to the loop's fiber,
 * because the loop has other work first.
 */
heddle_park *heddle_loop_choose_next(heddle_loop *loop, const heddle_park *leaving);
/* Makes the loop start another tick. May be called on any thread, with or without the GVL. */
void heddle_loop_wake(heddle_loop *loop);

/* -- the heartbeat ----------------------------------------------------------------------------------------------- */

/* Begins to watch this loop, on this thread. If it returns true, the caller must call heddle_loop_end_watch. */
bool heddle_loop_begin_watch(heddle_loop *loop);
void heddle_loop_end_watch(heddle_loop *loop);
/*
 * Called when the current heartbeat was found late: notes a stall. `idle`: the loop has waited in the selector since
 * then.
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
/* The loop of a Heddle::Scheduler, or NULL for another object. */
heddle_loop *heddle_loop_if(VALUE scheduler);
/* The calling fiber's loop; NULL if there is none, or it is closed or belongs to a parent process. */
heddle_loop *heddle_loop_current(void);
/*
 * The loop, for use on the calling thread: raises unless the thread owns the loop, and handles closed loops and forks.
 */
heddle_loop *heddle_loop_get(VALUE scheduler);

/* Called before a switch from the calling fiber. */
static inline void heddle_loop_note_switch(heddle_loop *loop)
{
    if (__builtin_expect(heddle_reporting_callbacks, 0))
        heddle_hooks.report_callback(loop);
}
