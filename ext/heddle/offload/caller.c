#include "offload/caller.h"

#include "scheduler/take_errinfo.h"

#include <ruby/fiber/scheduler.h>

static VALUE probe;      /* a Mutex, see in_trap */
/* an exception was postponed at some time; until then, checks for interrupts need not look for one */
static bool postponed_any;

heddle_loop *heddle_offload_find_loop(void)
{
    heddle_loop *loop = heddle_loop_current();
    /* Only the main Ractor may use the table of functions and the list of calls. */
    if (!loop || !loop->in_main_ractor)
        return NULL;
    return heddle_fiber_current(loop)->calls_inline ? NULL : loop;
}

bool heddle_offload_is_refused(void)
{
    VALUE scheduler = rb_fiber_scheduler_current();
    heddle_loop *loop = NIL_P(scheduler) ? NULL : heddle_loop_if(scheduler);
    return loop && heddle_fiber_current(loop)->calls_inline;
}

/* Is this a signal handler? Ruby has no function to find that out, but in a signal handler a mutex can't be locked. */
static bool in_trap(void)
{
    int state = 0;
    VALUE before = rb_errinfo();
    rb_protect(rb_mutex_lock, probe, &state);
    if (state) {
        rb_set_errinfo(before);
        return true;
    }
    rb_mutex_unlock(probe);
    return false;
}

bool heddle_offload_may_interrupt(heddle_loop *loop)
{
    return !rb_during_gc() && !(heddle_loop_is_running(loop) && loop->fiber == rb_fiber_current()) && !in_trap();
}

/* -- exceptions that wait for the end of a call ------------------------------------------------------------------- */

/* Will an exception be raised in the fiber at its next wait? */
static bool is_interrupted(heddle_loop *loop, VALUE fiber)
{
    heddle_fiber *owner = heddle_fiber_current(loop);
    if (owner->interrupt == Qundef && !heddle_fiber_timeout_due(owner, fiber))
        return false;
    owner->must_raise = true; /* heddle_fiber_timeout_due may have cleared it */
    return true;
}

bool heddle_offload_postpone_errors(heddle_loop *loop)
{
    if (!is_interrupted(loop, rb_fiber_current()))
        return false;
    postponed_any = true;
    return true;
}

void heddle_offload_raise_postponed(void)
{
    heddle_loop *loop = postponed_any ? heddle_offload_find_loop() : NULL;
    if (loop && heddle_offload_may_interrupt(loop))
        heddle_fiber_raise_pending(loop, rb_fiber_current());
}

void heddle_offload_postpone_cancellation(heddle_loop *loop, int state)
{
    heddle_fiber *owner = heddle_fiber_current(loop);
    if (!heddle_is_exception(rb_errinfo()))
        rb_jump_tag(state);
    VALUE error = heddle_take_errinfo();
    postponed_any = true;
    if (owner->interrupt == Qundef)
        heddle_fiber_interrupt(owner, error);
}

void heddle_offload_caller_setup(void)
{
    probe = rb_mutex_new();
    rb_gc_register_mark_object(probe);
}
