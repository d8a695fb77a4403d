#include "scheduler/take_errinfo.h"

typedef struct {
    const char *name; /* the module's name, if the receiver must be looked up; otherwise NULL */
    VALUE receiver;
    ID method;
    int count;
    const VALUE *arguments;
} method_call;

static VALUE call_method(VALUE data)
{
    const method_call *call = (const method_call *)data;
    VALUE receiver = call->name ? rb_path2class(call->name) : call->receiver;
    return rb_funcallv(receiver, call->method, call->count, call->arguments);
}

VALUE heddle_call_protected(VALUE receiver, ID method, int count, const VALUE *arguments, int *state)
{
    method_call call = {.receiver = receiver, .method = method, .count = count, .arguments = arguments};
    return rb_protect(call_method, (VALUE)&call, state);
}

VALUE heddle_call_module_protected(const char *name, ID method, int count, const VALUE *arguments, int *state)
{
    method_call call = {.name = name, .method = method, .count = count, .arguments = arguments};
    return rb_protect(call_method, (VALUE)&call, state);
}

VALUE heddle_take_errinfo(void)
{
    VALUE error = rb_errinfo();
    rb_set_errinfo(Qnil);
    if (heddle_is_exception(error) &&
        (RTEST(rb_obj_is_kind_of(error, rb_eNoMemError)) || RTEST(rb_obj_is_kind_of(error, rb_eSysStackError)))) {
        int state = 0;
        /*
         * This method, written in Ruby, only raises the error again: the error then leaves a frame of Ruby code. Ruby
         * handles interrupts when a method returns. This one never does, so an interrupt remains for its caller.
         */
        heddle_call_module_protected("Heddle::Native", rb_intern("raise_again"), 1, &error, &state);
        rb_set_errinfo(Qnil);
    }
    return error;
}
