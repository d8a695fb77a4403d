#include "scheduler/starter.h"

#include "scheduler/take_errinfo.h"
#include "scheduler/fiber_stacks.h"

/*
 * The body of the starter fiber (starter.h): switches to one new fiber after another. The code that switches to the
 * starter has locked Ruby's list of vacant stacks (fiber_stacks.h), because Ruby changes the list here: it takes a
 * stack for the next fiber, and adds the stack of the previous fiber if that fiber has ended.
 */
static VALUE start_others(RB_BLOCK_CALL_FUNC_ARGLIST(yielded, data))
{
    heddle_loop *loop = (heddle_loop *)(data & ~(VALUE)1);
    for (;;) {
        int state = 0;
        /*
         * Raises if Ruby has no stack for the new fiber. A switch back to the starter may raise an exception that
         * another thread has sent (Thread#raise).
         */
        rb_protect(heddle_fiber_transfer, NIL_P(loop->starting) ? loop->start_home : loop->starting, &state);
        if (state) {
            loop->start_error = heddle_take_errinfo();
            loop->starting = Qnil;
        }
    }
    return Qnil;
}

/*
 * Switches to the starter. The starter makes the first switch to the fiber `starting`, or switches back at once if
 * `starting` is Qnil. Returns the error that the starter rescued, or Qnil.
 */
static VALUE switch_to_starter(heddle_loop *loop, VALUE starter, VALUE starting)
{
    int state = heddle_fiber_stacks_lock(loop);
    if (state)
        rb_jump_tag(state);
    loop->start_home = rb_fiber_current();
    loop->starting = starting;
    loop->start_error = Qnil;
    loop->switching.returned = rb_protect(heddle_fiber_transfer, starter, &state);
    heddle_fiber_stacks_unlock(loop);
    if (state)
        rb_jump_tag(state);
    VALUE error = loop->start_error;
    loop->start_error = Qnil;
    return error;
}

void heddle_starter_prepare(heddle_loop *loop)
{
    if (loop->starter)
        return;
    /* the pointer is tagged, so that the garbage collector treats it as an Integer */
    VALUE starter = rb_fiber_new(start_others, (VALUE)loop | 1);
    switch_to_starter(loop, starter, Qnil);
    loop->starter = starter;
}

VALUE heddle_starter_switch(heddle_loop *loop, VALUE fiber)
{
    heddle_starter_prepare(loop);
    return switch_to_starter(loop, loop->starter, fiber);
}

VALUE heddle_starter_visit(heddle_loop *loop)
{
    return switch_to_starter(loop, loop->starter, Qnil);
}
