#include "offload/call.h"

#include "offload/caller.h"
#include "offload/descriptors.h"
#include "offload/openssl_errors.h"
#include "scheduler/spin.h"
#include "offload/threads.h"
#include "scheduler/take_errinfo.h"
#include "scheduler/wait_in_place.h"
#include "selector/list.h"

/*
 * In ns. While the number of running jobs is at its limit, the fiber of a queued job checks at this interval whether
 * another thread must be started.
 */
static const int64_t FULL_INTERVAL = 1000 * 1000 * 1000;

/*
 * A call. The record lies on the stack of its fiber. No other thread uses that stack after the fiber has left the call:
 * - The offload thread uses the record until it posts the completion message, with heddle_threads_lock held.
 * - Only the loop's thread opens that message. After that, no other thread uses the record. The fiber leaves the call
 *   only after the message was opened, even if an exception was raised in the fiber earlier. To make sure that the
 *   offload thread has released heddle_threads_lock, the fiber acquires this lock once before it leaves the call.
 * - If the fiber is woken in another way, it leaves its park. That makes the park's token invalid, so a later wake-up
 *   has no effect.
 */
typedef struct call call;
struct call {
    heddle_job job; /* the first member, so that a job of this file is a call */
    heddle_loop_message message;
    heddle_loop *loop;
    heddle_park park;
    bool parked;
    bool notified;  /* the completion message was opened: the job has called back, or has ended */
    bool ended;
    bool uninterruptible;  /* exceptions don't interrupt the call; they are raised after it */
    unsigned interrupts;   /* how often the call was interrupted */
    heddle_descriptor_call descriptor; /* set if the job uses a descriptor */
    heddle_loop_message closing;             /* the message that is posted when Ruby closes that descriptor */
    bool closing_opened;                     /* the loop has opened `closing` */
    int64_t limit; /* the maximum duration of the fiber's next wait for the call, ns; 0: no limit */
    VALUE fiber, scheduler;
    heddle_attachment attachment;
    call *next, *previous;
};

/*
 * All running calls, whose fibers the garbage collector marks. A loop that was abandoned (by a second Ctrl-C) leaves
 * fibers that are never resumed. Their stacks and the loop must exist as long as an offload thread may write to them.
 */
static call *calls;

static void remove_call(call *self)
{
    heddle_loop_detach(self->loop, &self->attachment);
    HEDDLE_LIST_REMOVE(calls, self);
}

/*
 * Called for each call when its loop closes. From now on the job's thread posts no message to the loop, and no fiber
 * waits for the job.
 */
static void abandon_calls(heddle_attachment *attachment)
{
    call *self = (call *)((char *)attachment - offsetof(call, attachment));
    heddle_loop_detach(self->loop, attachment);
    heddle_threads_abandon(&self->job);
    heddle_descriptor_leave(&self->descriptor);
}

static void add_call(call *self)
{
    self->attachment = (heddle_attachment){.object = self->fiber, .closing = abandon_calls};
    heddle_loop_attach(self->loop, &self->attachment);
    HEDDLE_LIST_ADD(calls, self);
}

/* Marks the results of callbacks, to which only the frames of the native function refer. */
static void mark_frames(const heddle_job *job)
{
    heddle_native_frames frames = heddle_threads_frames(job);
    if (!frames.start)
        return;
    rb_gc_mark_locations(frames.start, frames.end);
    rb_gc_mark_locations((const VALUE *)&frames.registers, (const VALUE *)(&frames.registers + 1));
}

static void mark_calls(void *data)
{
    for (call *each = calls, *next; each; each = next) {
        next = each->next;
        if (each->job.abandoned && atomic_load(&each->job.state) == HEDDLE_JOB_ENDED) {
            heddle_openssl_errors_free(each->job.errors);
            remove_call(each);
            continue;
        }
        rb_gc_mark(each->fiber);
        rb_gc_mark(each->scheduler);
        mark_frames(&each->job);
    }
}

static const rb_data_type_t root_type = {
    .wrap_struct_name = "Heddle::Offload calls",
    .function = {.dmark = mark_calls},
};

static uint64_t return_wait;

uint64_t heddle_offload_return_wait(void)
{
    return return_wait;
}

/* Called in a forked child, where the parent's calls never end. Their stacks are no longer kept. */
static void forget_calls(void)
{
    for (call *each = calls; each; each = each->next)
        heddle_loop_detach(each->loop, &each->attachment);
    calls = NULL;
    return_wait = 0;
}

/* -- waiting ------------------------------------------------------------------------------------------------------- */

static void receive_completion(heddle_loop_message *message)
{
    call *self = (call *)((char *)message - offsetof(call, message));
    self->notified = true;
    self->ended = atomic_load(&self->job.state) == HEDDLE_JOB_ENDED;
    if (!self->parked)
        return;
    if (self->ended)
        /* the time when the function ended, not the time when the loop found the message */
        self->park.ready_at = self->job.began + self->job.wall;
    heddle_park_wake(&self->park);
}

/* Called on the job's thread, under heddle_threads_lock. */
static void post_completion(heddle_job *job)
{
    call *self = (call *)job;
    heddle_loop *loop = self->loop;
    heddle_inbox_post(&loop->inbox, &self->message);
    heddle_loop_wake(loop);
}

static void receive_closing(heddle_loop_message *message)
{
    call *self = (call *)((char *)message - offsetof(call, closing));
    self->closing_opened = true;
    if (self->parked)
        heddle_park_wake(&self->park);
}

/* Called on the thread that closes the descriptor, perhaps without the GVL, with the lock of descriptors.c held. */
static void post_closing(heddle_descriptor_call *descriptor)
{
    call *self = (call *)((char *)descriptor - offsetof(call, descriptor));
    heddle_loop *loop = self->loop;
    heddle_inbox_post(&loop->inbox, &self->closing);
    heddle_loop_wake(loop);
}

static VALUE wait_once(VALUE data)
{
    call *self = (call *)data;
    heddle_park_enter(self->loop, &self->park);
    heddle_park_waits_for(&self->park, self->job.core ? HEDDLE_SPENT_FILE : HEDDLE_SPENT_OFFLOADED);
    self->parked = true;
    /* so that the time account counts the fiber as ready only after the call has ended */
    self->park.ready_at = INT64_MAX;
    if (self->limit)
        heddle_park_set_deadline(&self->park, heddle_deadline_after(self->limit));
    if (self->uninterruptible)
        heddle_park_wait_uninterruptibly(&self->park);
    else
        heddle_park_wait(&self->park);
    return Qnil;
}

static void leave_park(call *self)
{
    if (self->parked)
        heddle_park_leave(&self->park);
    self->parked = false;
}

/*
 * Returns true if Ruby has closed the descriptor meanwhile. In that case first waits until the loop has opened the
 * message `closing`, which lies on this fiber's stack.
 */
static bool leave_descriptor(call *self)
{
    bool closed = heddle_descriptor_leave(&self->descriptor);
    self->uninterruptible = true;
    self->limit = 0;
    while (closed && !self->closing_opened && !self->job.abandoned) {
        int state = 0;
        rb_protect(wait_once, (VALUE)self, &state);
        leave_park(self);
    }
    return closed;
}

static VALUE run_callback(VALUE data)
{
    heddle_job *job = &((call *)data)->job;
    job->callback_result = job->callback(job->callback_data);
    return Qnil;
}

/*
 * Runs a callback in the fiber that made the call, with this fiber's stack and fiber-locals. The callback may wait.
 * Returns the state of an exception that the callback has raised, or 0. With `skip`, does not run the callback, and
 * tells the job's thread that it has raised.
 */
static int answer_callback(call *self, bool skip)
{
    int state = 0;
    void *result = NULL;
    self->notified = false;
    if (!skip) {
        rb_protect(run_callback, (VALUE)self, &state);
        result = state ? NULL : self->job.callback_result;
    }
    heddle_threads_answer(&self->job, result, skip || state);
    return state;
}

/* Starts an offload thread. Returns false if that is not possible. */
static bool start_needed_thread(void)
{
    int state = 0;
    VALUE before = rb_errinfo();
    heddle_call_module_protected("Heddle::Offload::Switch", rb_intern("start_thread"), 0, NULL, &state);
    if (!state)
        return true;
    heddle_threads_report_unstarted();
    heddle_take_errinfo();
    if (!NIL_P(before))
        rb_set_errinfo(before);
    return false;
}

/*
 * Logs that the limit of threads is reached and calls are queued until other calls end. Logs this only once; a child
 * that is forked later does not log it again.
 */
static void note_full(heddle_loop *loop)
{
    static bool reported;
    int state = 0;
    VALUE before = rb_errinfo();
    if (reported)
        return;
    reported = true;
    heddle_call_module_protected("Heddle::Offload::Switch", rb_intern("threads_used_up"), 1, &loop->scheduler, &state);
    if (state)
        rb_set_errinfo(before);
}

static bool is_queued(const call *self)
{
    return atomic_load(&self->job.state) == HEDDLE_JOB_QUEUED;
}

typedef struct {
    int state;      /* the state (from rb_protect) of an exception to raise after the call, or 0 */
    bool cancelled; /* the call must end early, because of an exception or because Ruby has closed its descriptor */
    bool withdrawn; /* the job was removed from its queue before it began */
} outcome;

/*
 * Called after an interrupt. IO.copy_stream of Ruby 3.4 waits without the GVL. When a signal has interrupted this wait,
 * copy_stream asks for the scheduler of the fiber that runs on the loop's thread at that moment. If that is the loop's
 * own fiber, which has no scheduler, copy_stream continues to wait. So this function keeps the calling fiber running
 * for up to 500 µs, in which the loop is blocked. A call that ignores interrupts may get many of them, so this
 * function waits only after the first, second, fourth … interrupt of a call.
 */
static void await_callback(call *self)
{
    unsigned count = ++self->interrupts;
    if (!self->job.core || !self->job.unblock || (count & (count - 1)))
        return;
    const struct timespec pause = {.tv_nsec = 50 * 1000};
    for (int i = 0; i < 10 && atomic_load(&self->job.state) == HEDDLE_JOB_RUNNING; i++)
        nanosleep(&pause, NULL);
}

/* Waits until the call has ended, and runs its callbacks. Returns when the offload thread no longer uses the job. */
static outcome wait_for_end(call *self, heddle_call_kind kind)
{
    outcome out = {0};
    unsigned forks = heddle_threads_count_forks();
    bool failed_callback = false;
    while (!self->ended) {
        if (self->notified) {
            /*
             * Ruby's own functions call back only to wait. If the call was cancelled, such a callback is not run, and
             * counts as having raised an exception.
             */
            int state = answer_callback(self, failed_callback || (out.cancelled && self->job.core));
            failed_callback |= state != 0;
            out.state = state ? state : out.state;
        }
        if (self->job.abandoned) {
            /* The loop is closed, but the program has kept this fiber and has resumed it. */
            while (atomic_load(&self->job.state) != HEDDLE_JOB_ENDED)
                rb_thread_schedule();
            break;
        }
        if (forks != heddle_threads_count_forks())
            rb_raise(rb_eThreadError,
                     "this process was forked during a native call: only the parent process gets the call's result");
        if (self->closing_opened)
            self->uninterruptible = out.cancelled = true;
        if (out.cancelled && heddle_threads_withdraw(&self->job)) {
            out.withdrawn = true;
            break;
        }
        if (out.cancelled) {
            heddle_threads_interrupt(&self->job);
            await_callback(self);
        }

        int state = 0;
        bool full = is_queued(self) && !self->job.prompt && heddle_threads_are_full();
        if (full)
            note_full(self->loop);
        /* At the limit, a job starts only when another one has ended, so the fiber checks less often. */
        self->limit = out.cancelled     ? HEDDLE_INTERRUPT_INTERVAL
                      : full            ? FULL_INTERVAL
                      : is_queued(self) ? HEDDLE_OVERDUE_NS
                                        : 0;
        rb_protect(wait_once, (VALUE)self, &state);
        leave_park(self);
        if (state) {
            out.state = state;
            self->uninterruptible = true;
            out.cancelled = kind != HEDDLE_CALL_CONTINUES;
        } else if (!self->ended && !out.cancelled && is_queued(self) && heddle_threads_check_overdue(&self->job)) {
            start_needed_thread();
        }
    }
    if (!out.withdrawn)
        heddle_threads_settle();
    return out;
}

/* Raises IOError with the message that Ruby has for a thread whose IO was closed. */
static void raise_closed(void)
{
    rb_raise(rb_eIOError, "stream closed in another thread");
}

/*
 * Called when an exception or Thread#kill in a callback has ended the job's function. Heddle had not intercepted this
 * callback, so Ruby ran it on the job's thread.
 */
static void raise_left(const heddle_job *job)
{
    if (job->exception)
        rb_exc_raise((VALUE)job->exception);
    rb_raise(rb_eThreadError, "the offload thread was killed while a native call ran a callback in it");
}

bool heddle_offload_run(heddle_loop *loop, heddle_job *job, heddle_function *function, heddle_call_kind kind)
{
    if (!heddle_offload_may_interrupt(loop) || heddle_must_call_in_place(loop))
        return false;
    heddle_loop_open(loop);
    VALUE fiber = rb_fiber_current();
    if (kind == HEDDLE_CALL_IS_SKIPPED && heddle_offload_postpone_errors(loop)) {
        /*
         * As in Ruby, the function is not run and nothing is raised. The caller handles interrupts next, by
         * rb_thread_check_ints.
         */
        job->result = NULL;
        errno = 0;
        return true;
    }
    if (kind == HEDDLE_CALL_ENDS_EARLY)
        heddle_fiber_raise_pending(loop, fiber);

    call self = {.job = *job, .loop = loop, .fiber = fiber, .scheduler = loop->scheduler};
    self.message.open = receive_completion;
    self.closing.open = receive_closing;
    self.job.notify = post_completion;
    self.job.computes = !job->prompt && heddle_function_computes(function);
    self.job.brief = function->offloaded && function->pace < HEDDLE_SPIN_NS / 2;
    self.uninterruptible = kind == HEDDLE_CALL_CONTINUES;
    self.job.take_errors = function->carries_errors ? heddle_openssl_errors_taker() : NULL;

    self.descriptor = (heddle_descriptor_call){.fd = job->fd, .notify = post_closing};
    if (job->on_descriptor && !heddle_descriptor_enter(&self.descriptor))
        raise_closed();

    /*
     * If no thread can be started, the call waits until one of the running threads is free. It must not run in place
     * then, because it could block a fiber that a running call waits for. It runs in place only if there is no thread
     * at all.
     */
    bool no_thread = heddle_threads_submit(&self.job) && !start_needed_thread() &&
                     heddle_threads_read_statistics().threads == 0;
    no_thread = no_thread && heddle_threads_withdraw(&self.job);
    if (!no_thread && self.job.worth_spinning)
        loop->spin_until = self.job.queued_at + HEDDLE_SPIN_NS;
    loop->armed++;
    add_call(&self);
    outcome out = {.withdrawn = no_thread};
    if (!no_thread)
        out = wait_for_end(&self, kind);
    bool closed = leave_descriptor(&self);
    remove_call(&self);
    loop->armed--;
    if (no_thread && !closed)
        return false;

    *job = self.job;
    heddle_openssl_errors_put(job->errors);
    if (!out.withdrawn && !self.job.left) {
        heddle_function_ran(function, true, job->wall, job->cpu);
        int64_t waited = heddle_clock_now() - (job->began + job->wall);
        return_wait += waited > 0 ? (uint64_t)waited : 0;
        if (function->library && heddle_spender_counts(&heddle_fiber_current(loop)->spender))
            heddle_account_count_library(heddle_fiber_current(loop)->spender.account, function->library, job->wall);
    }
    if (out.state && kind != HEDDLE_CALL_ENDS_EARLY)
        heddle_offload_postpone_cancellation(loop, out.state);
    else if (out.state)
        rb_jump_tag(out.state);
    else if (closed)
        raise_closed();
    else if (self.job.left)
        raise_left(&self.job);
    errno = job->error;
    RB_GC_GUARD(fiber);
    return true;
}

void heddle_calls_setup(void)
{
    rb_gc_register_mark_object(TypedData_Wrap_Struct(rb_cObject, &root_type, (void *)1));
    heddle_offload_caller_setup();
    pthread_atfork(NULL, NULL, forget_calls);
    heddle_threads_setup();
    heddle_descriptors_setup();
}
