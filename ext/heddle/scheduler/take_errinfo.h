#pragma once

#include <ruby.h>

/*
 * Is this value of rb_errinfo() an exception? Other values mean that a thread or a fiber is being killed, or that a
 * throw has left a block.
 */
static inline bool heddle_is_exception(VALUE error)
{
    return !RB_SPECIAL_CONST_P(error) && RB_BUILTIN_TYPE(error) != T_IMEMO &&
           RTEST(rb_obj_is_kind_of(error, rb_eException));
}

/* Does this error end the loop if it leaves a fiber? Any other error that leaves a fiber is only reported. */
static inline bool heddle_ends_loop(VALUE error)
{
    return RTEST(rb_obj_is_kind_of(error, rb_eSystemExit)) || RTEST(rb_obj_is_kind_of(error, rb_eSignal)) ||
           RTEST(rb_obj_is_kind_of(error, rb_eNoMemError));
}

/* Like rb_protect, for the call of one method, which may be private. */
VALUE heddle_call_protected(VALUE receiver, ID method, int count, const VALUE *arguments, int *state);
/*
 * The same for a method of a module, such as "Heddle::Stalls". The look-up of the module is protected, too, because it
 * may run out of memory.
 */
VALUE heddle_call_module_protected(const char *name, ID method, int count, const VALUE *arguments, int *state);

/*
 * Clears the error that rb_protect has caught, and returns it. rb_set_errinfo(Qnil) alone is not enough after memory or
 * stack has run out: the fiber then handles no interrupt (Thread#raise, a signal, the end of its time slice) until the
 * error has left a frame of Ruby code. While an interrupt is pending, a loop can't sleep.
 */
VALUE heddle_take_errinfo(void);
