#include "scheduler/take_errinfo.h"

/* Ruby code that does nothing but raise: it returns nowhere, and so takes no interrupt that is not meant for it. */
static VALUE raise_again(VALUE error)
{
    return rb_funcall(rb_path2class("Heddle::Native"), rb_intern("raise_again"), 1, error);
}

/* A thread or a fiber that is killed leaves no exception. */
static bool is_object(VALUE error)
{
    return !RB_SPECIAL_CONST_P(error) && RB_BUILTIN_TYPE(error) != T_IMEMO;
}

VALUE heddle_take_errinfo(void)
{
    VALUE error = rb_errinfo();
    rb_set_errinfo(Qnil);
    if (is_object(error) &&
        (RTEST(rb_obj_is_kind_of(error, rb_eNoMemError)) || RTEST(rb_obj_is_kind_of(error, rb_eSysStackError)))) {
        int state = 0;
        rb_protect(raise_again, error, &state);
        rb_set_errinfo(Qnil);
    }
    return error;
}
