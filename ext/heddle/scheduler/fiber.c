#include "scheduler/take_errinfo.h"
#include "scheduler/fiber_stacks.h"
#include "scheduler/foreign_return.h"
#include "scheduler/guard_pages_ruby.h"
#include "scheduler/loop.h"
#include "scheduler/starter.h"
#include "selector/list.h"

static VALUE fiber_class;

/*
 * The size of Ruby's record of a Fiber, in bytes. Ruby counts it as memory that a garbage collection might free. So
 * creating fibers triggers garbage collections, each of which scans the stacks of all fibers (3 µs for each fiber). A
 * loop's fiber is not garbage until it ends, so until then its size is subtracted from Ruby's count.
 */
static const ssize_t FIBER_MEMORY = 760;

/*
 * After this many starts of fibers in a tick, the ready fibers run before the fiber that made the last start continues.
 */
static const unsigned STARTS_BEFORE_YIELD = 16;

/* Called when the extension is loaded: at first use, two Ractors might initialize the class at the same time. */
void heddle_fiber_setup(void)
{
    fiber_class = rb_const_get(rb_cObject, rb_intern("Fiber"));
    rb_gc_register_mark_object(fiber_class);
}

/*
 * Makes the implicit task (loop.h) the owner of the parks that this fiber still owns when it ends: those of nested
 * fibers that still wait, because the program has left them by Fiber#transfer.
 */
static void release_parks(heddle_fiber *fiber)
{
    heddle_fiber *foreign = &fiber->loop->implicit;
    while (fiber->park) {
        heddle_park *park = fiber->park;
        fiber->park = park->outer;
        park->owner = foreign;
        park->outer = foreign->park;
        foreign->park = park;
    }
}

static void forget_fiber(heddle_fiber *fiber)
{
    heddle_loop *loop = fiber->loop;
    release_parks(fiber);
    heddle_fiber_drop_timeouts(fiber);
    heddle_park *parent = heddle_fiber_take_parent_park(fiber);
    if (parent && heddle_loop_is_running(loop))
        /* when a fiber ends, Ruby switches to the loop's fiber, which then switches to this park */
        loop->switching.next_unblocked = parent;
    else if (parent)
        heddle_park_wake(parent);
    if (loop->current == fiber)
        loop->current = NULL;
    if (!NIL_P(fiber->fiber)) {
        st_data_t key = fiber->fiber;
        st_delete(loop->by_fiber, &key, NULL);
        rb_gc_adjust_memory_usage(FIBER_MEMORY);
    }
    HEDDLE_LIST_REMOVE(loop->fibers, fiber);
    loop->fiber_count--;
    free(fiber);
}

/*
 * Called in a forked child when the job of the fiber that called fork without a block has ended. Ends the process, as
 * Ruby does when a thread that has called fork ends. But if the main block of Heddle.run has called fork, the function
 * continues the parent's run, and the code after Heddle.run runs in the child, too.
 */
NORETURN(static void end_childs_program(heddle_loop *loop, VALUE job, int state))
{
    VALUE continues = Qfalse;
    if (!state && loop->run.parent_ran && !heddle_loop_is_closed(loop))
        continues = heddle_call_protected(loop->scheduler, rb_intern("child_ends"), 1, &job, &state);
    if (state || !RTEST(continues))
        ruby_stop(state);
    heddle_fiber *fiber = heddle_fiber_find(loop, rb_fiber_current());
    if (fiber)
        forget_fiber(fiber);
    loop->run.forked_by = Qfalse;
    heddle_loop_enter(loop, HEDDLE_LOOP_RUNNING);
    for (;;)
        /* the transfer returns when another fiber ends, because Ruby treats this fiber as the root fiber */
        heddle_fiber_transfer(loop->fiber);
}

/*
 * The body of every fiber. Looks up the fiber's record first, because a program that has kept the Fiber may switch to
 * the Fiber when the record no longer exists: after the scheduler was closed, after Ruby had no stack for the fiber, or
 * in a forked child.
 */
static VALUE run_body(RB_BLOCK_CALL_FUNC_ARGLIST(yielded, scheduler))
{
    heddle_loop *loop = heddle_loop_of(scheduler);
    heddle_fiber_stacks_unlock(loop);
    heddle_loop_notice_fork(loop);
    VALUE self = rb_fiber_current();
    heddle_fiber *fiber = heddle_fiber_find(loop, self);
    int state = 0;

    if (!fiber)
        return Qnil;
    loop->current = fiber;
    loop->switching.left_by_wait = false;
    loop->switching.switching_to = NULL;
    heddle_park_leave(&fiber->queue_park);
    heddle_spender_start(&fiber->spender);
    VALUE job = fiber->job;
    /*
     * Calls the job through a method written in Ruby. In a backtrace, a C frame has the file and line of its caller. So
     * without that method the outermost frame would have no path, but Rails expects every frame to have a path.
     */
    heddle_call_protected(scheduler, rb_intern("run_job"), 1, &job, &state);
    heddle_loop_notice_fork(loop);
    if (loop->run.forked_by == self)
        end_childs_program(loop, job, state);
    if (state) {
        VALUE error = rb_errinfo();
        if (heddle_is_exception(error) && !heddle_ends_loop(error)) {
            VALUE failure[] = {self, error};
            int failed = 0;
            heddle_call_protected(scheduler, rb_intern("report_failure"), 2, failure, &failed);
            heddle_take_errinfo();
            state = 0;
        }
    }
    fiber = heddle_fiber_find(loop, self);
    if (fiber)
        heddle_spender_stop(&fiber->spender, HEDDLE_SPENT_RUNNING);
    if (fiber && fiber->delivered_error && !state)
        heddle_hooks.take_back_error(fiber); /* the fiber has ended, so the exception can't be raised in it */
    /*
     * From version 3.4 on, Ruby releases the stack of an ended fiber when the fiber that last switched to it continues.
     * An ended fiber switches to the loop's fiber. If another fiber has made the last switch to this one, Ruby would
     * keep the stack until that other fiber continues. So the loop then switches here once more (heddle_foreign_return)
     * before this fiber ends.
     */
    bool entered_by_other = HEDDLE_SWITCH_RETURNS_STACKS && fiber &&
                            loop->switching.last_target != self && !fiber->parent_park;
    if (fiber)
        forget_fiber(fiber);
    if (entered_by_other && !state && heddle_loop_is_running(loop) && !heddle_loop_forked(loop)) {
        loop->switching.ending = self;
        rb_protect(heddle_fiber_transfer, loop->fiber, &state);
    }
    int interrupted = heddle_fiber_stacks_lock(loop); /* the code that runs the loop unlocks it */
    if (!state)
        state = interrupted;
    if (state)
        rb_jump_tag(state); /* SystemExit, Interrupt or a kill: Ruby raises it in the fiber that runs the loop */
    return Qnil;
}

/*
 * All fibers of a loop share one Proc as their body. rb_fiber_new would create a Proc for each fiber, and keep its
 * caller's frame and block: four more objects for each fiber, which make garbage collections more frequent.
 */
VALUE heddle_fiber_make_body(VALUE scheduler)
{
    return rb_proc_new(run_body, scheduler);
}

static VALUE init_fiber(VALUE data)
{
    heddle_fiber *fiber = (heddle_fiber *)data;
    heddle_loop *loop = fiber->loop;

    heddle_fiber_reserve_queue_park(fiber);
    fiber->fiber = rb_funcall_with_block(fiber_class, rb_intern("new"), 0, NULL, loop->body);
    fiber->queue_park.fiber = fiber->fiber;
    st_insert(loop->by_fiber, fiber->fiber, (st_data_t)fiber);
    rb_gc_adjust_memory_usage(-FIBER_MEMORY);
    return Qnil;
}

heddle_fiber *heddle_fiber_spawn(heddle_loop *loop, VALUE job)
{
    heddle_fiber *fiber = calloc(1, sizeof(*fiber));
    if (!fiber)
        rb_memerror();
    *fiber = (heddle_fiber){
        .loop = loop, .fiber = Qnil, .job = job, .request = Qnil, .interrupt = Qundef};
    const heddle_fiber *parent = loop->current;
    if (parent && parent->describe) {
        fiber->describe = parent->describe;
        fiber->request = parent->request;
        fiber->request_number = parent->request_number;
        fiber->quantum = parent->quantum;
        fiber->label = parent->label;
        fiber->spender = (heddle_spender){
            .account = parent->spender.account, .request = parent->spender.request, .task = true};
    }
    /* Added to the list before init_fiber is called, so that the garbage collector marks the job and the Fiber. */
    HEDDLE_LIST_ADD(loop->fibers, fiber);
    loop->fiber_count++;

    int state = 0;
    rb_protect(init_fiber, (VALUE)fiber, &state);
    if (state) {
        heddle_park_leave(&fiber->queue_park);
        forget_fiber(fiber);
        rb_jump_tag(state);
    }
    return fiber;
}

/* -- starting ---------------------------------------------------------------------------------------------------- */

bool heddle_is_fiber_error(VALUE error)
{
    return RTEST(rb_obj_is_kind_of(error, rb_const_get(rb_cObject, rb_intern("FiberError"))));
}

void heddle_fiber_handle_start_failure(heddle_fiber *fiber, VALUE error)
{
    VALUE scheduler = fiber->loop->scheduler, job = fiber->job, reason = heddle_fiber_limit_error(error);
    heddle_park_leave(&fiber->queue_park);
    forget_fiber(fiber);
    rb_funcall(scheduler, rb_intern("report_unstarted"), 2, job, reason);
}

void heddle_fiber_handle_kill(heddle_fiber *fiber)
{
    VALUE scheduler = fiber->loop->scheduler, job = fiber->job;
    heddle_park_leave(&fiber->queue_park);
    forget_fiber(fiber);
    rb_funcall(scheduler, rb_intern("report_killed"), 1, job);
}

/* Removes a fiber for which Ruby had no stack, and raises the error (see heddle_fiber_limit_error). */
NORETURN(static void reject_fiber(heddle_fiber *fiber, VALUE error))
{
    VALUE explained = heddle_fiber_limit_error(error);
    heddle_park_leave(&fiber->queue_park);
    forget_fiber(fiber);
    rb_exc_raise(explained);
}

static void lock_stacks(heddle_loop *loop, VALUE fiber)
{
    int state = heddle_fiber_stacks_lock(loop);
    heddle_fiber *record = state ? heddle_fiber_find(loop, fiber) : NULL;
    if (record) {
        heddle_park_leave(&record->queue_park);
        forget_fiber(record);
    }
    if (state)
        rb_jump_tag(state);
}

/*
 * Makes the first switch to a fiber, at which Ruby allocates its stack. If that fails, the fiber's body has not run, so
 * its `queue_park` is still entered.
 */
static void switch_to_new(heddle_loop *loop, VALUE fiber)
{
    int state = 0;
    lock_stacks(loop, fiber);
    rb_protect(heddle_fiber_transfer, fiber, &state);
    heddle_fiber_stacks_unlock(loop);
    if (!state)
        return;
    heddle_fiber *record = heddle_fiber_find(loop, fiber);
    if (record && heddle_park_entered(&record->queue_park) && !record->queue_park.put_back)
        reject_fiber(record, heddle_take_errinfo());
    rb_jump_tag(state);
}

typedef struct {
    heddle_park park;
    heddle_fiber *fiber;
    VALUE child;
} child_start;

/*
 * If an exception is raised in the parent (the fiber that starts the child), the parent may continue before the child
 * waits for the first time. Then the child must not switch back to the parent.
 */
static VALUE end_start(VALUE data)
{
    child_start *start = (child_start *)data;
    heddle_fiber *child = heddle_fiber_find(start->park.loop, start->child);
    if (child && child->parent_park == &start->park)
        child->parent_park = NULL;
    heddle_park_leave(&start->park);
    return Qnil;
}

/*
 * Due timers don't count: otherwise a fiber that starts many sleeping fibers would be delayed by those that wake up
 * meanwhile.
 */
static bool has_other_work(heddle_loop *loop)
{
    return heddle_token_ring_count(&loop->ready) || heddle_token_ring_count(&loop->preempted) ||
           !heddle_inbox_empty(&loop->inbox) || loop->operations->has_events(loop->selector);
}

/*
 * A fiber that starts thousands of others lets the ready fibers run after each STARTS_BEFORE_YIELD starts, so that some
 * of the started fibers can end. That saves memory and time, because each fiber has a stack until it ends, and every
 * garbage collection scans it.
 */
static void yield_to_others(child_start *start)
{
    heddle_loop *loop = start->park.loop;
    VALUE self = start->park.fiber;
    if (++loop->starts % STARTS_BEFORE_YIELD || !heddle_park_entered(&start->park) || loop->run.forked_by ||
        start->park.owner->fiber != self || self == loop->fiber || !has_other_work(loop))
        return;
    heddle_park_wake(&start->park);
    heddle_park_wait_uninterruptibly(&start->park);
}

static VALUE start_from_park(VALUE data)
{
    child_start *start = (child_start *)data;
    heddle_loop *loop = start->park.loop;
    VALUE fiber = start->fiber->fiber;

    heddle_fiber_keep_error(start->park.owner);
    heddle_loop_note_switch(loop);
    start->fiber->parent_park = &start->park;
    start->park.switched_away = true;
    start->park.waits_for = HEDDLE_SPENT_READY;
    heddle_spender_stop(&start->park.owner->spender, HEDDLE_SPENT_READY);
    heddle_park_note_target(&start->park, fiber);
    heddle_loop_advance_heartbeat(loop);
    switch_to_new(loop, fiber);
    heddle_park_finish_switch(&start->park);
    RB_GC_GUARD(fiber);
    yield_to_others(start);
    return Qnil;
}

/* Returns Qnil, or the error if Ruby had no stack for the fiber. The fiber's record may be freed in the switch. */
static VALUE start_without_loop(VALUE data)
{
    const heddle_fiber *fiber = (const heddle_fiber *)data;
    heddle_loop *loop = fiber->loop;
    VALUE error = heddle_starter_switch(loop, fiber->fiber);
    if (NIL_P(error))
        heddle_foreign_return(loop);
    return error;
}

void heddle_fiber_start(heddle_fiber *fiber)
{
    heddle_loop *loop = fiber->loop;
    VALUE keep = fiber->fiber;

    if (heddle_loop_is_running(loop) || loop->current) {
        /*
         * The caller waits until its child waits for the first time or ends. Then the caller is the next fiber to run.
         */
        child_start start = {.fiber = fiber, .child = keep};
        heddle_park_enter(loop, &start.park);
        rb_ensure(start_from_park, (VALUE)&start, end_start, (VALUE)&start);
    } else {
        /* The loop does not run yet, so the child's first wait switches back to this fiber. */
        loop->fiber = rb_fiber_current();
        bool watched = heddle_hooks.is_watching() && heddle_loop_begin_watch(loop);
        int state = 0;
        VALUE error = rb_protect(start_without_loop, (VALUE)fiber, &state);
        heddle_foreign_raise(loop, &state);
        if (watched)
            heddle_loop_end_watch(loop);
        loop->current = NULL;
        loop->switching.switching_to = NULL;
        if (state)
            rb_jump_tag(state);
        if (!NIL_P(error))
            reject_fiber(fiber, error);
    }
    RB_GC_GUARD(keep);
}

/*
 * Called when the fiber waits or ends. The first call returns the park of the fiber that started this one, and that
 * fiber continues next. Later calls return NULL, and so does the first one if that park was left meanwhile.
 */
heddle_park *heddle_fiber_take_parent_park(heddle_fiber *fiber)
{
    heddle_park *parent = fiber->parent_park;
    fiber->parent_park = NULL;
    return parent && heddle_park_entered(parent) ? parent : NULL;
}

void heddle_fiber_enqueue(heddle_fiber *fiber)
{
    heddle_park_wake(&fiber->queue_park);
}

heddle_fiber *heddle_fiber_find(heddle_loop *loop, VALUE fiber)
{
    st_data_t found;
    return st_lookup(loop->by_fiber, fiber, &found) ? (heddle_fiber *)found : NULL;
}

heddle_fiber *heddle_fiber_current(heddle_loop *loop)
{
    return loop->current ? loop->current : &loop->implicit;
}

void heddle_fiber_interrupt(heddle_fiber *fiber, VALUE exception)
{
    fiber->interrupt = exception;
    fiber->must_raise = true;
    if (fiber->park)
        heddle_park_wake(fiber->park);
}
