#include "scheduler/take_errinfo.h"

/* Ruby code that only raises: it never returns, so it takes no interrupt that is meant for its caller. */
static VALUE raise_again(VALUE error)
{
    return rb_funcall(rb_path2class("Heddle::Native"), rb_intern("raise_again"), 1, error);
}

VALUE heddle_take_errinfo(void)
{
    VALUE error = rb_errinfo();
    rb_set_errinfo(Qnil);
    if (heddle_is_exception(error) &&
        (RTEST(rb_obj_is_kind_of(error, rb_eNoMemError)) || RTEST(rb_obj_is_kind_of(error, rb_eSysStackError)))) {
        int state = 0;
        rb_protect(raise_again, error, &state);
        rb_set_errinfo(Qnil);
    }
    return error;
}
