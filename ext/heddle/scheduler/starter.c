#include "scheduler/starter.h"

#include "scheduler/drop_error.h"

/* Comes back from a switch that succeeded only to make the next one. */
static VALUE start_others(RB_BLOCK_CALL_FUNC_ARGLIST(yielded, data))
{
    heddle_loop *loop = (heddle_loop *)(data & ~(VALUE)1);
    for (;;) {
        int state = 0;
        if (NIL_P(loop->starting)) {
            rb_fiber_transfer(loop->start_home, 0, NULL);
            continue;
        }
        rb_protect(heddle_fiber_transfer, loop->starting, &state);
        if (state) {
            loop->start_error = heddle_drop_error();
            loop->starting = Qnil;
        }
    }
    return Qnil;
}

void heddle_starter_prepare(heddle_loop *loop)
{
    if (loop->starter)
        return;
    VALUE starter = rb_fiber_new(start_others, (VALUE)loop | 1); /* an Integer to the garbage collector */
    loop->start_home = rb_fiber_current();
    loop->starting = loop->start_error = Qnil;
    rb_fiber_transfer(starter, 0, NULL);
    loop->starter = starter;
}

VALUE heddle_starter_switch(heddle_loop *loop, VALUE fiber)
{
    heddle_starter_prepare(loop);
    loop->start_home = rb_fiber_current();
    loop->starting = fiber;
    rb_fiber_transfer(loop->starter, 0, NULL);
    VALUE error = loop->start_error;
    loop->start_error = Qnil;
    return error;
}
