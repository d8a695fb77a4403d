#include "net/io_await.h"

#include "scheduler/wait_in_place.h"

#include <ruby/fiber/scheduler.h>
#include <ruby/io.h>

/* Returns the loop of the calling fiber, or NULL if the fiber runs outside of a Heddle loop. */
static heddle_loop *find_loop(void)
{
    VALUE scheduler = rb_fiber_scheduler_current();
    return !NIL_P(scheduler) && heddle_loop_if(scheduler) ? heddle_loop_get(scheduler) : NULL;
}

int heddle_await_io(VALUE io, int events, int64_t deadline)
{
    int64_t left = -1;
    if (deadline >= 0) {
        left = deadline - heddle_clock_now();
        if (left <= 0)
            return 0;
    }
    heddle_loop *loop = find_loop();
    if (loop)
        return heddle_must_wait_in_place(loop) ? heddle_io_wait_ready_in_place(loop, io, events, left)
                                               : heddle_io_wait_ready(loop, io, events, left);
    VALUE ready = rb_io_wait(io, INT2FIX(events), left < 0 ? Qnil : DBL2NUM((double)left / 1e9));
    return RTEST(ready) ? NUM2INT(ready) : 0;
}

bool heddle_await_tick(VALUE io)
{
    heddle_loop *loop = find_loop();
    if (!loop || heddle_must_wait_in_place(loop))
        return false;
    heddle_io_wait_tick(loop, io, rb_io_descriptor(io));
    return true;
}
