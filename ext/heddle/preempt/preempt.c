#include "preempt/preempt.h"

#include "binding.h"
#include "scheduler/native_callbacks.h"
#include "scheduler/frame_names.h"
#include "scheduler/recorder.h"
#include "scheduler/starter.h"
#include "scheduler/take_errinfo.h"
#include "watch/stalls.h"
#include "watch/watch.h"

#include <ruby/debug.h>
#include <ruby/fiber/scheduler.h>

static rb_postponed_job_handle_t job = POSTPONED_JOB_HANDLE_INVALID;

/* -- switches of fibers ------------------------------------------------------------------------------------------ */

static void follow_switch(rb_event_flag_t event, VALUE loop, VALUE self, ID id, VALUE class)
{
    ((heddle_loop *)(loop & ~(VALUE)1))->preempt.switched_to = rb_fiber_current();
}

/*
 * Adds or removes the hook that records each switch of this thread's fibers. Must not be called within such a switch.
 */
static void follow_switches(heddle_loop *loop, bool follow)
{
    VALUE data = (VALUE)loop | 1; /* the pointer is tagged, so that the garbage collector treats it as an Integer */
    if (follow == loop->preempt.hooked || !loop->watch.heartbeat)
        return;
    loop->preempt.switched_to = rb_fiber_current();
    loop->preempt.hooked = follow;
    if (follow)
        rb_thread_add_event_hook(rb_thread_current(), follow_switch, RUBY_EVENT_FIBER_SWITCH, data);
    else
        rb_thread_remove_event_hook_with_data(rb_thread_current(), follow_switch, data);
}

/* -- preempting -------------------------------------------------------------------------------------------------- */

typedef struct {
    heddle_loop *loop;
    heddle_fiber *owner;
    VALUE fiber;
    heddle_park park;
    bool parked;
    heddle_timeout *due_timeout;
    VALUE exception;
} preemption;

/*
 * Stores an error that was raised in the fiber while it was switched away, or while the exception of its timeout was
 * created.
 */
static void take_error(preemption *self, VALUE error)
{
    if (heddle_exception_is_own(error)) {
        self->owner->must_raise = true; /* a timeout whose exception could not be created is still due */
    } else if (!RB_SPECIAL_CONST_P(error) && RB_BUILTIN_TYPE(error) != T_IMEMO) {
        self->exception = error;
    } else if (error == INT2FIX(2)) { /* Fiber#kill; Ruby kills the fiber at its next switch */
        self->exception = heddle_exception_make_cancelled("the fiber was killed");
    } else {
        self->loop->preempt.killed = true;
    }
}

/*
 * Does the fiber run a TracePoint's block? To find out, switches to the starter fiber (scheduler/starter.h) and back:
 * within such a block, Ruby reports no trace events, so follow_switch is not called. The block must not be preempted:
 * Ruby prevents a thread from handling two events at the same time, but does not prevent two fibers of the thread from
 * doing so. In a program that uses the debug gem, two fibers would stop at the same step.
 */
static bool runs_trace_block(preemption *self)
{
    VALUE error = heddle_starter_visit(self->loop);
    if (!NIL_P(error))
        take_error(self, error);
    return !self->loop->preempt.killed && self->loop->preempt.switched_to != self->fiber;
}

static VALUE yield_to_others(VALUE data)
{
    preemption *self = (preemption *)data;
    if (!self->loop->preempt.killed && (runs_trace_block(self) || self->exception != Qundef))
        return Qnil;
    heddle_park_enter(self->loop, &self->park);
    self->parked = true;
    self->park.preempted = true;
    self->park.waits_for = HEDDLE_SPENT_PREEMPTED;
    self->loop->statistics.preemptions++;
    heddle_park_wake_preempted(&self->park);
    heddle_park_wait_uninterruptibly(&self->park);
    return Qnil;
}

static VALUE raise_timeout(VALUE data)
{
    preemption *self = (preemption *)data;
    self->exception = heddle_timeout_exception(self->due_timeout);
    return Qnil;
}

static void find_exception(preemption *self)
{
    int state = 0;
    if (self->loop->preempt.ending && self->owner->interrupt != Qundef) {
        self->exception = self->owner->interrupt;
        self->owner->interrupt = Qundef;
        return;
    }
    self->due_timeout = heddle_fiber_timeout_due(self->owner, self->fiber);
    if (!self->due_timeout)
        return;
    rb_protect(raise_timeout, (VALUE)self, &state);
    if (state) {
        self->due_timeout = NULL;
        take_error(self, heddle_take_errinfo());
    } else {
        self->due_timeout->raised = self->exception;
    }
}

static void deliver_error(preemption *self)
{
    volatile VALUE exception = self->exception;
    if (!self->loop->preempt.killed && heddle_exception_deliver(self->loop, exception)) {
        self->owner->delivered_error = exception;
        self->owner->must_raise = true;
        return;
    }
    /* another interrupt is pending, or no helper thread could be started; the fiber's next wait raises the exception */
    heddle_exception_postpone(self->owner, exception);
}

/*
 * If an exception is already due for this fiber, makes the fiber raise it. Otherwise lets the other fibers run, then
 * makes this fiber raise `kept` (see heddle_exception_would_be_raised), or an exception that has arrived for it
 * meanwhile. Returns false if the fiber no longer belongs to the loop, because the loop was closed or this is a forked
 * child.
 */
static bool preempt_fiber(heddle_loop *loop, VALUE kept)
{
    preemption self = {.loop = loop, .owner = loop->current, .fiber = rb_fiber_current(), .exception = Qundef};
    int state = 0;
    if (kept == Qundef && !loop->preempt.killed)
        find_exception(&self);
    if (self.exception == Qundef) {
        rb_protect(yield_to_others, (VALUE)&self, &state);
        bool forgotten = self.parked && !heddle_park_entered(&self.park);
        if (self.parked)
            heddle_park_leave(&self.park);
        if (state)
            take_error(&self, heddle_take_errinfo());
        if (forgotten)
            return false;
        if (self.exception == Qundef)
            self.exception = kept;
        else if (kept != Qundef)
            heddle_exception_postpone(self.owner, kept);
        if (self.exception == Qundef && !loop->preempt.killed)
            find_exception(&self);
    }
    if (self.exception != Qundef)
        deliver_error(&self);
    return true;
}

/* -- conditions of a preemption ---------------------------------------------------------------------------------- */

/* Has the loop anything to do other than running the current fiber? */
static bool has_other_work(heddle_loop *loop)
{
    if (!heddle_loop_is_running(loop))
        return true; /* the loop does not run yet; a switch continues the code that has started this fiber */
    if (heddle_token_ring_count(&loop->ready) || heddle_token_ring_count(&loop->preempted) || loop->work_waits ||
        loop->current->parent_park || loop->preempt.ending)
        return true;
    if (!heddle_inbox_empty(&loop->inbox))
        return true;
    if (loop->timers.count && heddle_timer_heap_next(&loop->timers) <= heddle_clock_now())
        return true;
    return loop->operations->has_events(loop->selector);
}

/*
 * Is the running code exempt from preemption? Yes if it does not run in a fiber of this loop, if it runs in a block of
 * without_preemption, or if a switch would not be safe.
 */
static bool is_exempt(heddle_loop *loop)
{
    if (heddle_loop_is_closed(loop) || !loop->selector || heddle_loop_forked(loop) || !loop->preempt.hooked ||
        !loop->current || loop->current == &loop->implicit || loop->current->unpreempted || loop->preempt.killed)
        return true;
    if (rb_fiber_scheduler_current() != loop->scheduler) /* a blocking fiber */
        return true;
    VALUE fiber = rb_fiber_current();
    return fiber == loop->fiber || (loop->starter && fiber == loop->starter);
}

static bool is_ruby_code(VALUE frame)
{
    VALUE path = rb_profile_frame_path(frame);
    return RB_TYPE_P(path, T_STRING) && !heddle_frame_name_begins(path, "<internal:");
}

/*
 * Does this frame belong to one of Ruby's methods that switch to another fiber? The class is compared last, because
 * reading it allocates a String.
 */
static bool makes_switch(VALUE frame)
{
    static const char *const names[] = {"resume", "transfer", "raise", "kill", "yield", "next", "next_values", "peek",
                                        "peek_values"};
    if (is_ruby_code(frame))
        return false;
    VALUE name = rb_profile_frame_method_name(frame);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (!heddle_frame_name_is(name, names[i]))
            continue;
        VALUE class = rb_profile_frame_classpath(frame);
        return heddle_frame_name_is(class, "Fiber") || heddle_frame_name_is(class, "Enumerator");
    }
    return false;
}

/*
 * Is a switch of fibers under way? Only methods in C and Ruby's own methods switch fibers, so usually the innermost
 * frame decides. But follow_switch is not called where Ruby reports no trace events: in a TracePoint's block, and while
 * Ruby 3.3 parses. Then `switched_to` may be outdated, and the code may be a signal handler that Ruby has called within
 * a switch. So in that case the outer frames are examined, too, as many as a handler is likely to have of its own.
 */
static bool is_switching(heddle_loop *loop)
{
    enum { DEPTH = 64 };
    VALUE frames[DEPTH], fiber = rb_fiber_current();
    int lines[DEPTH];
    bool noted = loop->preempt.switched_to == fiber;
    int count = rb_profile_frames(0, noted ? 1 : DEPTH, frames, lines);
    if (count < 1 || (!noted && (!is_ruby_code(frames[0]) || heddle_park_find(loop, fiber))))
        return true;
    for (int i = 0; i < count; i++) {
        if (makes_switch(frames[i]))
            return true;
    }
    return false;
}

/*
 * Counts the CPU time since the last slice towards the request's quantum. Elapsed time would be too much, because on a
 * busy machine a fiber does not have a core for its whole slice.
 */
static void charge_slice(heddle_loop *loop)
{
    heddle_fiber *fiber = loop->current;
    int64_t cpu = heddle_clock_read(CLOCK_THREAD_CPUTIME_ID);
    heddle_quantum_use_slice(fiber->quantum, fiber->request_number, cpu - loop->preempt.slice_ended);
    loop->preempt.slice_ended = cpu;
}

static int consider_preempting(heddle_loop *loop)
{
    if (is_exempt(loop))
        return HEDDLE_SAMPLE_LATER;
    if (is_switching(loop) || heddle_own_code_runs())
        return HEDDLE_SAMPLE_SOON;
    if (!has_other_work(loop)) {
        charge_slice(loop);
        return HEDDLE_SAMPLE_AFRESH;
    }
    if (heddle_native_callbacks_inspect(loop) != HEDDLE_FRAMES_CLEAR)
        return HEDDLE_SAMPLE_LATER;
    VALUE kept = Qundef;
    if (!heddle_exception_would_be_raised(loop, &kept))
        return HEDDLE_SAMPLE_SOON;
    charge_slice(loop);
    /* Repeated if the thread was killed meanwhile: the fiber waits until the loop has raised Cancelled for the kill. */
    while (preempt_fiber(loop, kept) && loop->preempt.killed)
        kept = Qundef;
    return HEDDLE_SAMPLE_LATER;
}

/* -- the postponed job ------------------------------------------------------------------------------------------- */

static heddle_heartbeat *heartbeat_of(VALUE thread)
{
    for (heddle_heartbeat *heartbeat = atomic_load(&heddle_heartbeats); heartbeat; heartbeat = heartbeat->next) {
        if (atomic_load(&heartbeat->thread) == thread)
            return heartbeat;
    }
    return NULL;
}

/*
 * Records the stack of this thread. If the thread has a loop, records the stack for this loop while a fiber of the loop
 * runs. If it has no loop, records the stack for each loop that waits for the GVL, which this thread holds.
 */
static void record_stacks(heddle_heartbeat *own)
{
    if (own) {
        heddle_loop *loop = own->loop;
        if (atomic_load(&own->postponed_job) == HEDDLE_POSTPONED_JOB_TRIGGERED && !heddle_loop_is_closed(loop) &&
            loop->current)
            heddle_recorder_add_stack(own, &loop->current->spender);
        return;
    }
    for (heddle_heartbeat *heartbeat = atomic_load(&heddle_heartbeats); heartbeat; heartbeat = heartbeat->next) {
        if (atomic_load(&heartbeat->thread) &&
            atomic_load(&heartbeat->postponed_job) == HEDDLE_POSTPONED_JOB_TRIGGERED &&
            heddle_gvl_activity(atomic_load(&heartbeat->gvl)) == HEDDLE_ACTIVITY_NONE)
            heddle_recorder_add_stack(heartbeat, NULL);
    }
}

/* The postponed job: Ruby runs it in the thread and fiber that next handles interrupts. */
static void examine_loop(void *unused)
{
    int wants = heddle_watch_purposes();
    VALUE thread = rb_thread_current();
    if (!wants)
        return;
    heddle_heartbeat *heartbeat = heartbeat_of(thread);
    heddle_stalls_record_sighting(thread, heartbeat);
    if (atomic_load_explicit(&heddle_recording, memory_order_relaxed))
        record_stacks(heartbeat);
    if (!heartbeat)
        return;
    heddle_loop *loop = heartbeat->loop;
    switch (atomic_exchange(&heartbeat->postponed_job, HEDDLE_POSTPONED_JOB_IDLE)) {
    case HEDDLE_POSTPONED_JOB_TRIGGERED:
        atomic_fetch_add(&heartbeat->answers, 1);
        atomic_store(&heartbeat->postponed_job, HEDDLE_POSTPONED_JOB_REQUEUED);
        rb_postponed_job_trigger(job);
        return;
    case HEDDLE_POSTPONED_JOB_REQUEUED:
        if (!heddle_preempting)
            return;
        atomic_store(&heartbeat->next_sample,
                     rb_thread_interrupted(thread) ? HEDDLE_SAMPLE_SOON : consider_preempting(loop));
        return;
    default:
        return;
    }
}

/* Called on the watch thread, without the GVL. So the result may be out of date at once, which does no harm. */
static bool is_collecting(void)
{
    return rb_during_gc();
}

static void trigger_job(void)
{
    rb_postponed_job_trigger(job);
}

/* -- methods of Ruby --------------------------------------------------------------------------------------------- */

static void follow_gvl(int wants)
{
    heddle_watch_follow_gvl(wants & (HEDDLE_WATCH_STALLS | HEDDLE_WATCH_HANDOFF));
}

static bool exit_handler_registered;

/* Has the main thread run the exit handlers? Then it is no longer alive, and it kills the other threads. */
static bool has_program_ended(void)
{
    return !RTEST(rb_funcall(rb_thread_main(), rb_intern("alive?"), 0));
}

/*
 * If the program has ended, abandons all preempted fibers. As in Ruby, no fiber runs after the end of the program. From
 * then on no fiber is preempted, so one that ran again and computed endlessly would keep the process from exiting.
 */
static void end_preempted(heddle_loop *loop)
{
    heddle_park *park;
    if (!heddle_watch_paused() || !has_program_ended())
        return;
    while ((park = heddle_park_abandon_preempted(loop)))
        rb_funcall(loop->scheduler, rb_intern("report_killed"), 1, park->owner->job);
}

/* Called when the program ends: pauses the watch thread before Ruby frees the memory that the watch thread reads. */
static void stop_preempting(VALUE unused)
{
    exit_handler_registered = false;
    heddle_watch_pause(true);
    follow_gvl(0);
}

/*
 * Called before a loop runs. Registers stop_preempting. If the watch thread was paused because the program is ending,
 * continues it: a later at_exit handler may run loops, for example in tests.
 */
static void register_end(void)
{
    if (exit_handler_registered || !(heddle_watch_purposes() || heddle_watch_paused()))
        return;
    if (has_program_ended()) {
        heddle_watch_pause(true); /* the program has ended: an exit handler that is registered now might not run */
        return;
    }
    exit_handler_registered = true;
    rb_set_end_proc(stop_preempting, Qnil);
    heddle_watch_pause(false); /* if the watch thread can't be started now, the next loop tries again */
    follow_gvl(heddle_watch_purposes());
}

/*
 * call-seq: Heddle::Native.watch(slice, threshold, handoff) -> nil
 *
 * Sets the limits that the watch thread checks, in seconds. +slice+: how long a fiber may run while others wait.
 * +threshold+: how long a tick may last before it counts as a stall. +handoff+: how long a tick may last before
 * connections are handed off to other processes. For each limit, nil switches the check off. Raises SystemCallError if
 * the watch thread can't be started.
 */
static VALUE native_watch(VALUE self, VALUE slice, VALUE threshold, VALUE handoff)
{
    int wants = (NIL_P(slice) ? 0 : HEDDLE_WATCH_PREEMPT) | (NIL_P(threshold) ? 0 : HEDDLE_WATCH_STALLS) |
                (NIL_P(handoff) ? 0 : HEDDLE_WATCH_HANDOFF);
    heddle_watch_settings settings = {.slice = heddle_parse_duration(slice),
                                      .threshold = heddle_parse_duration(threshold),
                                      .handoff = heddle_parse_duration(handoff),
                                      .collects = is_collecting,
                                      .ask = trigger_job};
    if (wants && job == POSTPONED_JOB_HANDLE_INVALID) {
        job = rb_postponed_job_preregister(0, examine_loop, NULL);
        if (job == POSTPONED_JOB_HANDLE_INVALID)
            rb_raise(rb_eRuntimeError,
                     "the watch thread needs a postponed job of Ruby, but other extensions use all of them");
    }
    int result = heddle_watch_set_purposes(wants, &settings);
    if (result < 0)
        rb_syserr_fail(-result, "starting the watch thread");
    follow_gvl(wants);
    heddle_preempting = !NIL_P(slice);
    register_end();
    return Qnil;
}

/* Heddle::Native.handoff_loops: returns the number of loops whose connections can be handed off. */
HEDDLE_DEFINE_METHOD(native_handoff_loops, "handoff_loops", UINT2NUM(heddle_watch_count_rescues()))

/* Heddle::Native.own_code_is(own, neutral): see heddle_own_code_set_paths. */
static VALUE native_own_code_is(VALUE self, VALUE own, VALUE neutral)
{
    heddle_own_code_set_paths(own, neutral);
    return Qnil;
}

/* Heddle::Native.own_code?: see heddle_own_code_runs. */
HEDDLE_DEFINE_METHOD(native_own_code_p, "own_code?", heddle_own_code_runs() ? Qtrue : Qfalse)

typedef struct {
    VALUE scheduler, fiber;
} exemption;

static VALUE end_exemption(VALUE data)
{
    exemption *self = (exemption *)data;
    heddle_loop *loop = heddle_loop_of(self->scheduler);
    heddle_fiber *fiber = heddle_loop_is_closed(loop) ? NULL : heddle_fiber_find(loop, self->fiber);
    if (fiber && fiber->unpreempted)
        fiber->unpreempted--;
    return Qnil;
}

/*
 * call-seq: without_preemption { ... } -> the block's value
 *
 * Calls the block, in which the calling fiber is not preempted. Other fibers run only while the block waits.
 */
static VALUE scheduler_without_preemption(VALUE self)
{
    heddle_loop *loop = heddle_loop_of(self);
    rb_need_block();
    if (!loop->current)
        return rb_yield(Qundef);
    exemption one = {.scheduler = self, .fiber = loop->current->fiber};
    loop->current->unpreempted++;
    return rb_ensure(rb_yield, Qundef, end_exemption, (VALUE)&one);
}

static void set_hooks(void)
{
    heddle_hooks.prepare_preemption = register_end;
    heddle_hooks.follow_switches = follow_switches;
    heddle_hooks.raise_delivered_error = heddle_exception_raise_delivered;
    heddle_hooks.take_back_error = heddle_exception_take_back;
    heddle_hooks.raise_kill = heddle_exception_raise_kill;
    heddle_hooks.end_preempted = end_preempted;
}

void Init_heddle_preempt(VALUE heddle)
{
    set_hooks();
    VALUE native = rb_define_module_under(heddle, "Native");
    rb_define_singleton_method(native, "watch", native_watch, 3);
    rb_define_singleton_method(native, "handoff_loops", native_handoff_loops, 0);
    rb_define_singleton_method(native, "own_code_is", native_own_code_is, 2);
    rb_define_singleton_method(native, "own_code?", native_own_code_p, 0);
    rb_define_method(rb_path2class("Heddle::Scheduler"), "without_preemption", scheduler_without_preemption, 0);
    Init_heddle_stalls(native);
}
