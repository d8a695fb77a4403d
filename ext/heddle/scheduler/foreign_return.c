#include "scheduler/foreign_return.h"

#include "scheduler/take_errinfo.h"
#include "scheduler/fiber_stacks.h"

/*
 * Called in the loop's fiber. If a fiber is about to end, but another fiber than the loop's has made the last switch to
 * it, switches to it once more. Then it ends and switches back, and Ruby releases its stack (see run_body in fiber.c).
 */
static void switch_to_ending(heddle_loop *loop)
{
    while (loop->switching.ending) {
        VALUE fiber = loop->switching.ending;
        loop->switching.ending = Qfalse;
        heddle_fiber_transfer(fiber);
        heddle_fiber_stacks_unlock(loop);
        RB_GC_GUARD(fiber);
    }
}

/* Has the loop's current fiber left the loop by Fiber#transfer, and has that call not returned yet? */
static bool is_current_left(const heddle_loop *loop)
{
    if (!loop->current || loop->switching.left_by_wait || loop->current == &loop->implicit || loop->preempt.killed ||
        heddle_loop_forked(loop))
        return false;
    /*
     * In a forked child, the loop runs in the fiber that called fork, or in a fiber that this one has resumed. So the
     * fiber that called fork has not left the loop by Fiber#transfer.
     */
    VALUE fiber = loop->current->fiber;
    return fiber != loop->fiber && fiber != loop->run.forked_by && RTEST(rb_fiber_alive_p(fiber));
}

static void prepare_switch(heddle_loop *loop, VALUE fiber)
{
    loop->switching.last_target = fiber;
    loop->switching.switching_to = NULL;
    loop->switching.returned = Qnil;
    heddle_loop_advance_heartbeat(loop);
}

void heddle_foreign_return(heddle_loop *loop)
{
    switch_to_ending(loop);
    while (is_current_left(loop)) {
        VALUE fiber = loop->current->fiber, value = loop->switching.returned;
        prepare_switch(loop, fiber);
        /*
         * Raises FiberError if the fiber has resumed another fiber: then Ruby can pass it an exception, but no value.
         */
        loop->switching.returned = heddle_fiber_transfer_checked(fiber, 1, &value);
        heddle_fiber_stacks_unlock(loop);
        switch_to_ending(loop);
        RB_GC_GUARD(fiber);
    }
}

typedef struct {
    heddle_loop *loop;
    VALUE error;
} delivery;

static VALUE deliver_error(VALUE data)
{
    delivery *self = (delivery *)data;
    heddle_loop *loop = self->loop;
    /* rb_fiber_raise of Ruby 4.0 has no const in its parameter */
    VALUE fiber = loop->current->fiber, error = self->error;
    prepare_switch(loop, fiber);
    /* If the fiber has resumed another fiber, Ruby raises the exception in that other fiber. */
    loop->switching.returned = rb_fiber_raise(fiber, 1, &error);
    heddle_fiber_stacks_unlock(loop);
    heddle_foreign_return(loop);
    RB_GC_GUARD(fiber);
    return Qnil;
}

void heddle_foreign_raise(heddle_loop *loop, int *state)
{
    while (*state && heddle_is_exception(rb_errinfo()) && is_current_left(loop)) {
        delivery self = {.loop = loop, .error = heddle_take_errinfo()};
        heddle_fiber_stacks_unlock(loop);
        rb_protect(deliver_error, (VALUE)&self, state);
        RB_GC_GUARD(self.error);
    }
}
