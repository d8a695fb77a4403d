#include "scheduler/wait_in_place.h"

#include "scheduler/native_callbacks.h"
#include "scheduler/fiber_interrupt.h"

#include <ruby/thread.h>

/*
 * The interval, in ns, at which a wait in place checks whether the fiber was cancelled or its IO was closed. Neither
 * event wakes the thread.
 */
static const int64_t POLL_INTERVAL = 50 * 1000 * 1000;

static void note_callback(heddle_loop *loop, const heddle_native_frame *frame)
{
    heddle_hooks.begin_wait_in_place(loop, frame->library ? frame->library->path : "");
}

bool heddle_must_wait_in_place(heddle_loop *loop)
{
    heddle_native_frame frame;
    if (!heddle_native_callbacks_pinned(loop, &frame))
        return false;
    note_callback(loop, &frame);
    return true;
}

bool heddle_must_call_in_place(heddle_loop *loop)
{
    heddle_native_frame frame;
    if (!heddle_native_callbacks_pinned(loop, &frame))
        return false;
    /*
     * If the library has called one of Heddle's replacements of Ruby's functions, the library itself makes the native
     * call. Otherwise it has called back Ruby code, which makes the call.
     */
    const heddle_library *called = frame.called ? heddle_code_map_find(frame.called) : NULL;
    if (called && called->kind == HEDDLE_CODE_HEDDLE)
        return false;
    note_callback(loop, &frame);
    return true;
}

typedef struct {
    struct pollfd *polls;
    nfds_t count;
    struct timespec time;
    int result, error;
} polling;

static void *poll_without_gvl(void *data)
{
    polling *self = data;
#ifdef __linux__
    self->result = ppoll(self->polls, self->count, &self->time, NULL);
#else
    self->result = poll(self->polls, self->count, (int)(self->time.tv_sec * 1000 + self->time.tv_nsec / 1000000));
#endif
    self->error = errno;
    return NULL;
}

/*
 * Returns the time until the next check, in ns. The check is not later than the fiber's next time limit, because the
 * loop does not run timers meanwhile.
 */
static int64_t find_poll_time(heddle_loop *loop, int64_t now, int64_t deadline)
{
    int64_t until = now + POLL_INTERVAL;
    if (deadline >= 0 && deadline < until)
        until = deadline;
    for (heddle_timeout *one = heddle_fiber_current(loop)->timeouts; one; one = one->outer) {
        if (one->timer.slot && one->timer.deadline < until)
            until = one->timer.deadline;
    }
    return until > now ? until - now : 0;
}

typedef struct {
    heddle_loop *loop;
    struct pollfd *polls;
    nfds_t count;
    int64_t deadline;
    const bool *woken;
    VALUE fiber, outer;
    int result;
} waiting;

static VALUE wait_until_ready(VALUE data)
{
    waiting *self = (waiting *)data;
    for (;;) {
        heddle_fiber_raise_pending(self->loop, self->fiber);
        int64_t now = heddle_clock_now(), length = find_poll_time(self->loop, now, self->deadline);
        polling one = {.polls = self->polls, .count = self->count};
        one.time = (struct timespec){.tv_sec = length / 1000000000, .tv_nsec = length % 1000000000};
        rb_nogvl(poll_without_gvl, &one, RUBY_UBF_IO, NULL, 0);
        heddle_hooks.prolong_wait_in_place(self->loop);
        if (one.result < 0 && one.error != EINTR)
            rb_syserr_fail(one.error, "waiting for IO");
        self->result = one.result > 0 ? one.result : 0;
        if (self->result || (self->woken && *self->woken) ||
            (self->deadline >= 0 && heddle_clock_now() >= self->deadline))
            break;
    }
    /*
     * An IO may count as ready because it was closed. Then this wait, and not a later one, must raise the exception
     * about the closed IO.
     */
    heddle_interrupt_raise_deferred(self->loop, self->fiber);
    return Qnil;
}

static VALUE leave_wait(VALUE data)
{
    waiting *self = (waiting *)data;
    self->loop->interrupts.in_place = self->outer;
    heddle_interrupt_leave_in_place(self->loop, self->fiber);
    return Qnil;
}

int heddle_wait_in_place(heddle_loop *loop, struct pollfd *polls, nfds_t count, int64_t deadline, const bool *woken)
{
    waiting self = {.loop = loop, .polls = polls, .count = count, .deadline = deadline, .woken = woken};
    self.fiber = rb_fiber_current();
    /* the fiber of an outer wait in place, during which a signal handler has begun this one; 0: none */
    self.outer = loop->interrupts.in_place;
    loop->interrupts.in_place = self.fiber;
    rb_ensure(wait_until_ready, (VALUE)&self, leave_wait, (VALUE)&self);
    return self.result;
}
