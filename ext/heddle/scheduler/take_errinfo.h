#pragma once

#include <ruby.h>

/* Is rb_errinfo() an exception? Not when a thread or a fiber is being killed, nor when a throw has left a block. */
static inline bool heddle_is_exception(VALUE error)
{
    return !RB_SPECIAL_CONST_P(error) && RB_BUILTIN_TYPE(error) != T_IMEMO &&
           RTEST(rb_obj_is_kind_of(error, rb_eException));
}

/*
 * Clears the error that rb_protect has caught, and returns it. Plain rb_set_errinfo(Qnil) is not enough: a fiber in
 * which memory or stack ran out takes no interrupt (Thread#raise, a signal, the end of its time slice) until the error
 * has left a frame of Ruby code. With an interrupt that is never taken, a loop can't sleep any more.
 */
VALUE heddle_take_errinfo(void);
