/* Resets a pooled fiber before it serves another request: see fiber_reset.h. */

#include "net/fiber_reset.h"

static VALUE fiber_class;

static int drop_from_storage(VALUE key, VALUE value, VALUE data)
{
    rb_funcall(fiber_class, rb_intern("[]="), 2, key, Qnil); /* nil deletes the key; Fiber#storage= would warn */
    return ST_CONTINUE;
}

/* Fiber#storage returns a copy, so entries can be removed during the iteration. */
static void clear_storage(VALUE fiber)
{
    VALUE storage = rb_funcall(fiber, rb_intern("storage"), 0);
    if (RB_TYPE_P(storage, T_HASH) && RHASH_SIZE(storage))
        rb_hash_foreach(storage, drop_from_storage, Qnil);
}

static void clear_locals(VALUE thread)
{
    VALUE keys = rb_funcall(thread, rb_intern("keys"), 0);
    for (long i = 0; i < RARRAY_LEN(keys); i++)
        rb_thread_local_aset(thread, SYM2ID(rb_ary_entry(keys, i)), Qnil);
}

static void remove_instance_variables(VALUE fiber)
{
    if (rb_ivar_count(fiber) == 0)
        return;
    VALUE names = rb_obj_instance_variables(fiber);
    for (long i = 0; i < RARRAY_LEN(names); i++)
        rb_obj_remove_instance_variable(fiber, rb_ary_entry(names, i));
}

static VALUE reset_fiber(VALUE fiber)
{
    clear_storage(fiber);
    clear_locals(rb_thread_current());
    remove_instance_variables(fiber);
    return Qnil;
}

int heddle_fiber_reset(heddle_fiber *fiber)
{
    int state = 0;
    heddle_fiber_keep_error(fiber); /* moves a pending exception to the fiber; the next line discards it */
    fiber->interrupt = Qundef;
    fiber->must_raise = false;
    /* above 0 if an Enumerator was abandoned inside a without_preemption block, which then never ends */
    fiber->unpreempted = 0;
    heddle_fiber_drop_timeouts(fiber); /* time limits of abandoned Enumerators would raise later */
    rb_protect(reset_fiber, fiber->fiber, &state);
    return state;
}

void Init_heddle_fiber_reset(void)
{
    fiber_class = rb_const_get(rb_cObject, rb_intern("Fiber"));
}
