/* Heddle::Scheduler: the Ruby object around a loop. */

#include "binding.h"
#include "scheduler/account_ruby.h"
#include "scheduler/fiber_stacks.h"
#include "scheduler/guard_pages_ruby.h"
#include "scheduler/ruby_hooks.h"
#include "scheduler/interrupt_masks.h"
#include "scheduler/loop.h"

#include <ruby/fiber/scheduler.h>

static void scheduler_free(void *data)
{
    heddle_loop *loop = data;
    if (loop->operations)
        heddle_loop_release(loop);
    if (loop->by_fiber)
        st_free_table(loop->by_fiber);
    if (loop->by_waiter)
        st_free_table(loop->by_waiter);
    xfree(loop);
}

static const rb_data_type_t scheduler_type =
    HEDDLE_TYPE("Heddle::Scheduler", 0, .dmark = heddle_loop_mark, .dfree = scheduler_free,
                .dcompact = heddle_loop_compact);

static VALUE scheduler_allocate(VALUE klass)
{
    heddle_loop *loop;
    VALUE scheduler = TypedData_Make_Struct(klass, heddle_loop, &scheduler_type, loop);
    loop->thread = loop->fiber = loop->body = Qnil;
    loop->implicit.interrupt = Qundef;
    loop->scheduler = scheduler;
    return scheduler;
}

heddle_loop *heddle_loop_of(VALUE scheduler)
{
    /* Every hook calls this function, so the common case makes no further call. */
    bool plain = RB_TYPE_P(scheduler, T_DATA) && RTYPEDDATA_P(scheduler) &&
                 RTYPEDDATA_TYPE(scheduler) == &scheduler_type;
    heddle_loop *loop = plain ? RTYPEDDATA_GET_DATA(scheduler) : rb_check_typeddata(scheduler, &scheduler_type);
    if (!loop->operations)
        rb_raise(rb_eArgError, "uninitialized scheduler");
    return loop;
}

heddle_loop *heddle_loop_if(VALUE scheduler)
{
    if (!rb_typeddata_is_kind_of(scheduler, &scheduler_type))
        return NULL;
    heddle_loop *loop = RTYPEDDATA_GET_DATA(scheduler);
    return loop->operations ? loop : NULL;
}

heddle_loop *heddle_loop_current(void)
{
    VALUE scheduler = rb_fiber_scheduler_current();
    heddle_loop *loop = NIL_P(scheduler) ? NULL : heddle_loop_if(scheduler);
    return loop && !heddle_loop_is_closed(loop) && !heddle_loop_forked(loop) ? loop : NULL;
}

heddle_loop *heddle_loop_get(VALUE scheduler)
{
    heddle_loop *loop = heddle_loop_of(scheduler);
    heddle_loop_open(loop);
    if (loop->thread != rb_thread_current())
        rb_raise(rb_eThreadError, "this scheduler belongs to another thread: only unblock, fiber_interrupt and unpark "
                                  "may be called on this thread");
    return loop;
}

/* Called by Scheduler.new with the name of a selector that works here. */
static VALUE scheduler_open(VALUE self, VALUE name)
{
    heddle_loop *loop = rb_check_typeddata(self, &scheduler_type);
    const heddle_selector_operations *operations = heddle_selector_find(StringValueCStr(name));
    if (!operations)
        rb_raise(rb_eArgError, "unknown selector %" PRIsVALUE " (known: io_uring, epoll, kqueue, select)", name);
    heddle_fiber_stacks_join();
    heddle_loop_initialize(loop, self, operations);
    return self;
}

/*
 * Runs ticks until no fiber is left except idle ones, which do not keep the loop running (`idle` in park.h). Exceptions
 * raised in the loop are raised in the caller.
 */
static VALUE scheduler_run_ticks(VALUE self)
{
    heddle_loop_run(heddle_loop_get(self));
    return Qnil;
}

/* Raises ThreadError if the loop is already running: then the caller may neither run ticks nor close the loop. */
static VALUE scheduler_claim(VALUE self)
{
    if (heddle_loop_is_running(heddle_loop_get(self)))
        rb_raise(rb_eThreadError, "this loop is already running: its own fibers can neither run nor close it");
    return Qnil;
}

/* Closes the loop, with its attachments and its selector. */
static VALUE scheduler_release(VALUE self)
{
    heddle_loop *loop = heddle_loop_of(self);
    while (!heddle_loop_is_closed(loop) && loop->attachments) {
        heddle_attachment *attachment = loop->attachments;
        attachment->closing(attachment);
        if (loop->attachments == attachment)
            /*
             * `closing` did nothing: the attachment belongs to the parent process, and was closed in this one when it
             * was forked
             */
            heddle_loop_detach(loop, attachment);
    }
    if (!heddle_loop_is_closed(loop)) {
        /*
         * The blocks of timeouts may still be on a stack. Separates these timeouts from the timer heap and the fibers'
         * records, which are freed.
         */
        for (heddle_fiber *fiber = loop->fibers; fiber; fiber = fiber->next)
            heddle_fiber_drop_timeouts(fiber);
        heddle_fiber_drop_timeouts(&loop->implicit);
        for (size_t i = 0; i < loop->timers.count; i++)
            loop->timers.entries[i]->slot = 0;
        loop->timers.count = 0;
        heddle_loop_release(loop);
    }
    return Qnil;
}

/*
 * call-seq: start(job) -> Fiber
 *
 * Calls job.call in a new non-blocking fiber, which runs at once, until it first waits. Returns the fiber.
 */
static VALUE scheduler_start(VALUE self, VALUE job)
{
    heddle_fiber *fiber = heddle_fiber_spawn(heddle_loop_get(self), job);
    VALUE result = fiber->fiber;
    heddle_fiber_start(fiber);
    return result;
}

static VALUE resume_fiber(VALUE fiber)
{
    return rb_fiber_resume(fiber, 0, NULL);
}

/*
 * call-seq: resume_new(fiber) -> object
 *
 * Resumes a fiber for the first time, as Fiber#resume does, and returns the fiber's value. The fiber must come from
 * Fiber.new, and must not wait: until it returns, no other loop or garbage collection can use Ruby's list of stacks.
 */
static VALUE scheduler_resume_new(VALUE self, VALUE fiber)
{
    heddle_loop *loop = heddle_loop_get(self);
    int state = heddle_fiber_stacks_lock(loop);
    if (state)
        rb_jump_tag(state);
    VALUE result = rb_protect(resume_fiber, fiber, &state);
    heddle_fiber_stacks_unlock(loop);
    if (state)
        rb_jump_tag(state);
    return result;
}

/*
 * call-seq: spawn(job) -> Fiber
 *
 * Calls job.call in a new non-blocking fiber, in a later tick. Returns the fiber.
 */
static VALUE scheduler_spawn(VALUE self, VALUE job)
{
    heddle_fiber *fiber = heddle_fiber_spawn(heddle_loop_get(self), job);
    heddle_fiber_enqueue(fiber);
    return fiber->fiber;
}

/*
 * call-seq: interrupt(fiber, exception) -> true or false
 *
 * Raises +exception+ in a scheduled fiber: at its current wait, at the current wait of a fiber nested in it, or else at
 * its next wait. Returns false if the fiber has ended, or is not a scheduled fiber of this loop.
 */
static VALUE scheduler_interrupt(VALUE self, VALUE fiber, VALUE exception)
{
    heddle_loop *loop = heddle_loop_get(self);
    heddle_fiber *record = heddle_fiber_find(loop, fiber);
    if (!record)
        return Qfalse;
    if (!RTEST(rb_obj_is_kind_of(exception, rb_eException)))
        rb_raise(rb_eTypeError, "the argument must be an exception, not %" PRIsVALUE, rb_obj_class(exception));
    heddle_fiber_interrupt(record, exception);
    return Qtrue;
}

/*
 * call-seq: uninterrupt(fiber) -> exception or nil
 *
 * Cancels the fiber's interrupt if it was not raised yet, and returns its exception. Returns nil if the fiber has no
 * such interrupt.
 */
static VALUE scheduler_uninterrupt(VALUE self, VALUE fiber)
{
    heddle_fiber *record = heddle_fiber_find(heddle_loop_get(self), fiber);
    if (!record || record->interrupt == Qundef)
        return Qnil;
    VALUE exception = record->interrupt;
    record->interrupt = Qundef;
    return exception;
}

static VALUE state_of(heddle_loop *loop, heddle_fiber *fiber)
{
    const char *state = fiber == loop->current                                                      ? "running"
                        : heddle_park_entered(&fiber->queue_park) || (fiber->park && fiber->park->woken) ? "ready"
                                                                                                    : "waiting";
    return ID2SYM(rb_intern(state));
}

/*
 * call-seq: each_fiber { |fiber, job, state| ... } -> nil
 *
 * Yields the scheduled fibers, oldest first; +state+ is :ready, :running or :waiting.
 */
static VALUE scheduler_each_fiber(VALUE self)
{
    heddle_loop *loop = heddle_loop_of(self);
    VALUE list = rb_ary_new();
    for (heddle_fiber *fiber = loop->fibers; fiber; fiber = fiber->next) {
        if (!NIL_P(fiber->fiber))
            rb_ary_unshift(list, rb_ary_new_from_args(3, fiber->fiber, fiber->job, state_of(loop, fiber)));
    }
    for (long i = 0; i < RARRAY_LEN(list); i++)
        rb_yield_splat(rb_ary_entry(list, i));
    return Qnil;
}

/*
 * call-seq: cancel_computing(error) -> nil
 *
 * Called before all fibers are cancelled: see `ending` in heddle_loop_preempt. +error+ is the exception of a
 * Timeout.timeout that ends the run, or nil if the run ends for another reason. Does nothing if a Timeout.timeout of
 * the calling fiber has raised +error+, because the error then ends the block of this timeout, and not the run.
 */
static VALUE scheduler_cancel_computing(VALUE self, VALUE error)
{
    heddle_loop *loop = heddle_loop_of(self);
    const heddle_timeout *timeout = loop->current ? loop->current->timeouts : NULL;
    while (timeout && timeout->raised != error)
        timeout = timeout->outer;
    loop->preempt.ending |= !timeout;
    return Qnil;
}

#define METHODS(X)                                                                                                     \
    X(scheduler_selector, "selector", ID2SYM(rb_intern(heddle_loop_of(self)->operations->name)))                       \
    X(scheduler_closed_p, "closed?", heddle_loop_is_closed(heddle_loop_of(self)) ? Qtrue : Qfalse)                     \
    /* Is this a child process that was forked by one of the loop's fibers? In the child, the code of that fiber is    \
     * the main program, and the fiber runs the loop whenever it waits. */                                             \
    X(scheduler_forked_p, "forked?", heddle_loop_of(self)->run.forked_by ? Qtrue : Qfalse)                             \
    /* Is the loop running on its thread? */                                                                           \
    X(scheduler_running_p, "running?", heddle_loop_is_running(heddle_loop_of(self)) ? Qtrue : Qfalse)                  \
    X(scheduler_fiber_count, "fiber_count", SIZET2NUM(heddle_loop_of(self)->fiber_count))                              \
    /* Fiber.schedule: runs the block in a new non-blocking fiber, at once, until it first waits. */                   \
    X(scheduler_fiber, "fiber", (rb_need_block(), scheduler_start(self, rb_block_proc())))                             \
    /* The job of the calling fiber, or of the fiber that has resumed it. */                                           \
    X(scheduler_current, "current", heddle_loop_of(self)->current ? heddle_loop_of(self)->current->job : Qnil)         \
    X(scheduler_current_fiber, "current_fiber",                                                                        \
      heddle_loop_of(self)->current ? heddle_loop_of(self)->current->fiber : Qnil)
METHODS(HEDDLE_DEFINE_METHOD)

/*
 * call-seq: statistics -> Hash
 *
 * Returns counters since the scheduler was created, and current numbers. +asleep+ is the time that the loop has slept
 * in the selector, in nanoseconds.
 */
static VALUE scheduler_statistics(VALUE self)
{
    heddle_loop *loop = heddle_loop_of(self);
    VALUE result = rb_hash_new();
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        {"ticks", loop->statistics.ticks}, {"switches", loop->statistics.switches},
        {"waits", loop->statistics.waits}, {"fibers", loop->fiber_count},
        {"parked", loop->park_count},      {"timers", loop->timers.count},
        {"armed", loop->armed},            {"preemptions", loop->statistics.preemptions},
        {"asleep", loop->statistics.asleep},
    };
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
        rb_hash_aset(result, ID2SYM(rb_intern(counters[i].name)), ULL2NUM(counters[i].value));
    return result;
}

static atomic_bool patching;

static VALUE end_patching(VALUE unused)
{
    atomic_store(&patching, false);
    return Qnil;
}

/*
 * patch_alone { }: runs the block, and returns its value. While another Ractor runs a block of this method, returns nil
 * instead. Ruby does not protect a class from Ractors that change it at the same time.
 */
static VALUE scheduler_patch_alone(VALUE class)
{
    return atomic_exchange(&patching, true) ? Qnil : rb_ensure(rb_yield, Qundef, end_patching, Qnil);
}

void Init_heddle_scheduler(VALUE heddle)
{
    heddle_fork_watch();
    heddle_fiber_setup();
    heddle_fiber_stacks_setup();
    VALUE class = heddle_define_class(heddle, "Scheduler", scheduler_allocate);
    rb_define_private_method(class, "open_loop", scheduler_open, 1);
    rb_define_private_method(class, "run_ticks", scheduler_run_ticks, 0);
    rb_define_private_method(class, "claim", scheduler_claim, 0);
    rb_define_private_method(class, "release", scheduler_release, 0);
    rb_define_private_method(rb_singleton_class(class), "patch_alone", scheduler_patch_alone, 0);
    METHODS(HEDDLE_REGISTER_METHOD)
    rb_define_method(class, "spawn", scheduler_spawn, 1);
    rb_define_method(class, "start", scheduler_start, 1);
    rb_define_method(class, "resume_new", scheduler_resume_new, 1);
    rb_define_method(class, "interrupt", scheduler_interrupt, 2);
    rb_define_method(class, "uninterrupt", scheduler_uninterrupt, 1);
    rb_define_method(class, "each_fiber", scheduler_each_fiber, 0);
    rb_define_method(class, "cancel_computing", scheduler_cancel_computing, 1);
    rb_define_method(class, "statistics", scheduler_statistics, 0);
    Init_heddle_account(heddle);
    Init_heddle_guard_pages(class);
    heddle_define_block_hooks(class);
    heddle_define_interrupt_hook(class);
    heddle_define_timeout_hook(class);
    heddle_define_interrupt_masks(class);
    heddle_define_io_hooks(class);
    heddle_define_io_select_hook(class);
    heddle_define_io_read_write_hooks(class);
    heddle_define_process_hook(class);
}
