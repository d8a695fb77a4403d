/* An extension whose calls any thread may make: it imports nothing that depends on the thread. */

#include <ruby.h>
#include <ruby/thread.h>
#include <time.h>

static void *sleep_without_gvl(void *data)
{
    return (void *)(intptr_t)nanosleep(data, NULL);
}

static VALUE sleep_for(VALUE self, VALUE seconds)
{
    double value = NUM2DBL(seconds);
    struct timespec time = {.tv_sec = (time_t)value};
    time.tv_nsec = (long)((value - (double)time.tv_sec) * 1e9);
    rb_thread_call_without_gvl(sleep_without_gvl, &time, RUBY_UBF_IO, NULL);
    return Qnil;
}

void Init_plain_calls(void)
{
    rb_define_singleton_method(rb_define_module("PlainCalls"), "sleep_for", sleep_for, 1);
}
