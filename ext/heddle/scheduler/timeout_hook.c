/*
 * The hook timeout_after, which Timeout.timeout calls with the class and the text of the error to raise. Heddle.timeout
 * does not use this hook (see lib/heddle/concurrency).
 */

#include "scheduler/ruby_hooks.h"
#include "scheduler/interrupt_masks.h"
#include "scheduler/loop.h"
#include "selector/list.h"

static void expire_timeout(heddle_timer *timer)
{
    heddle_timeout *timeout = (heddle_timeout *)((char *)timer - offsetof(heddle_timeout, timer));
    timeout->fired = true;
    timeout->owner->must_raise = true;
    /* Only wakes the fiber: its current wait raises the exception, or else its next wait. */
    heddle_park *park = timeout->owner->park;
    if (!park || !heddle_timeout_covers_wait(timeout, park->fiber))
        return;
    timeout->delayed = heddle_timeout_masked(timeout, park->fiber);
    if (!timeout->delayed)
        heddle_park_wake(park);
}

/*
 * Must a wait of the fiber `waiting` end at this timeout? `waiting` is the timeout's owner, or a nested fiber that the
 * owner has resumed, such as an Enumerator's. A wait of the owner itself is covered only if the timeout's block runs in
 * the owner and not in a nested fiber. Every wait of a nested fiber is covered, because that fiber may have been
 * resumed within the block.
 */
bool heddle_timeout_covers_wait(const heddle_timeout *timeout, VALUE waiting)
{
    return waiting != timeout->owner->fiber || timeout->fiber == waiting;
}

/*
 * A mask (Thread.handle_interrupt) applies if it names the exception that will be raised, or the exception that was
 * requested (see convert_exception).
 */
bool heddle_timeout_masked(const heddle_timeout *timeout, VALUE waiting)
{
    return heddle_interrupt_masked(timeout->owner, waiting, timeout->exception) ||
           (timeout->asked != timeout->exception && heddle_interrupt_masked(timeout->owner, waiting, timeout->asked));
}

void heddle_fiber_drop_timeouts(heddle_fiber *fiber)
{
    for (heddle_timeout *timeout = fiber->timeouts; timeout; timeout = timeout->outer) {
        heddle_timer_heap_remove(&fiber->loop->timers, &timeout->timer);
        timeout->owner = NULL;
    }
    fiber->timeouts = NULL;
    heddle_fiber_drop_masks(fiber);
}

/*
 * Timeout.timeout of Ruby 3.3 requests Timeout::Error. If that were raised, a rescue within an inner block would catch
 * the timeout of an outer block. So Timeout::ExitException is raised, which Ruby 3.4 requests. The timeout_after that
 * it belongs to converts it to Timeout::Error.
 */
static VALUE convert_exception(VALUE klass, bool *converted)
{
    *converted = false;
    if (!rb_const_defined(rb_cObject, rb_intern("Timeout")))
        return klass;
    VALUE timeout = rb_const_get(rb_cObject, rb_intern("Timeout"));
    ID exit_exception = rb_intern("ExitException");
    if (!rb_const_defined(timeout, exit_exception) || klass != rb_const_get(timeout, rb_intern("Error")))
        return klass;
    *converted = true;
    return rb_const_get(timeout, exit_exception);
}

typedef struct {
    heddle_timeout *timeout;
    VALUE duration;
} timed_block;

static VALUE yield_duration(VALUE data)
{
    return rb_yield(((timed_block *)data)->duration);
}

/*
 * Called when the timeout's block has ended. Preemption may have added an exception to the thread's pending interrupts,
 * where a mask still delays it. It is removed, because Ruby could raise it in another fiber later. An exception of this
 * timeout is discarded; any other one is raised at the fiber's next wait.
 */
static VALUE take_back(VALUE data)
{
    heddle_fiber *owner = ((timed_block *)data)->timeout->owner;
    if (owner && owner->delivered_error)
        heddle_hooks.take_back_error(owner);
    return Qnil;
}

static VALUE call_block(VALUE data)
{
    return rb_ensure(yield_duration, data, take_back, data);
}

/*
 * call-seq: timeout_after(duration, exception, message = nil) { |duration| ... } -> the block's value
 *
 * Calls the block. After +duration+ seconds, raises +exception+ (a class or an instance, as for Kernel#raise) at the
 * block's current or next wait; with preemption, also while the block computes. If several timeouts have passed, the
 * outermost one is raised. Thread.handle_interrupt delays a timeout as it delays what other threads raise.
 */
static VALUE scheduler_timeout_after(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 2, 3);
    rb_need_block();
    heddle_loop *loop = heddle_loop_get(self);
    heddle_fiber *owner = heddle_fiber_current(loop);
    /* From Ruby 3.4 on, Timeout.timeout rejects a negative limit before this hook is called. */
    int64_t duration = heddle_parse_limit(argv[0]);
    if (duration < 0)
        return rb_yield(argv[0]);

    bool converted;
    volatile VALUE exception = convert_exception(argv[1], &converted), message = argc == 3 ? argv[2] : Qnil;
    heddle_timeout timeout = {
        .timer = {.deadline = heddle_deadline_after(duration), .fn = expire_timeout},
        .owner = owner,
        .outer = owner->timeouts,
        .fiber = rb_fiber_current(),
        .exception = exception,
        .asked = argv[1],
        .message = message,
        .raised = Qundef,
    };
    if (heddle_timer_heap_push(&loop->timers, &timeout.timer) != 0)
        rb_memerror();
    owner->timeouts = &timeout;

    int state = 0;
    timed_block block = {.timeout = &timeout, .duration = argv[0]};
    VALUE result = rb_protect(call_block, (VALUE)&block, &state);

    if (timeout.owner) {
        heddle_timer_heap_remove(&loop->timers, &timeout.timer);
        HEDDLE_LIST_REMOVE_INNER(timeout.owner->timeouts, &timeout);
    }
    if (state) {
        if (converted && timeout.raised != Qundef && rb_errinfo() == timeout.raised) {
            rb_set_errinfo(Qnil);
            VALUE arguments[] = {argv[1], message};
            rb_exc_raise(rb_make_exception(NIL_P(message) ? 1 : 2, arguments));
        }
        rb_jump_tag(state);
    }
    RB_GC_GUARD(exception);
    RB_GC_GUARD(message);
    return result;
}

void heddle_define_timeout_hook(VALUE scheduler_class)
{
    rb_define_method(scheduler_class, "timeout_after", scheduler_timeout_after, -1);
}
