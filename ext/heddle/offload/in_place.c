#include "offload/in_place.h"

#include "offload/call.h"
#include "scheduler/interrupt_masks.h"
#include "selector/clock.h"
#include "selector/native_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

/*
 * The interval at which a call is interrupted: the signal may come just before the system call that it should
 * interrupt.
 */
static const int64_t INSISTING = 10 * 1000 * 1000;

static const int64_t NEVER = INT64_MAX;

/* A call with a deadline, on the stack of its fiber. While it is linked, its function runs on `thread`. */
typedef struct limited_call limited_call;
struct limited_call {
    void *(*function)(void *data);
    void *data;
    heddle_unblock *unblock;
    void *unblock_data;
    int flags;
    void *result;
    int64_t deadline;
    pthread_t thread;
    bool linked;
    /* its unblocking function runs: the fiber must not leave the call before that function has returned */
    bool unblocking;
    limited_call *next, *previous;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t earlier;   /* signalled when a call has an earlier deadline than `next_look` */
    pthread_cond_t unblocked; /* signalled when an unblocking function has returned */
    limited_call *calls;
    /* when the thread wakes up next; not changed when a call ends, so that most calls need no signal */
    int64_t next_look;
    bool running;
    bool ready;
} limits = {.mutex = PTHREAD_MUTEX_INITIALIZER, .unblocked = PTHREAD_COND_INITIALIZER, .next_look = INT64_MAX};

/* The call whose function runs on this thread now; NULL during its callbacks. */
static _Thread_local limited_call *current;

/* -- the thread ---------------------------------------------------------------------------------------------------- */

/* With the mutex held; releases it while a library's unblocking function runs. */
static void end_call(limited_call *call)
{
    if (call->unblock == HEDDLE_UNBLOCK_BY_SIGNAL) {
        /* Ruby's own handler of this signal does nothing: system calls return EINTR */
        pthread_kill(call->thread, SIGVTALRM);
        call->deadline = heddle_clock_now() + INSISTING;
        return;
    }
    call->deadline = NEVER;
    call->unblocking = true;
    pthread_mutex_unlock(&limits.mutex);
    call->unblock(call->unblock_data);
    pthread_mutex_lock(&limits.mutex);
    call->unblocking = false;
    pthread_cond_broadcast(&limits.unblocked);
}

static limited_call *find_earliest(void)
{
    limited_call *earliest = NULL;
    for (limited_call *call = limits.calls; call; call = call->next) {
        if (!earliest || call->deadline < earliest->deadline)
            earliest = call;
    }
    return earliest;
}

static void *end_calls(void *unused)
{
    pthread_mutex_lock(&limits.mutex);
    for (;;) {
        limited_call *call = find_earliest();
        int64_t now = heddle_clock_now();
        limits.next_look = call ? call->deadline : NEVER;
        if (limits.next_look == NEVER) {
            pthread_cond_wait(&limits.earlier, &limits.mutex);
        } else if (limits.next_look > now) {
            struct timespec until = heddle_clock_after(HEDDLE_CONDITION_CLOCK, limits.next_look - now);
            pthread_cond_timedwait(&limits.earlier, &limits.mutex, &until);
        } else {
            end_call(call);
        }
    }
    return NULL;
}

/* -- fork ---------------------------------------------------------------------------------------------------------- */

static void before_fork(void)
{
    pthread_mutex_lock(&limits.mutex);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&limits.mutex);
}

/* The calls are the parent's. */
static void after_fork_in_child(void)
{
    for (limited_call *call = limits.calls; call; call = call->next)
        call->linked = call->unblocking = false;
    limits.calls = NULL;
    limits.next_look = NEVER;
    limits.running = false;
    heddle_condition_init(&limits.earlier);
    pthread_cond_init(&limits.unblocked, NULL);
    pthread_mutex_unlock(&limits.mutex);
}

/* With the mutex held. Without a thread the calls run to their own ends. */
static void start_thread(void)
{
    pthread_t thread;
    if (!limits.ready) {
        heddle_condition_init(&limits.earlier);
        limits.ready = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
    }
    limits.running = limits.ready && heddle_native_thread_start(&thread, end_calls) == 0;
    if (limits.running)
        pthread_detach(thread);
}

/* -- a call -------------------------------------------------------------------------------------------------------- */

static void link_call(limited_call *self)
{
    pthread_mutex_lock(&limits.mutex);
    if (!limits.running)
        start_thread();
    self->thread = pthread_self();
    self->previous = NULL;
    self->next = limits.calls;
    if (self->next)
        self->next->previous = self;
    limits.calls = self;
    self->linked = true;
    if (self->deadline < limits.next_look)
        pthread_cond_signal(&limits.earlier);
    pthread_mutex_unlock(&limits.mutex);
    current = self;
}

/* Idempotent. Afterwards no other thread uses the call's record. */
static void unlink_call(limited_call *self)
{
    current = NULL;
    pthread_mutex_lock(&limits.mutex);
    while (self->unblocking)
        pthread_cond_wait(&limits.unblocked, &limits.mutex);
    if (self->linked && self->previous)
        self->previous->next = self->next;
    else if (self->linked)
        limits.calls = self->next;
    if (self->linked && self->next)
        self->next->previous = self->previous;
    self->linked = false;
    pthread_mutex_unlock(&limits.mutex);
}

static void *run_linked(void *data)
{
    limited_call *self = data;
    link_call(self);
    void *result = self->function(self->data);
    int saved = errno;
    unlink_call(self);
    errno = saved;
    return result;
}

static VALUE call_without_gvl(VALUE data)
{
    limited_call *self = (limited_call *)data;
    self->result = rb_nogvl(run_linked, self, (rb_unblock_function_t *)self->unblock, self->unblock_data, self->flags);
    return Qnil;
}

/* Also runs when a callback raises, which leaves the native function by longjmp. */
static VALUE leave_call(VALUE data)
{
    int saved = errno;
    unlink_call((limited_call *)data);
    errno = saved;
    return Qnil;
}

/* -- the fiber's time limits --------------------------------------------------------------------------------------- */

static bool has_limits(heddle_loop *loop)
{
    return heddle_fiber_current(loop)->timeouts && heddle_offload_may_wait(loop);
}

/* The earliest deadline of the fiber's time limits that have not passed and that no interrupt mask delays. */
static int64_t find_deadline(heddle_loop *loop)
{
    heddle_fiber *owner = heddle_fiber_current(loop);
    VALUE fiber = rb_fiber_current();
    int64_t deadline = NEVER;
    for (heddle_timeout *one = owner->timeouts; one; one = one->outer) {
        if (one->timer.slot && one->timer.deadline < deadline && heddle_timeout_holds(one, fiber) &&
            !heddle_interrupt_masked(owner, fiber, one->exception))
            deadline = one->timer.deadline;
    }
    return deadline;
}

bool heddle_in_place_begin(heddle_loop *loop, int flags)
{
    if (!has_limits(loop))
        return true;
    if (flags & RB_NOGVL_INTR_FAIL)
        return !heddle_offload_postpone_due(loop);
    heddle_fiber_check(loop, rb_fiber_current());
    return true;
}

void *heddle_in_place_run(heddle_loop *loop, void *(*function)(void *data), void *data, rb_unblock_function_t *unblock,
                          void *unblock_data, int flags)
{
    int64_t deadline = unblock && has_limits(loop) ? find_deadline(loop) : NEVER;
    if (deadline == NEVER)
        return rb_nogvl(function, data, unblock, unblock_data, flags);
    limited_call self = {.function = function,
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
    if (!has_limits(loop))
        return;
    int saved = errno;
    if (flags & RB_NOGVL_INTR_FAIL)
        heddle_offload_postpone_due(loop);
    else
        heddle_fiber_check(loop, rb_fiber_current());
    errno = saved;
}

void *heddle_in_place_call_back(void *(*function)(void *data), void *data)
{
    limited_call *self = current;
    if (!self)
        return rb_thread_call_with_gvl(function, data);
    int saved = errno;
    unlink_call(self);
    errno = saved;
    void *result = rb_thread_call_with_gvl(function, data);
    saved = errno;
    link_call(self);
    errno = saved;
    return result;
}
