/* An extension that calls back in each of the ways in which extensions do. */

#include <ruby.h>
#include <ruby/io.h>
#include <stdlib.h>

static volatile int waiting; /* calls that have not come back: keeps the compiler from jumping into the callee */

/* CallingBack.yield { } */
static VALUE calling_yield(VALUE self)
{
    waiting++;
    VALUE result = rb_yield(Qnil);
    waiting--;
    return result;
}

/* CallingBack.call(object): object.call */
static VALUE calling_call(VALUE self, VALUE object)
{
    waiting++;
    VALUE result = rb_funcall(object, rb_intern("call"), 0);
    waiting--;
    return result;
}

static VALUE compare_call(VALUE object)
{
    return calling_call(Qnil, object);
}

static VALUE *compared;

static int compare(const void *left, const void *right)
{
    rb_funcall(*compared, rb_intern("call"), 0);
    return *(const int *)left - *(const int *)right;
}

/* CallingBack.sort(object): by way of libc, which stands between the two frames of this library */
static VALUE calling_sort(VALUE self, VALUE object)
{
    int numbers[] = {2, 1};
    compared = &object;
    qsort(numbers, 2, sizeof(*numbers), compare);
    return INT2FIX(numbers[0]);
}

/* CallingBack.protect(object): by a function that Ruby calls */
static VALUE calling_protect(VALUE self, VALUE object)
{
    int state = 0;
    VALUE result = rb_protect(compare_call, object, &state);
    if (state)
        rb_jump_tag(state);
    return result;
}

/* CallingBack.hang: computes for ever, with the GVL */
NORETURN(static VALUE calling_hang(VALUE self));

static VALUE calling_hang(VALUE self)
{
    for (;;)
        waiting = waiting;
}

/* CallingBack.sleep: a wait of its own */
static VALUE calling_sleep(VALUE self)
{
    waiting++;
    rb_thread_wait_for((struct timeval){.tv_usec = 1000});
    waiting--;
    return Qnil;
}

/* CallingBack.wait(io): a wait of its own for what can be read */
static VALUE calling_wait(VALUE self, VALUE io)
{
    waiting++;
    VALUE result = rb_io_wait(io, INT2FIX(RUBY_IO_READABLE), Qnil);
    waiting--;
    return result;
}

/* CallingBack.pop(queue): a wait in a method of Ruby's in C, without Ruby code */
static VALUE calling_pop(VALUE self, VALUE queue)
{
    waiting++;
    VALUE result = rb_funcall(queue, rb_intern("pop"), 0);
    waiting--;
    return result;
}

static const rb_data_type_t allocated_type = {.wrap_struct_name = "allocated", .flags = RUBY_TYPED_FREE_IMMEDIATELY};

/* Where no method of this library is called: an allocation. */
static VALUE allocate(VALUE class)
{
    waiting++;
    VALUE object = TypedData_Wrap_Struct(class, &allocated_type, NULL);
    rb_funcall(rb_const_get(class, rb_intern("CALLED")), rb_intern("call"), 0);
    waiting--;
    return object;
}

void Init_callbacks(void)
{
    VALUE module = rb_define_module("CallingBack");
    rb_define_singleton_method(module, "yield", calling_yield, 0);
    rb_define_singleton_method(module, "call", calling_call, 1);
    rb_define_singleton_method(module, "sort", calling_sort, 1);
    rb_define_singleton_method(module, "sleep", calling_sleep, 0);
    rb_define_singleton_method(module, "hang", calling_hang, 0);
    rb_define_singleton_method(module, "wait", calling_wait, 1);
    rb_define_singleton_method(module, "pop", calling_pop, 1);
    rb_define_singleton_method(module, "protect", calling_protect, 1);
    rb_define_method(rb_mKernel, "yield_of_an_extension", calling_yield, 0);
    rb_define_alloc_func(rb_define_class_under(module, "Allocated", rb_cObject), allocate);
}
