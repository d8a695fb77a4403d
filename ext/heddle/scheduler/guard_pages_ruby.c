#include "guard_pages_ruby.h"

#include "guard_pages.h"

/*
 * call-seq: Heddle::Scheduler.guard_pages -> :on or String
 *
 * Returns :on if the guard pages of fiber stacks need no memory mappings. Then a process can have 100,000 or more
 * fibers with the default <tt>vm.max_map_count</tt>. This needs Linux 6.13, x86-64 or ARM64, and memory pages of 4 KiB.
 * If guard pages need mappings, returns the reason; then a process can have about 31,000 fibers. The first Scheduler of
 * a process and this method switch to guard pages without mappings, unless one of these forbids it: the environment
 * (<tt>HEDDLE_GUARD_PAGES=0</tt> or <tt>HEDDLE_PROTECT=off</tt>), the server's option <tt>protect off</tt>, or the
 * platform, if Heddle was not tested on it and HEDDLE_GUARD_PAGES is not set.
 */
static VALUE scheduler_guard_pages(VALUE class)
{
    heddle_guard_pages_install();
    const char *reason = heddle_guard_pages_status();
    return reason ? rb_utf8_str_new_cstr(reason) : ID2SYM(rb_intern("on"));
}

/*
 * forbid_guard_pages(reason or nil): see heddle_guard_pages_forbid. The copy of the reason is never freed, because
 * other threads may read it.
 */
static VALUE scheduler_forbid_guard_pages(VALUE class, VALUE reason)
{
    heddle_guard_pages_forbid(NIL_P(reason) ? NULL : strdup(StringValueCStr(reason)));
    return Qnil;
}

VALUE heddle_fiber_limit_error(VALUE exception)
{
    static const char *const BEGINNINGS[] = {
        "can't set a guard page", "can't alloc machine stack to fiber",
        "can't allocate fiber stack", /* Ruby >= 4.0 */
    };
    char text[1024];

    if (!RTEST(rb_obj_is_kind_of(exception, rb_const_get(rb_cObject, rb_intern("FiberError")))))
        return exception;
    VALUE message = rb_obj_as_string(exception);
    for (size_t i = 0; i < sizeof(BEGINNINGS) / sizeof(BEGINNINGS[0]); i++) {
        size_t length = strlen(BEGINNINGS[i]);
        if ((size_t)RSTRING_LEN(message) < length || memcmp(RSTRING_PTR(message), BEGINNINGS[i], length) != 0)
            continue;
        VALUE clear = rb_sprintf("%s (%"PRIsVALUE")", heddle_fiber_limit_message(text, sizeof(text)), message);
        /* a copy with the same backtrace and the new message */
        return rb_funcall(exception, rb_intern("exception"), 1, clear);
    }
    return exception;
}

void Init_heddle_guard_pages(VALUE scheduler_class)
{
    rb_define_singleton_method(scheduler_class, "guard_pages", scheduler_guard_pages, 0);
    rb_define_private_method(rb_singleton_class(scheduler_class), "forbid_guard_pages", scheduler_forbid_guard_pages,
                             1);
}
