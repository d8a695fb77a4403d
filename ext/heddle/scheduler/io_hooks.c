/* The hooks io_wait and io_close. */

#include "scheduler/ruby_hooks.h"
#include "scheduler/io_wait.h"
#include "scheduler/wait_in_place.h"

#include <ruby/io.h>

/*
 * Does the calling thread belong to ThreadPool? In Ruby >= 3.4, Heddle runs IO.copy_stream as a whole on such a thread.
 * When copy_stream has to wait there, Ruby calls the hook of the scheduler of the thread that called copy_stream. The
 * hook then waits by Ruby's own function, rb_io_wait. That blocks only the pool's thread, and raises IOError when the
 * IO is closed.
 */
static bool on_pool_thread(VALUE scheduler)
{
    if (heddle_loop_of(scheduler)->thread == rb_thread_current())
        return false;
    return RTEST(rb_thread_local_aref(rb_thread_current(), rb_intern("heddle_pool_thread")));
}

/*
 * call-seq: io_wait(io, events, timeout = nil) -> Integer or false
 *
 * Waits until +io+ is ready for one of +events+ (IO::READABLE | IO::PRIORITY | IO::WRITABLE). Returns the mask of ready
 * events, or false after +timeout+ seconds. Without +timeout+, waits at most io.timeout seconds, and then raises
 * IO::TimeoutError: Ruby leaves io.timeout to this hook.
 */
static VALUE scheduler_io_wait(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 2, 3);
    int64_t timeout = heddle_parse_duration(argc == 3 ? argv[2] : Qnil);
    bool own = timeout < 0;
    if (own)
        timeout = heddle_io_get_timeout(argv[0]);
    if (on_pool_thread(self)) {
        VALUE events = rb_io_wait(argv[0], argv[1], own ? rb_io_timeout(argv[0]) : argv[2]);
        if (!RTEST(events) && own && timeout >= 0)
            heddle_io_raise_timeout();
        return events;
    }

    heddle_loop *loop = heddle_loop_get(self);
    int ready = heddle_must_wait_in_place(loop)
                    ? heddle_io_wait_ready_in_place(loop, argv[0], NUM2INT(argv[1]), timeout)
                    : heddle_io_wait_ready(loop, argv[0], NUM2INT(argv[1]), timeout);
    if (ready)
        return INT2NUM(ready);
    if (own && timeout >= 0)
        heddle_io_raise_timeout();
    return Qfalse; /* false and not nil: Ruby's connect_timeout treats nil as success */
}

#if RUBY_API_VERSION_MAJOR >= 4
/* Called by Ruby >= 4.0. Wakes the fibers that wait for the descriptor, and closes it. */
static VALUE scheduler_io_close(VALUE self, VALUE descriptor)
{
    heddle_io_fail_waits(heddle_loop_get(self), NUM2INT(descriptor));
    if (close(NUM2INT(descriptor)) != 0 && errno != EINTR)
        rb_sys_fail("close");
    return Qtrue;
}
#endif

/*
 * Called after IO#reopen, on any thread. Makes the fibers that wait for this descriptor raise IOError, as Ruby does
 * with threads.
 */
static VALUE scheduler_s_reopened(VALUE scheduler_class, VALUE descriptor)
{
    heddle_io_fail_reopened_waits(NUM2INT(descriptor));
    return Qnil;
}

void heddle_define_io_hooks(VALUE scheduler_class)
{
    rb_define_method(scheduler_class, "io_wait", scheduler_io_wait, -1);
    rb_define_private_method(rb_singleton_class(scheduler_class), "reopened", scheduler_s_reopened, 1);
#if RUBY_API_VERSION_MAJOR >= 4
    rb_define_method(scheduler_class, "io_close", scheduler_io_close, 1);
#endif
}
