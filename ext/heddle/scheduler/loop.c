/* The life of a loop, in this process and in forked children. Its ticks are in loop_tick.c. */

#include "scheduler/loop.h"

#include "scheduler/guard_pages.h"
#include "scheduler/interrupt_masks.h"
#include "scheduler/starter.h"
#include "selector/list.h"

#include <ruby/thread.h>

/* -- time -------------------------------------------------------------------------------------------------------- */

int64_t heddle_parse_duration(VALUE seconds)
{
    if (NIL_P(seconds))
        return -1;
    struct timespec duration = rb_time_timespec_interval(seconds);
    if (duration.tv_sec > INT64_MAX / HEDDLE_SECOND - 1)
        return INT64_MAX;
    return (int64_t)duration.tv_sec * HEDDLE_SECOND + duration.tv_nsec;
}

bool heddle_never_comes(VALUE seconds)
{
    if (RB_FLOAT_TYPE_P(seconds))
        return RFLOAT_VALUE(seconds) >= (double)(INT64_MAX / HEDDLE_SECOND);
    return rb_obj_is_kind_of(seconds, rb_cNumeric) &&
           RTEST(rb_funcall(seconds, rb_intern(">="), 1, LL2NUM(INT64_MAX / HEDDLE_SECOND)));
}

int64_t heddle_parse_limit(VALUE seconds)
{
    if (heddle_never_comes(seconds))
        return -1;
    if (rb_obj_is_kind_of(seconds, rb_cNumeric) && RTEST(rb_funcall(seconds, '<', 1, INT2FIX(0))))
        return 0;
    return heddle_parse_duration(seconds);
}

int64_t heddle_parse_timeout(int argc, const VALUE *argv, int positional)
{
    int keywords = rb_keyword_given_p();
    rb_check_arity(argc - keywords, positional, positional);
    if (!keywords)
        return -1;
    ID name = rb_intern("timeout");
    VALUE timeout;
    rb_get_kwargs(argv[positional], &name, 0, 1, &timeout);
    return timeout == Qundef ? -1 : heddle_parse_limit(timeout);
}

int64_t heddle_deadline_after(int64_t duration)
{
    int64_t now = heddle_clock_now();
    return duration > INT64_MAX - now ? INT64_MAX : now + duration;
}

/* -- fork -------------------------------------------------------------------------------------------------------- */

_Atomic unsigned heddle_forks;

static void count_fork(void)
{
    heddle_forks++;
}

void heddle_fork_watch(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

bool heddle_loop_forked(const heddle_loop *loop)
{
    return loop->fork_generation != heddle_forks;
}

static void empty_slots(heddle_loop *loop)
{
    for (uint32_t i = 0; i < loop->slots.count; i++) {
        loop->slots.items[i].park = NULL;
        loop->slots.items[i].generation++;
        loop->slots.items[i].next_free = i + 1 < loop->slots.count ? i + 1 : UINT32_MAX;
    }
    loop->slots.first_free = loop->slots.count ? 0 : UINT32_MAX;
}

/*
 * In a forked child the parent's fibers are copies that never run again, except the fiber that called fork. This
 * function discards all waits, timers and descriptors, and frees the records of the other fibers. If the loop's own
 * thread has forked, the function also detaches the time limits and interrupt masks, which lie on the stacks of these
 * fibers.
 */
static void forget_parent(heddle_loop *loop)
{
    loop->fork_generation = heddle_forks;
    if (loop->selector) {
        loop->operations->abandon(loop->selector);
        loop->selector = NULL;
    }
    /*
     * If the loop belongs to another thread than the one that forked, Ruby may have unmapped the stacks of its fibers.
     * So nothing may be written to these stacks.
     */
    bool own = loop->thread == rb_thread_current();
    if (loop->current == &loop->implicit || !own)
        loop->current = NULL;
    for (heddle_fiber *fiber = loop->fibers, *next; fiber; fiber = next) {
        next = fiber->next;
        if (fiber == loop->current)
            continue;
        if (own)
            heddle_fiber_drop_timeouts(fiber);
        free(fiber);
    }
    if (!own) {
        loop->implicit.timeouts = NULL;
        loop->implicit.masks = NULL;
    }
    st_clear(loop->by_fiber);
    st_clear(loop->by_waiter);
    loop->fibers = loop->current;
    loop->fiber_count = 0;
    if (loop->current) {
        loop->fiber_count = 1;
        loop->current->next = loop->current->previous = NULL;
        loop->current->park = NULL;
        st_insert(loop->by_fiber, loop->current->fiber, (st_data_t)loop->current);
    }
    empty_slots(loop);
    loop->early_unblocks = 0;
    loop->interrupts = (heddle_loop_interrupts){0};
    loop->starter = 0;
    loop->parks = NULL;
    loop->park_count = 0;
    loop->idle = 0;
    loop->implicit.park = NULL;
    loop->work_waits = false;
    loop->ready.head = loop->ready.tail = loop->preempted.head = loop->preempted.tail = 0;
    for (size_t i = 0; own && i < loop->timers.count; i++)
        loop->timers.entries[i]->slot = 0;
    loop->timers.count = 0;
    atomic_store(&loop->inbox.newest, NULL);
    loop->io.reopened_posted = false;
    atomic_store(&loop->sleeping, 0);
    loop->armed = 0;
    loop->io.unreported = 0;
    if (loop->io.waits)
        memset(loop->io.waits, 0, (size_t)loop->io.size * sizeof(*loop->io.waits));
    loop->switching.switching_to = NULL;
    loop->switching.next_unblocked = NULL;
    loop->switching.ending = Qfalse;
    loop->run.forked_by = loop->current ? loop->current->fiber : Qfalse;
    loop->run.parent_ran = heddle_loop_is_running(loop);
    if (loop->watch.heartbeat) /* the parent's heartbeat must not be used in the child */
        loop->watch.heartbeat = own ? heddle_hooks.acquire_heartbeat(loop, (uintptr_t)loop->thread) : NULL;
    if (loop->current)
        loop->current->parent_park = NULL;
    loop->run.until = NULL;
    loop->run.runs_in_fiber = 0;
    if (loop->state != HEDDLE_LOOP_UNOPENED)
        heddle_loop_enter(loop, HEDDLE_LOOP_UNOPENED);
}

void heddle_loop_notice_fork(heddle_loop *loop)
{
    if (heddle_loop_forked(loop) && !heddle_loop_is_closed(loop))
        forget_parent(loop);
}

/* -- life -------------------------------------------------------------------------------------------------------- */

bool heddle_in_main_ractor(void)
{
    VALUE ractor = rb_path2class("Ractor");
    return rb_funcall(ractor, rb_intern("current"), 0) == rb_funcall(ractor, rb_intern("main"), 0);
}

heddle_loop *heddle_loops_in_main_ractor;

void heddle_loop_initialize(heddle_loop *loop, VALUE scheduler, const heddle_selector_operations *operations)
{
    loop->by_fiber = st_init_numtable();
    loop->by_waiter = st_init_numtable();
    loop->scheduler = scheduler;
    loop->operations = operations;
    loop->thread = rb_thread_current();
    loop->fiber = rb_fiber_current();
    loop->slots.first_free = UINT32_MAX;
    loop->fork_generation = heddle_forks;
    loop->implicit = (heddle_fiber){.loop = loop, .fiber = Qnil, .job = Qnil, .request = Qnil, .interrupt = Qundef};
    loop->body = heddle_fiber_make_body(scheduler);
    loop->in_main_ractor = heddle_in_main_ractor();
    HEDDLE_LIST_REMOVE(heddle_loops_in_main_ractor, loop);
    if (loop->in_main_ractor)
        HEDDLE_LIST_ADD(heddle_loops_in_main_ractor, loop);
}

void heddle_loop_open(heddle_loop *loop)
{
    heddle_loop_notice_fork(loop);
    if (heddle_loop_is_closed(loop))
        rb_raise(rb_eRuntimeError, "this scheduler is closed: make a new Heddle::Scheduler");
    if (loop->selector)
        return;
    /* Opened at first use and not when the loop is created: an io_uring belongs to the thread that opened it. */
    loop->thread = rb_thread_current();
#ifdef HAVE_RB_THREAD_LOCK_NATIVE_THREAD
    /*
     * In a Ractor and under RUBY_MN_THREADS, Ruby moves threads between native threads, and crashes when a fiber
     * continues on another native thread. Ruby 3.3 has no function to prevent that.
     */
    rb_thread_lock_native_thread();
#endif
    heddle_guard_pages_install();
    int result = loop->operations->open(&loop->selector);
    /*
     * All io_urings of a user count toward one limit of locked memory. It may have been reached since Heddle probed
     * io_uring.
     */
    bool full = result == -ENOMEM && loop->operations == heddle_selectors[0] && heddle_selectors[1];
    if (full)
        result = (loop->operations = heddle_selectors[1])->open(&loop->selector);
    if (result < 0)
        rb_syserr_fail(-result, loop->operations->name);
    heddle_loop_enter(loop, HEDDLE_LOOP_OPEN);
    heddle_starter_prepare(loop);
    if (full)
        rb_funcall(rb_path2class("Heddle::Selector"), rb_intern("report_fallback"), 1,
                   ID2SYM(rb_intern(loop->operations->name)));
}

void heddle_loop_release(heddle_loop *loop)
{
    HEDDLE_LIST_REMOVE(heddle_loops_in_main_ractor, loop);
    if (heddle_loop_forked(loop)) {
        /*
         * The garbage collector of a forked child may free a loop of the parent. Then only the child's copies of the
         * descriptors are closed, because the parent still uses the selector.
         */
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
    if (!heddle_loop_is_closed(loop)) /* the scheduler was garbage collected without having been closed */
        heddle_loop_enter(loop, HEDDLE_LOOP_CLOSED);
    heddle_token_ring_free(&loop->ready);
    heddle_token_ring_free(&loop->preempted);
    heddle_timer_heap_free(&loop->timers);
    /*
     * The tables themselves are kept until the scheduler is freed, because methods of a closed scheduler still look up
     * fibers.
     */
    st_clear(loop->by_fiber);
    st_clear(loop->by_waiter);
    free(loop->slots.items);
    free(loop->io.waits);
    free(loop->io.notes);
    loop->io.notes = NULL;
    loop->slots.items = NULL;
    loop->io.waits = NULL;
    loop->slots.count = 0;
    loop->io.size = 0;
    loop->parks = NULL;
    loop->park_count = 0;
    loop->idle = 0;
    loop->starter = 0;
}

void heddle_loop_attach(heddle_loop *loop, heddle_attachment *attachment)
{
    HEDDLE_LIST_ADD(loop->attachments, attachment);
}

void heddle_loop_detach(heddle_loop *loop, heddle_attachment *attachment)
{
    HEDDLE_LIST_REMOVE(loop->attachments, attachment);
}

static void mark_blocks(const heddle_fiber *fiber)
{
    heddle_fiber_mark_masks(fiber);
    for (heddle_timeout *timeout = fiber->timeouts; timeout; timeout = timeout->outer)
        rb_gc_mark(timeout->fiber);
}

/* A nested fiber that waits may have no other reference; Ruby scans its stack only if it is marked. */
static void mark_parks(const heddle_loop *loop)
{
    for (heddle_park *park = loop->parks; park; park = park->next) {
        rb_gc_mark(park->fiber);
        rb_gc_mark(park->switched_to);
        rb_gc_mark(park->interrupt);
    }
    if (loop->starter)
        /* the target of the starter's last switch; marked for the same reason as park->switched_to */
        rb_gc_mark(loop->starting);
    if (HEDDLE_SWITCH_RETURNS_STACKS)
        rb_gc_mark(loop->switching.last_target); /* the target of the last switch of the loop's fiber */
    rb_gc_mark(loop->switching.ending);
}

void heddle_loop_mark(void *data)
{
    heddle_loop *loop = data;
    mark_blocks(&loop->implicit);
    rb_gc_mark(loop->thread);
    rb_gc_mark(loop->fiber);
    rb_gc_mark(loop->body);
    rb_gc_mark(loop->early_unblocks);
    rb_gc_mark(loop->interrupts.deferred);
    rb_gc_mark(loop->interrupts.proxies);
    rb_gc_mark(loop->waiting_method);
    rb_gc_mark(loop->switching.returned);
    rb_gc_mark(loop->run.forked_by);
    if (loop->preempt.hooked)
        rb_gc_mark(loop->preempt.switched_to);
    if (loop->starter) {
        rb_gc_mark(loop->starter);
        rb_gc_mark(loop->start_error);
        rb_gc_mark(loop->start_home); /* it may also be the target of the starter's last switch */
    }
    if (loop->implicit.interrupt != Qundef)
        rb_gc_mark_movable(loop->implicit.interrupt);
    for (heddle_fiber *fiber = loop->fibers; fiber; fiber = fiber->next) {
        rb_gc_mark(fiber->fiber); /* pinned: its address is a key of `by_fiber` */
        rb_gc_mark_movable(fiber->job);
        rb_gc_mark_movable(fiber->request);
        rb_gc_mark(fiber->delivered_error);
        if (fiber->interrupt != Qundef)
            rb_gc_mark_movable(fiber->interrupt);
        mark_blocks(fiber);
    }
    mark_parks(loop);
    for (heddle_attachment *attachment = loop->attachments; attachment; attachment = attachment->next)
        rb_gc_mark(attachment->object);
}

void heddle_loop_compact(void *data)
{
    heddle_loop *loop = data;
    loop->scheduler = rb_gc_location(loop->scheduler);
    if (loop->implicit.interrupt != Qundef)
        loop->implicit.interrupt = rb_gc_location(loop->implicit.interrupt);
    for (heddle_fiber *fiber = loop->fibers; fiber; fiber = fiber->next) {
        fiber->job = rb_gc_location(fiber->job);
        fiber->request = rb_gc_location(fiber->request);
        if (fiber->interrupt != Qundef)
            fiber->interrupt = rb_gc_location(fiber->interrupt);
    }
}

/* -- the watch --------------------------------------------------------------------------------------------------- */

/* Only loops of the main Ractor are watched, because Ruby runs postponed jobs only there. */
bool heddle_loop_begin_watch(heddle_loop *loop)
{
    if (loop->watch.heartbeat || !loop->in_main_ractor)
        return false;
    heddle_hooks.prepare_preemption();
    loop->watch.word = 1; /* odd: a fiber runs (heartbeat.h) */
    loop->watch.heartbeat = heddle_hooks.acquire_heartbeat(loop, (uintptr_t)rb_thread_current());
    if (heddle_preempting)
        heddle_hooks.follow_switches(loop, true);
    return loop->watch.heartbeat != NULL;
}

void heddle_loop_end_watch(heddle_loop *loop)
{
    if (!loop->watch.heartbeat)
        return;
    heddle_hooks.follow_switches(loop, false);
    heddle_hooks.release_heartbeat(loop->watch.heartbeat);
    loop->watch.heartbeat = NULL;
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
