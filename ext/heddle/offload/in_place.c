#include "offload/in_place.h"

#include "offload/caller.h"
#include "offload/job.h"
#include "selector/clock.h"
#include "selector/list.h"
#include "selector/native_thread.h"

#include <signal.h>

static const int64_t NEVER = INT64_MAX;

/*
 * A native call with a deadline. The record lies on the stack of its fiber. While it is in the list, its function runs
 * on `thread`.
 */
typedef struct timed_call timed_call;
struct timed_call {
    void *(*function)(void *data);
    void *data;
    heddle_unblock *unblock;
    void *unblock_data;
    int flags;
    void *result;
    int64_t deadline;
    pthread_t thread;
    /* its unblocking function runs; the fiber must not leave the call before that function has returned */
    bool unblocking;
    timed_call *next, *previous;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t earlier;   /* signalled when the deadline of a new call is earlier than `next_wake` */
    pthread_cond_t unblocked; /* signalled when an unblocking function has returned */
    timed_call *calls;
    /* when the thread wakes up next; not changed when a call ends, so that most new calls need not signal `earlier` */
    int64_t next_wake;
    bool running;
    bool ready;
} deadlines = {.mutex = PTHREAD_MUTEX_INITIALIZER, .unblocked = PTHREAD_COND_INITIALIZER, .next_wake = INT64_MAX};

/* The call whose function runs on this thread now. NULL if there is none, and during the function's callbacks. */
static _Thread_local timed_call *current;

/* -- the thread ---------------------------------------------------------------------------------------------------- */

/*
 * Ends a call whose deadline has passed. Called with the mutex held. Releases the mutex while a library's unblocking
 * function runs.
 */
static void end_call(timed_call *call)
{
    if (call->unblock == HEDDLE_UNBLOCK_BY_SIGNAL) {
        /* Ruby's handler of this signal does nothing, but the system call returns EINTR */
        pthread_kill(call->thread, SIGVTALRM);
        call->deadline = heddle_clock_now() + HEDDLE_INTERRUPT_INTERVAL;
        return;
    }
    call->deadline = NEVER;
    call->unblocking = true;
    pthread_mutex_unlock(&deadlines.mutex);
    call->unblock(call->unblock_data);
    pthread_mutex_lock(&deadlines.mutex);
    call->unblocking = false;
    pthread_cond_broadcast(&deadlines.unblocked);
}

static timed_call *find_earliest(void)
{
    timed_call *earliest = NULL;
    for (timed_call *call = deadlines.calls; call; call = call->next) {
        if (!earliest || call->deadline < earliest->deadline)
            earliest = call;
    }
    return earliest;
}

static void *run_deadlines(void *unused)
{
    pthread_mutex_lock(&deadlines.mutex);
    for (;;) {
        timed_call *call = find_earliest();
        int64_t now = heddle_clock_now();
        deadlines.next_wake = call ? call->deadline : NEVER;
        if (deadlines.next_wake == NEVER) {
            pthread_cond_wait(&deadlines.earlier, &deadlines.mutex);
        } else if (deadlines.next_wake > now) {
            struct timespec until = heddle_clock_after(HEDDLE_CONDITION_CLOCK, deadlines.next_wake - now);
            pthread_cond_timedwait(&deadlines.earlier, &deadlines.mutex, &until);
        } else {
            end_call(call);
        }
    }
    return NULL;
}

/* -- fork ---------------------------------------------------------------------------------------------------------- */

HEDDLE_HOLD_DURING_FORK(&deadlines.mutex)

/* Clears the list, because its calls belong to the parent. */
static void after_fork_in_child(void)
{
    for (timed_call *call; (call = deadlines.calls);) {
        call->unblocking = false;
        HEDDLE_LIST_REMOVE(deadlines.calls, call);
    }
    deadlines.next_wake = NEVER;
    deadlines.running = false;
    heddle_condition_init(&deadlines.earlier);
    pthread_cond_init(&deadlines.unblocked, NULL);
    pthread_mutex_unlock(&deadlines.mutex);
}

/* Starts the thread. Called with the mutex held. Without the thread, calls are not ended at their deadlines. */
static void start_thread(void)
{
    pthread_t thread;
    if (!deadlines.ready) {
        heddle_condition_init(&deadlines.earlier);
        deadlines.ready = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
    }
    deadlines.running = deadlines.ready && heddle_native_thread_start(&thread, run_deadlines) == 0;
    if (deadlines.running)
        pthread_detach(thread);
}

/* -- a call -------------------------------------------------------------------------------------------------------- */

/* Adds the call to the list. Leaves errno unchanged, as unlink_call does. */
static void link_call(timed_call *self)
{
    int saved = errno;
    pthread_mutex_lock(&deadlines.mutex);
    if (!deadlines.running)
        start_thread();
    self->thread = pthread_self();
    HEDDLE_LIST_ADD(deadlines.calls, self);
    if (self->deadline < deadlines.next_wake)
        pthread_cond_signal(&deadlines.earlier);
    pthread_mutex_unlock(&deadlines.mutex);
    current = self;
    errno = saved;
}

/* Removes the call from the list, if it is in there. Afterwards no other thread uses the call's record. */
static void unlink_call(timed_call *self)
{
    int saved = errno;
    current = NULL;
    pthread_mutex_lock(&deadlines.mutex);
    while (self->unblocking)
        pthread_cond_wait(&deadlines.unblocked, &deadlines.mutex);
    HEDDLE_LIST_REMOVE(deadlines.calls, self);
    pthread_mutex_unlock(&deadlines.mutex);
    errno = saved;
}

static void *run_linked(void *data)
{
    timed_call *self = data;
    link_call(self);
    void *result = self->function(self->data);
    unlink_call(self);
    return result;
}

static VALUE call_without_gvl(VALUE data)
{
    timed_call *self = (timed_call *)data;
    self->result = rb_nogvl(run_linked, self, (rb_unblock_function_t *)self->unblock, self->unblock_data, self->flags);
    return Qnil;
}

/*
 * Called also if a callback raises. In that case Ruby leaves the native function by longjmp, and run_linked does not
 * remove the call from the list.
 */
static VALUE leave_call(VALUE data)
{
    unlink_call((timed_call *)data);
    return Qnil;
}

/* -- the time limits of Timeout.timeout ---------------------------------------------------------------------------- */

static bool has_time_limits(heddle_loop *loop)
{
    return heddle_fiber_current(loop)->timeouts && heddle_offload_may_interrupt(loop);
}

/*
 * Returns the earliest deadline among the fiber's time limits; NEVER if there is none. Leaves out time limits that have
 * passed, and those whose exceptions an interrupt mask (a Thread.handle_interrupt block) delays.
 */
static int64_t find_deadline(heddle_loop *loop)
{
    heddle_fiber *owner = heddle_fiber_current(loop);
    VALUE fiber = rb_fiber_current();
    int64_t deadline = NEVER;
    for (heddle_timeout *one = owner->timeouts; one; one = one->outer) {
        if (one->timer.slot && one->timer.deadline < deadline && heddle_timeout_covers_wait(one, fiber) &&
            !heddle_timeout_masked(one, fiber))
            deadline = one->timer.deadline;
    }
    return deadline;
}

bool heddle_in_place_begin(heddle_loop *loop, int flags)
{
    if (!has_time_limits(loop))
        return true;
    if (flags & RB_NOGVL_INTR_FAIL)
        return !heddle_offload_postpone_errors(loop);
    heddle_fiber_raise_pending(loop, rb_fiber_current());
    return true;
}

void *heddle_in_place_run(heddle_loop *loop, void *(*function)(void *data), void *data, rb_unblock_function_t *unblock,
                          void *unblock_data, int flags)
{
    int64_t deadline = unblock && has_time_limits(loop) ? find_deadline(loop) : NEVER;
    if (deadline == NEVER)
        return rb_nogvl(function, data, unblock, unblock_data, flags);
    timed_call self = {.function = function,
                         .data = data,
                         .unblock = (heddle_unblock *)unblock,
                         .unblock_data = unblock_data,
                         .flags = flags,
                         .deadline = deadline};
    rb_ensure(call_without_gvl, (VALUE)&self, leave_call, (VALUE)&self);
    return self.result;
}

void heddle_in_place_end(heddle_loop *loop, int flags)
{
    if (!has_time_limits(loop))
        return;
    int saved = errno;
    if (flags & RB_NOGVL_INTR_FAIL)
        heddle_offload_postpone_errors(loop);
    else
        heddle_fiber_raise_pending(loop, rb_fiber_current());
    errno = saved;
}

void *heddle_in_place_call_back(void *(*function)(void *data), void *data)
{
    timed_call *self = current;
    if (!self)
        return rb_thread_call_with_gvl(function, data);
    unlink_call(self);
    void *result = rb_thread_call_with_gvl(function, data);
    link_call(self);
    return result;
}
