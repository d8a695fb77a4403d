#include "scheduler/loop.h"

#include "scheduler/fiber_table.h"
#include "scheduler/guard_pages.h"
#include "scheduler/io_wait.h"
#include "scheduler/starter.h"

#include <errno.h>
#include <pthread.h>
#include <ruby/thread.h>
#include <string.h>
#include <time.h>

/* Closed IO that nobody told us of is looked for at most this often (Ruby < 4.0 has no hook for it). */
static const int64_t SWEEP_INTERVAL = 50 * 1000 * 1000;

/* How long fibers may run before a selector that has to be asked is asked again: a tenth of the time goes to it. */
static const int64_t BLIND_INTERVAL = 20 * 1000;

/* Only other threads can wake the loop now, and they may end without a word: it looks again this often. */
static const int64_t DEADLOCK_INTERVAL = 1000 * 1000 * 1000;

static ID id_on_deadlock;

/* -- time -------------------------------------------------------------------------------------------------------- */

int64_t heddle_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t heddle_duration(VALUE seconds)
{
    if (NIL_P(seconds))
        return -1;
    struct timespec duration = rb_time_timespec_interval(seconds);
    if (duration.tv_sec > INT64_MAX / 1000000000 - 1)
        return INT64_MAX;
    return (int64_t)duration.tv_sec * 1000000000 + duration.tv_nsec;
}

int64_t heddle_deadline(int64_t duration)
{
    int64_t now = heddle_now();
    return duration > INT64_MAX - now ? INT64_MAX : now + duration;
}

/* -- fork -------------------------------------------------------------------------------------------------------- */

/* Only the forking thread exists in a child, so a plain variable would do; atomic keeps the tools quiet. */
static _Atomic unsigned forks;

static void count_fork(void)
{
    forks++;
}

void heddle_fork_watch(void)
{
    pthread_atfork(NULL, NULL, count_fork);
    id_on_deadlock = rb_intern("on_deadlock");
}

static void empty_slots(heddle_loop *loop)
{
    for (uint32_t i = 0; i < loop->slot_count; i++) {
        loop->slots[i].park = NULL;
        loop->slots[i].generation++;
        loop->slots[i].next_free = i + 1 < loop->slot_count ? i + 1 : UINT32_MAX;
    }
    loop->free_slot = loop->slot_count ? 0 : UINT32_MAX;
}

/*
 * In the child: the parent's fibers exist as dead copies. All are forgotten but the one that called fork, and with
 * them every wait, timer and descriptor. Their memory stays as it is: it lies on stacks that never run again.
 */
static void forget_parent(heddle_loop *loop)
{
    loop->fork_generation = forks;
    if (loop->selector) {
        loop->operations->abandon(loop->selector);
        loop->selector = NULL;
    }
    /* The stacks of another thread's fibers are Ruby's to give back: they are not written to. */
    bool own = loop->thread == rb_thread_current();
    if (loop->current == &loop->foreign)
        loop->current = NULL;
    for (heddle_fiber *fiber = loop->fibers, *next; fiber; fiber = next) {
        next = fiber->next;
        if (fiber == loop->current)
            continue;
        if (own)
            heddle_fiber_drop_timeouts(fiber);
        free(fiber);
    }
    if (!own)
        loop->foreign.timeouts = NULL;
    heddle_fiber_table_clear(&loop->by_fiber);
    heddle_fiber_table_clear(&loop->by_waiter);
    loop->fibers = loop->current;
    loop->fiber_count = 0;
    if (loop->current) {
        loop->fiber_count = 1;
        loop->current->next = loop->current->previous = NULL;
        loop->current->park = NULL;
        heddle_fiber_table_put(&loop->by_fiber, loop->current->fiber, loop->current);
    }
    empty_slots(loop);
    loop->starter = 0;
    loop->parks = NULL;
    loop->park_count = 0;
    loop->resting = 0;
    loop->foreign.park = NULL;
    loop->ready.head = loop->ready.tail = loop->spent.head = loop->spent.tail = 0;
    for (size_t i = 0; own && i < loop->timers.count; i++)
        loop->timers.entries[i]->place = 0;
    loop->timers.count = 0;
    atomic_store(&loop->inbox.newest, NULL);
    atomic_store(&loop->sleeping, 0);
    loop->armed = 0;
    loop->io_wait_count = 0;
    if (loop->io_waits)
        memset(loop->io_waits, 0, (size_t)loop->io_waits_size * sizeof(*loop->io_waits));
    loop->arriving = NULL;
    loop->handed_over = NULL;
    loop->stranded = loop->current && !loop->running;
    if (loop->current)
        loop->current->starter = NULL;
    if (loop->stranded)
        loop->fiber = rb_fiber_current();
    loop->running = false;
}

/* -- life -------------------------------------------------------------------------------------------------------- */

void heddle_loop_initialize(heddle_loop *loop, VALUE scheduler, const heddle_selector_operations *operations)
{
    loop->scheduler = scheduler;
    loop->operations = operations;
    loop->thread = rb_thread_current();
    loop->fiber = rb_fiber_current();
    loop->free_slot = UINT32_MAX;
    loop->fork_generation = forks;
    loop->foreign = (heddle_fiber){.loop = loop, .fiber = Qnil, .job = Qnil, .interrupt = Qundef};
    loop->body = heddle_fiber_body(scheduler);
}

void heddle_loop_open(heddle_loop *loop)
{
    if (loop->fork_generation != forks)
        forget_parent(loop);
    if (loop->closed)
        rb_raise(rb_eRuntimeError, "this scheduler is closed: make a new Heddle::Scheduler");
    if (loop->selector)
        return;
    /* Opened where it is used first: a ring belongs to the thread that opened it. */
    loop->thread = rb_thread_current();
    heddle_guard_pages_install();
    int result = loop->operations->open(&loop->selector);
    if (result < 0)
        rb_syserr_fail(-result, loop->operations->name);
    heddle_starter_prepare(loop);
}

void heddle_loop_release(heddle_loop *loop)
{
    if (loop->fork_generation != forks) {
        /* Freed by the child's garbage collector, maybe: the descriptors here are ours, the kernel's state is not. */
        if (loop->selector)
            loop->operations->abandon(loop->selector);
    } else if (loop->selector) {
        loop->operations->close(loop->selector);
    }
    loop->selector = NULL;
    for (heddle_fiber *fiber = loop->fibers, *next; fiber; fiber = next) {
        next = fiber->next;
        free(fiber);
    }
    loop->fibers = NULL;
    loop->fiber_count = 0;
    loop->closed = true;
    heddle_token_ring_free(&loop->ready);
    heddle_token_ring_free(&loop->spent);
    heddle_timer_heap_free(&loop->timers);
    heddle_fiber_table_free(&loop->by_fiber);
    heddle_fiber_table_free(&loop->by_waiter);
    free(loop->slots);
    free(loop->io_waits);
    free(loop->io_drained);
    loop->io_drained = NULL;
    loop->slots = NULL;
    loop->io_waits = NULL;
    loop->slot_count = 0;
    loop->io_waits_size = 0;
    loop->parks = NULL;
    loop->park_count = 0;
    loop->resting = 0;
    loop->starter = 0;
}

void heddle_loop_attach(heddle_loop *loop, heddle_attachment *attachment)
{
    attachment->previous = NULL;
    attachment->next = loop->attachments;
    if (attachment->next)
        attachment->next->previous = attachment;
    loop->attachments = attachment;
}

void heddle_loop_detach(heddle_loop *loop, heddle_attachment *attachment)
{
    if (attachment->previous)
        attachment->previous->next = attachment->next;
    else if (loop->attachments == attachment)
        loop->attachments = attachment->next;
    if (attachment->next)
        attachment->next->previous = attachment->previous;
    attachment->next = attachment->previous = NULL;
}

static void mark_timeouts(const heddle_fiber *fiber)
{
    for (heddle_timeout *timeout = fiber->timeouts; timeout; timeout = timeout->outer)
        rb_gc_mark(timeout->fiber);
}

void heddle_loop_mark(heddle_loop *loop)
{
    mark_timeouts(&loop->foreign);
    rb_gc_mark(loop->thread);
    rb_gc_mark(loop->fiber);
    rb_gc_mark(loop->body);
    if (loop->starter) {
        rb_gc_mark(loop->starter);
        rb_gc_mark(loop->start_error);
    }
    if (loop->foreign.interrupt != Qundef)
        rb_gc_mark_movable(loop->foreign.interrupt);
    for (heddle_fiber *fiber = loop->fibers; fiber; fiber = fiber->next) {
        rb_gc_mark(fiber->fiber); /* pinned: its address is a key of by_fiber */
        rb_gc_mark_movable(fiber->job);
        if (fiber->interrupt != Qundef)
            rb_gc_mark_movable(fiber->interrupt);
        mark_timeouts(fiber);
    }
    /* Nobody else holds a nested fiber that waits; its own stack is scanned only if it is marked. */
    for (heddle_park *park = loop->parks; park; park = park->next)
        rb_gc_mark(park->fiber);
    for (heddle_attachment *attachment = loop->attachments; attachment; attachment = attachment->next)
        rb_gc_mark(attachment->object);
}

void heddle_loop_compact(heddle_loop *loop)
{
    loop->scheduler = rb_gc_location(loop->scheduler);
    if (loop->foreign.interrupt != Qundef)
        loop->foreign.interrupt = rb_gc_location(loop->foreign.interrupt);
    for (heddle_fiber *fiber = loop->fibers; fiber; fiber = fiber->next) {
        fiber->job = rb_gc_location(fiber->job);
        if (fiber->interrupt != Qundef)
            fiber->interrupt = rb_gc_location(fiber->interrupt);
    }
}

size_t heddle_loop_memory_size(const heddle_loop *loop)
{
    return sizeof(*loop) + loop->fiber_count * sizeof(heddle_fiber) + loop->slot_count * sizeof(heddle_slot) +
           (loop->ready.size + loop->spent.size) * sizeof(uint64_t) + loop->timers.size * sizeof(heddle_timer *) +
           (loop->by_fiber.size + loop->by_waiter.size) * (sizeof(VALUE) + sizeof(void *)) +
           (size_t)loop->io_waits_size * sizeof(*loop->io_waits);
}

/* -- waits that only the selector can end ------------------------------------------------------------------------ */

int heddle_loop_arm(heddle_loop *loop, heddle_waiter *waiter)
{
    int result = loop->operations->arm(loop->selector, waiter);
    if (result == 0)
        loop->armed++;
    return result;
}

void heddle_loop_disarm(heddle_loop *loop, heddle_waiter *waiter)
{
    if (!waiter->armed)
        return;
    loop->operations->disarm(loop->selector, waiter);
    loop->armed--;
}

int heddle_loop_submit(heddle_loop *loop, heddle_waiter *waiter, const heddle_operation *operation)
{
    if (!loop->operations->submit)
        return -ENOSYS;
    int result = loop->operations->submit(loop->selector, waiter, operation);
    if (result == 0)
        loop->armed++;
    return result;
}

/* -- a turn ------------------------------------------------------------------------------------------------------ */

/* The first switch to a fiber fails where there is no stack for it. */
static void dispatch_new(heddle_loop *loop, heddle_park *entry)
{
    if (!RTEST(rb_fiber_alive_p(entry->fiber))) {
        loop->current = NULL;
        heddle_fiber_killed(entry->owner);
        return;
    }
    VALUE error = heddle_starter_switch(loop, entry->fiber);
    if (NIL_P(error))
        return;
    loop->current = NULL;
    heddle_fiber_unstarted(entry->owner, error);
}

/* Others may have switched to it meanwhile, or it resumes a fiber of its own, which will bring it back. */
static void dispatch_put_back(heddle_loop *loop, heddle_park *entry)
{
    int state = 0;
    heddle_park_leave(entry);
    loop->arriving = NULL;
    VALUE before = rb_errinfo(); /* the program may be on its way out */
    rb_protect(heddle_fiber_transfer, entry->fiber, &state);
    if (state && !heddle_is_fiber_error(rb_errinfo()))
        rb_jump_tag(state);
    rb_set_errinfo(before);
}

static void dispatch(heddle_loop *loop, uint64_t token)
{
    uint32_t index = (uint32_t)token, generation = (uint32_t)(token >> 32);
    heddle_slot *slot = &loop->slots[index];
    if (index >= loop->slot_count || slot->generation != generation || !slot->park)
        return;
    heddle_park *park = slot->park;
    park->queued = false;
    loop->current = park->owner;
    loop->arriving = park;
    loop->switches++;
    if (park != &park->owner->entry)
        heddle_fiber_transfer(park->fiber);
    else if (park->put_back)
        dispatch_put_back(loop, park);
    else
        dispatch_new(loop, park);
    loop->current = NULL;
    loop->arriving = NULL;
    if (loop->fork_generation != forks)
        heddle_loop_open(loop);
}

/* Who was left by a fiber that ended: a chain of them, maybe. */
static void dispatch_handed_over(heddle_loop *loop)
{
    while (loop->handed_over) {
        heddle_park *park = loop->handed_over;
        loop->handed_over = NULL;
        if (!heddle_park_entered(park))
            continue;
        park->woken = true;
        dispatch(loop, (uint64_t)park->generation << 32 | park->slot);
    }
}

static void dispatch_next(heddle_loop *loop, heddle_token_ring *ring)
{
    dispatch(loop, heddle_token_ring_shift(ring));
    dispatch_handed_over(loop);
}

static void run_ready(heddle_loop *loop)
{
    /* A snapshot: who becomes ready meanwhile waits for the next turn, so that everybody gets one. */
    for (uint32_t n = heddle_token_ring_count(&loop->ready); n > 0 && heddle_token_ring_count(&loop->ready); n--)
        dispatch_next(loop, &loop->ready);
    if (heddle_token_ring_count(&loop->spent))
        dispatch_next(loop, &loop->spent);
}

static bool anybody_ready(heddle_loop *loop)
{
    if (loop->until && loop->until->woken)
        return true;
    return heddle_token_ring_count(&loop->ready) || heddle_token_ring_count(&loop->spent);
}

static void check(int result, const char *what)
{
    if (result < 0)
        rb_syserr_fail(-result, what);
}

typedef struct {
    heddle_loop *loop;
    int64_t timeout;
    int result;
} blocking_wait;

static void *wait_without_gvl(void *data)
{
    blocking_wait *wait = data;
    wait->result = wait->loop->operations->wait(wait->loop->selector, wait->timeout);
    return NULL;
}

static void interrupt_wait(void *data)
{
    heddle_loop *loop = data;
    loop->operations->wake(loop->selector);
}

static void block(heddle_loop *loop, int64_t timeout)
{
    atomic_store(&loop->sleeping, 1);
    /* From here on whoever posts a letter sees the flag; who posted before is seen now. */
    if (heddle_inbox_empty(&loop->inbox)) {
        blocking_wait wait = {.loop = loop, .timeout = timeout};
        loop->waits++;
        /* INTR_FAIL: an interrupt must not be raised before the state is whole again. */
        rb_nogvl(wait_without_gvl, &wait, interrupt_wait, loop, RB_NOGVL_INTR_FAIL);
        atomic_store(&loop->sleeping, 0);
        loop->operations->harvest(loop->selector);
        check(wait.result, loop->operations->name);
    } else {
        atomic_store(&loop->sleeping, 0);
    }
    rb_thread_check_ints();
}

static int64_t time_to_wait(heddle_loop *loop)
{
    int64_t deadline = heddle_timer_heap_next(&loop->timers), now = 0;
    /* Only a fiber of this loop or another thread can have closed something since the last sweep. */
    if (loop->io_wait_count && (loop->switches != loop->swept_switches || !rb_thread_alone())) {
        now = heddle_now();
        if (now - loop->swept >= SWEEP_INTERVAL) {
            heddle_io_wait_sweep(loop);
            loop->swept = now;
            loop->swept_switches = loop->switches;
        } else if (deadline < 0 || deadline > loop->swept + SWEEP_INTERVAL) {
            deadline = loop->swept + SWEEP_INTERVAL; /* put off, so not to be forgotten */
        }
    }
    if (anybody_ready(loop))
        return 0;
    if (deadline < 0)
        return -1;
    if (!now)
        now = heddle_now();
    return deadline > now ? deadline - now : 0;
}

/* Anybody but those who rest until they are called, and the fiber that runs the loop itself? */
static bool anybody_lives(heddle_loop *loop)
{
    return loop->fiber_count > loop->resting + loop->hosting || loop->park_count > loop->resting;
}

static bool worth_a_poll(heddle_loop *loop)
{
    if (!loop->operations->pending(loop->selector))
        return false;
    if (!loop->operations->blind)
        return true;
    int64_t now = heddle_now();
    if (now - loop->polled < BLIND_INTERVAL)
        return false;
    loop->polled = now;
    return true;
}

static void turn(heddle_loop *loop)
{
    loop->turns++;
    run_ready(loop);
    heddle_inbox_open(&loop->inbox);

    if (!anybody_lives(loop))
        return;
    int64_t timeout = anybody_ready(loop) ? 0 : time_to_wait(loop);
    if (timeout == 0) {
        if (worth_a_poll(loop))
            check(loop->operations->poll(loop->selector), loop->operations->name);
    } else {
        if (timeout < 0 && loop->armed == 0 && heddle_inbox_empty(&loop->inbox)) {
            if (rb_thread_alone()) {
                rb_funcall(loop->scheduler, id_on_deadlock, 0);
                if (anybody_ready(loop))
                    return;
            } else {
                timeout = DEADLOCK_INTERVAL;
            }
        }
        /* With other threads about, giving up the GVL may cost a whole time slice of theirs: look first. */
        if (!rb_thread_alone() && loop->operations->pending(loop->selector)) {
            check(loop->operations->poll(loop->selector), loop->operations->name);
            timeout = time_to_wait(loop); /* a callback may have set a timer */
        }
        if (timeout)
            block(loop, timeout);
    }
    if (loop->timers.count)
        heddle_timer_heap_expire(&loop->timers, heddle_now());
}

typedef struct {
    heddle_loop *loop;
    heddle_park *until;
    heddle_fiber *outer; /* a scheduled fiber that runs the loop itself: a forked child's, on its way out */
    VALUE outer_fiber;
    bool outer_running;
} loop_run;

static VALUE run_turns(VALUE data)
{
    loop_run *run = (loop_run *)data;
    heddle_loop *loop = run->loop;
    if (run->until) {
        do {
            turn(loop);
        } while (!run->until->woken && heddle_park_entered(run->until));
    } else {
        while (anybody_lives(loop))
            turn(loop);
    }
    return Qnil;
}

static VALUE end_run(VALUE data)
{
    loop_run *run = (loop_run *)data;
    run->loop->fiber = run->outer_fiber;
    run->loop->running = run->outer_running;
    run->loop->current = run->outer;
    run->loop->hosting = 0;
    run->loop->until = NULL;
    run->loop->arriving = NULL;
    atomic_store(&run->loop->sleeping, 0);
    return Qnil;
}

static void run_until(heddle_loop *loop, heddle_park *park)
{
    loop_run run = {.loop = loop,
                    .until = park,
                    .outer = loop->current,
                    .outer_fiber = loop->fiber,
                    .outer_running = loop->running};
    loop->fiber = rb_fiber_current();
    loop->running = true;
    loop->until = park;
    loop->handed_over = NULL;
    loop->hosting = run.outer ? 1 : 0;
    rb_ensure(run_turns, (VALUE)&run, end_run, (VALUE)&run);
}

void heddle_loop_run(heddle_loop *loop)
{
    heddle_loop_open(loop);
    if (loop->running)
        rb_raise(rb_eThreadError, "this loop runs already");
    run_until(loop, NULL);
}

void heddle_loop_run_until(heddle_loop *loop, heddle_park *park)
{
    run_until(loop, park);
}

void heddle_loop_wake(heddle_loop *loop)
{
    /* One write a turn at most: the first who sees it asleep wakes it. */
    if (atomic_load(&loop->sleeping) && atomic_exchange(&loop->sleeping, 0))
        loop->operations->wake(loop->selector);
}
