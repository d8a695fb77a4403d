#include "scheduler/fiber_interrupt.h"

#include "scheduler/ruby_hooks.h"
#include "scheduler/take_errinfo.h"

static VALUE copy_frozen(VALUE exception)
{
    return RB_OBJ_FROZEN(exception) ? rb_obj_dup(exception) : exception;
}

void heddle_interrupt_raise(VALUE exception)
{
    rb_exc_raise(copy_frozen(exception));
}

void heddle_interrupt_defer(heddle_loop *loop, VALUE fiber, VALUE exception)
{
    if (!RB_OBJ_FROZEN(exception))
        heddle_fiber_notes_put(&loop->interrupts.deferred, fiber, exception);
}

void heddle_interrupt_raise_kept(heddle_loop *loop, VALUE fiber)
{
    VALUE exception = rb_hash_delete(loop->interrupts.deferred, fiber);
    if (!NIL_P(exception))
        heddle_interrupt_raise(exception);
}

void heddle_interrupt_leave_in_place(heddle_loop *loop, VALUE fiber)
{
    if (!heddle_fiber_notes_any(loop->interrupts.deferred))
        return;
    VALUE exception = rb_hash_lookup(loop->interrupts.deferred, fiber);
    if (!NIL_P(exception) && RB_OBJ_FROZEN(exception))
        rb_hash_delete(loop->interrupts.deferred, fiber);
}

/* -- proxies (Ruby >= 4.1) --------------------------------------------------------------------------------------- */

/*
 * Ruby 4.1 passes a proxy instead of the fiber. The proxy stands for one call that the fiber is in, and has only the
 * methods `alive?`, `raise` and `transfer`. After that call has ended, `raise` does nothing. `raise` switches to the
 * fiber, so it must be called in another fiber of this loop, and that fiber continues only in the next tick. So a new
 * fiber is started for each proxy: then all proxies raise in the same tick.
 */
static VALUE call_proxy(VALUE pair)
{
    VALUE proxy = rb_ary_entry(pair, 0);
    bool alive = RTEST(rb_funcall(proxy, rb_intern("alive?"), 0));
    return alive ? rb_funcall(proxy, rb_intern("raise"), 1, rb_ary_entry(pair, 1)) : Qnil;
}

/*
 * Ignores errors of call_proxy, because none may end the loop. The most frequent one is a FiberError: the fiber has
 * resumed another fiber, which has not returned. Then Ruby itself raises the exception when the fiber's call ends.
 */
static VALUE ignore_error(VALUE data, VALUE error)
{
    return Qnil;
}

static VALUE raise_through_proxy(RB_BLOCK_CALL_FUNC_ARGLIST(yielded, pair))
{
    return rb_rescue2(call_proxy, pair, ignore_error, Qnil, rb_eStandardError, (VALUE)0);
}

static VALUE spawn_raisers(VALUE data)
{
    heddle_loop *loop = (heddle_loop *)data;
    while (RARRAY_LEN(loop->interrupts.proxies)) {
        VALUE raiser = rb_proc_new(raise_through_proxy, rb_ary_shift(loop->interrupts.proxies));
        heddle_fiber_enqueue(heddle_fiber_spawn(loop, raiser));
    }
    return Qnil;
}

static void receive_proxies(heddle_loop_message *message)
{
    heddle_loop *loop = (heddle_loop *)((char *)message - offsetof(heddle_loop, interrupts.message));
    int state = 0;
    loop->interrupts.posted = false;
    rb_protect(spawn_raisers, (VALUE)loop, &state);
    if (state)
        /* there was no memory for a fiber; Ruby itself then raises the exception when the fiber's call ends */
        heddle_take_errinfo();
}

static void queue_proxy(heddle_loop *loop, VALUE proxy, VALUE exception)
{
    VALUE pair = rb_assoc_new(proxy, exception);
    if (!loop->interrupts.proxies)
        loop->interrupts.proxies = rb_ary_new();
    rb_ary_push(loop->interrupts.proxies, pair);
    if (loop->interrupts.posted)
        return;
    loop->interrupts.posted = true;
    loop->interrupts.message.open = receive_proxies;
    heddle_inbox_post(&loop->inbox, &loop->interrupts.message);
    heddle_loop_wake(loop);
}

/* -- the hook ---------------------------------------------------------------------------------------------------- */

VALUE heddle_thread_raise(VALUE thread, VALUE exception)
{
    VALUE own = rb_funcall(rb_cThread, rb_intern("instance_method"), 1, ID2SYM(rb_intern("raise")));
    return rb_funcall(own, rb_intern("bind_call"), 2, thread, exception);
}

/*
 * Called on another thread than the loop's. Would Thread#raise of the loop's thread raise the exception in this fiber?
 * No for the fiber that runs the loop. Yes for any other blocking fiber, because it never switches, so the thread runs
 * it now. Yes also for the loop's current fiber if Ruby's IO#close interrupts it (only IO#close passes a frozen
 * exception), because the fiber is in a system call.
 */
static bool takes_thread_raise(const heddle_loop *loop, VALUE fiber, VALUE exception)
{
    if (heddle_loop_is_running(loop) && fiber == loop->fiber)
        return false;
    if (RTEST(rb_funcall(fiber, rb_intern("blocking?"), 0)))
        return true;
    return RB_OBJ_FROZEN(exception) && loop->current && loop->current->fiber == fiber;
}

/*
 * Interrupts a fiber that runs, or that waits in place. If its thread is in a system call without the GVL, that call
 * ends, too.
 */
static void interrupt_running(heddle_loop *loop, VALUE fiber, VALUE exception)
{
    bool other_thread = loop->thread != rb_thread_current() && !atomic_load(&loop->sleeping);
    bool in_place = loop->interrupts.in_place == fiber;
    if (other_thread && !in_place && takes_thread_raise(loop, fiber, exception)) {
        heddle_thread_raise(loop->thread, copy_frozen(exception));
        return;
    }
    if (in_place)
        heddle_fiber_notes_put(&loop->interrupts.deferred, fiber, exception);
    else
        heddle_interrupt_defer(loop, fiber, exception);
    if (other_thread)
        rb_thread_wakeup_alive(loop->thread);
}

/* Ruby calls the hook for a thread's blocking fibers even if the thread's loop is closed. */
static bool interrupt_blocking(heddle_loop *loop, VALUE fiber, VALUE exception)
{
    if (loop->thread == rb_thread_current() || !RTEST(rb_funcall(fiber, rb_intern("blocking?"), 0)))
        return false;
    heddle_thread_raise(loop->thread, copy_frozen(exception));
    return true;
}

static bool interrupt_fiber(heddle_loop *loop, VALUE fiber, VALUE exception)
{
    if (heddle_loop_is_closed(loop))
        return interrupt_blocking(loop, fiber, exception);
    /* A fiber that sleeps in place has a park, but nothing checks the exceptions in that park. */
    heddle_park *park = loop->interrupts.in_place == fiber ? NULL : heddle_park_find(loop, fiber);
    if (park) {
        park->interrupt = exception;
        heddle_park_wake(park);
        return true;
    }
    if (!RTEST(rb_fiber_alive_p(fiber)))
        return false;
    interrupt_running(loop, fiber, exception);
    return true;
}

/*
 * call-seq: fiber_interrupt(fiber, exception) -> true or false
 *
 * Raises +exception+ in +fiber+, at its current wait, or else at its next wait. May be called on any thread, and never
 * switches fibers. Returns false if nothing is raised: the fiber has ended, the loop belongs to the parent process, or
 * the loop is closed and +fiber+ is not a blocking fiber of another thread. IO#close calls this hook for the fibers
 * that wait for the IO. Ruby 4.1 and later pass a proxy with the methods +alive?+ and +raise+ instead of the fiber.
 */
static VALUE scheduler_fiber_interrupt(VALUE self, VALUE fiber, VALUE exception)
{
    heddle_loop *loop = heddle_loop_of(self);
    if (!RTEST(rb_obj_is_kind_of(exception, rb_eException)))
        rb_raise(rb_eTypeError, "the argument must be an exception, not %" PRIsVALUE, rb_obj_class(exception));
    if (heddle_loop_forked(loop))
        return Qfalse;
    if (rb_obj_is_fiber(fiber))
        return interrupt_fiber(loop, fiber, exception) ? Qtrue : Qfalse;
    if (heddle_loop_is_closed(loop))
        return Qfalse;
    queue_proxy(loop, fiber, exception);
    return Qtrue;
}

void heddle_define_interrupt_hook(VALUE scheduler_class)
{
    rb_define_method(scheduler_class, "fiber_interrupt", scheduler_fiber_interrupt, 2);
}
