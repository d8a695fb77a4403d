/*
 * Keeps the exceptions that are raised for a preempted fiber, and tests whether Ruby would raise them at this point.
 * preempt.c decides which one a preempted fiber raises, and pending_exceptions.c which one its next wait raises.
 */

#include "preempt/preempt.h"

#include "scheduler/take_errinfo.h"

VALUE heddle_exception_make_cancelled(const char *message)
{
    VALUE class = rb_const_get(rb_path2class("Heddle"), rb_intern("Cancelled"));
    return rb_exc_new_cstr(class, message);
}

void heddle_exception_raise_kill(heddle_loop *loop)
{
    loop->preempt.killed = false;
    rb_exc_raise(heddle_exception_make_cancelled("the thread was killed"));
}

void heddle_exception_postpone(heddle_fiber *fiber, VALUE exception)
{
    fiber->must_raise = true;
    for (heddle_timeout *timeout = fiber->timeouts; timeout; timeout = timeout->outer) {
        if (timeout->raised == exception) {
            timeout->raised = Qundef;
            return;
        }
    }
    if (fiber->interrupt == Qundef)
        fiber->interrupt = exception;
}

VALUE heddle_exception_catch(heddle_loop *loop, VALUE (*function)(VALUE), VALUE data)
{
    int state = 0;
    rb_protect(function, data, &state);
    if (!state)
        return Qundef;
    VALUE error = heddle_take_errinfo();
    if (!RB_SPECIAL_CONST_P(error))
        return error;
    loop->preempt.killed = true;
    return Qundef;
}

bool heddle_exception_is_own(VALUE error)
{
    return heddle_is_exception(error) && RTEST(rb_obj_is_kind_of(error, rb_eSysStackError));
}

/* -- the exception that was delivered to a fiber ------------------------------------------------------------------ */

void heddle_exception_raise_delivered(heddle_fiber *fiber)
{
    VALUE exception = fiber->delivered_error;
    fiber->delivered_error = 0;
    rb_funcall(rb_path2class("Heddle::Preemption"), rb_intern("raise_delivered"), 1, exception);
}

static VALUE raise_delivered(VALUE fiber)
{
    heddle_exception_raise_delivered((heddle_fiber *)fiber);
    return Qnil;
}

/*
 * Removes the fiber's delivered exception from the pending interrupts of the thread, which all fibers share, and
 * returns it. Returns Qundef if the thread has raised it already, or if too little stack is left to remove it.
 */
static VALUE pop_error(heddle_fiber *fiber)
{
    VALUE delivered = fiber->delivered_error;
    VALUE error = heddle_exception_catch(fiber->loop, raise_delivered, (VALUE)fiber);
    if (!heddle_exception_is_own(error))
        return error;
    fiber->delivered_error = delivered;
    return Qundef;
}

void heddle_exception_take_back(heddle_fiber *fiber)
{
    VALUE exception = pop_error(fiber);
    if (exception != Qundef)
        heddle_exception_postpone(fiber, exception);
}

/* -- finding out whether Ruby would raise here -------------------------------------------------------------------- */

typedef struct {
    heddle_fiber *fiber;
    bool taken;  /* Ruby handles interrupts at this point */
    bool masked; /* Thread.handle_interrupt delays the exception that was delivered to the fiber */
} probe;

/*
 * Sets the flag that Thread#raise sets, and tests whether Ruby would act on it here. Then calls a method (alive?). When
 * the method returns, Ruby handles interrupts: it clears the flag and raises a pending exception, unless
 * Thread.handle_interrupt delays the exception.
 */
static VALUE take_interrupts(VALUE data)
{
    probe *self = (probe *)data;
    VALUE thread = rb_thread_current();
    rb_thread_wakeup_alive(thread);
    self->taken = rb_thread_interrupted(thread);
    rb_funcall(thread, rb_intern("alive?"), 0);
    if (!self->taken || !self->fiber->delivered_error)
        return Qnil;
    VALUE class = rb_obj_class(self->fiber->delivered_error);
    self->masked = RTEST(rb_funcall(thread, rb_intern("pending_interrupt?"), 1, class));
    if (!self->masked)
        self->fiber->delivered_error = 0;
    return Qnil;
}

bool heddle_exception_would_be_raised(heddle_loop *loop, VALUE *kept)
{
    probe self = {.fiber = loop->current};
    *kept = heddle_exception_catch(loop, take_interrupts, (VALUE)&self);
    if (heddle_exception_is_own(*kept))
        return false;
    if (*kept == Qundef && self.masked)
        *kept = pop_error(loop->current);
    return self.taken || loop->preempt.killed;
}
