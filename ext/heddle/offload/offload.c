#include "binding.h"

#include "offload/blocking_operation.h"
#include "offload/call.h"
#include "offload/caller.h"
#include "offload/fiddle_targets.h"
#include "offload/imports.h"
#include "offload/libc_hooks.h"
#include "offload/library_judge.h"
#include "offload/open_calls.h"
#include "offload/policy.h"
#include "offload/replacements.h"
#include "offload/thread_delay.h"
#include "offload/threads.h"
#include "scheduler/take_errinfo.h"

#include <ruby/thread.h>

/* -- the threads --------------------------------------------------------------------------------------------------- */

typedef struct {
    heddle_offload_thread *thread;
    bool spare;
} serving;

static void *serve_without_gvl(void *data)
{
    serving *self = data;
    self->spare = heddle_threads_serve(self->thread);
    return NULL;
}

static void leave_threads(void *data)
{
    heddle_threads_leave(((serving *)data)->thread);
}

static VALUE serve_calls(VALUE data)
{
    serving *self = (serving *)data;
    while (!self->spare) {
        rb_nogvl(serve_without_gvl, self, leave_threads, self, RB_NOGVL_INTR_FAIL);
        rb_thread_check_ints();
    }
    return Qnil;
}

/* Makes the calling thread an offload thread: runs jobs until none has come for a while. */
static VALUE offload_serve(VALUE self)
{
    serving thread = {.thread = heddle_threads_attach()};
    int state = 0;
    if (!thread.thread)
        rb_memerror();
    rb_protect(serve_calls, (VALUE)&thread, &state);
    VALUE error = rb_errinfo();
    bool raised = state && heddle_is_exception(error);
    bool passed_on = heddle_threads_end_left_job(thread.thread, raised ? error : 0) && raised;
    heddle_threads_detach(thread.thread);
    if (passed_on)
        heddle_take_errinfo();
    else if (state)
        rb_jump_tag(state);
    return Qnil;
}

/* -- switches ------------------------------------------------------------------------------------------------------ */

/* Ruby exports this function, but no header declares it. */
int rb_bug_reporter_add(void (*report)(FILE *to, void *data), void *data);

/*
 * Adds to Ruby's crash report which functions are intercepted, and whether the crashed thread runs an offloaded call.
 */
static void report_crash(FILE *to, void *data)
{
    const char *core = heddle_offload_core(), *name;
    fprintf(to, "-- Heddle: native calls intercepted for offload (%s; HEDDLE_PROTECT=off prevents interception) --\n",
            heddle_offload_on() ? "on" : "off now");
    fprintf(to, "rb_nogvl, rb_thread_call_without_gvl, rb_thread_call_without_gvl2, rb_thread_call_with_gvl in:\n");
    for (size_t i = 0; i < heddle_offload_library_count(); i++)
        fprintf(to, "  %s\n", heddle_offload_library(i, NULL));
    fprintf(to, "rb_nogvl, rb_thread_io_blocking_call, dlopen in Ruby itself: %s\n", core ? core : "yes");
    const char *use, *why;
    for (size_t i = 0; (name = heddle_offload_missing(i, &use, &why)); i++)
        fprintf(to, "  but not %s: %s\n", name, why);
    for (size_t i = 0; i < heddle_libc_count(); i++)
        fprintf(to, "poll, select, sleep, connect and recv in %s\n", heddle_libc_library(i));
    fprintf(to, "this thread runs %s\n\n", heddle_threads_current() ? "an offloaded call" : "no offloaded call");
}

static void register_crash_report(void)
{
    static bool reported;
    if (!reported)
        rb_bug_reporter_add(report_crash, NULL);
    reported = true;
}

static VALUE offload_intercept(VALUE self)
{
    heddle_offload_intercept();
    register_crash_report();
    return Qnil;
}

static VALUE offload_check_io_calls(VALUE self, VALUE file, VALUE expected)
{
    heddle_offload_check_io_calls(file, expected);
    return Qnil;
}

static VALUE offload_learn_open_calls(VALUE self)
{
    heddle_open_calls_learn();
    return Qnil;
}

static VALUE offload_switch(VALUE self, VALUE to)
{
    heddle_offload_switch(RTEST(to));
    return to;
}

/*
 * call-seq: enabled? -> true or false
 */
HEDDLE_DEFINE_METHOD(offload_enabled_p, "enabled?", heddle_offload_on() ? Qtrue : Qfalse)

static VALUE set_list(heddle_policy_list which, VALUE list)
{
    VALUE buffer;
    Check_Type(list, T_ARRAY);
    const char **names = ALLOCV_N(const char *, buffer, RARRAY_LEN(list) + 1);
    for (long i = 0; i < RARRAY_LEN(list); i++) {
        VALUE name = rb_ary_entry(list, i);
        names[i] = StringValueCStr(name);
    }
    int result = heddle_policy_set_list(which, names, (size_t)RARRAY_LEN(list));
    ALLOCV_END(buffer);
    RB_GC_GUARD(list);
    if (result < 0)
        rb_memerror();
    return Qnil;
}

/*
 * The methods that set the lists of libraries in offload/policy.h, as X(verb, list): the first row defines
 * Switch.deny_libraries.
 */
#define LISTS(X) X(deny, DENIED) X(quick, QUICK) X(allow, ALLOWED) X(know_good, KNOWN_GOOD)
#define DEFINE_LIST(verb, list) HEDDLE_DEFINE_METHOD_1(offload_##verb, , names, set_list(HEDDLE_LIST_##list, names))
#define REGISTER_LIST(verb, list) rb_define_private_method(class, #verb "_libraries", offload_##verb, 1);
LISTS(DEFINE_LIST)

static VALUE offload_hook_libc(VALUE self, VALUE list)
{
    set_list(HEDDLE_LIST_LIBC, list);
    if (!heddle_offload_unsupported())
        heddle_libc_intercept();
    return Qnil;
}

/*
 * Sets the maximum number of jobs that run at once, each on its own thread. A few more may run if they rarely wait
 * (`prompt`, see offload/job.h).
 */
static VALUE offload_limit_threads(VALUE self, VALUE limit)
{
    heddle_threads_set_limit(NUM2UINT(limit));
    return limit;
}

static VALUE offload_methods(VALUE self, VALUE quick, VALUE loading)
{
    for (long i = 0; i < RARRAY_LEN(quick); i++)
        heddle_offload_method(rb_to_id(rb_ary_entry(quick, i)), HEDDLE_METHOD_QUICK);
    for (long i = 0; i < RARRAY_LEN(loading); i++)
        heddle_offload_method(rb_to_id(rb_ary_entry(loading, i)), HEDDLE_METHOD_LOADING);
    return Qnil;
}

/*
 * Adds `change` to the number of blocks of without_offload that the calling fiber is in: 1 when it enters a block, -1
 * when it leaves one.
 */
static VALUE offload_count_inline(VALUE self, VALUE scheduler, VALUE change)
{
    heddle_fiber *fiber = heddle_fiber_current(heddle_loop_of(scheduler));
    fiber->calls_inline += (unsigned)NUM2INT(change);
    return Qnil;
}

/* Is the calling fiber in a block of without_offload? */
HEDDLE_DEFINE_METHOD(offload_refused_p, "refused?", heddle_offload_is_refused() ? Qtrue : Qfalse)

/* -- state for Ruby ------------------------------------------------------------------------------------------------ */

static void set_value(VALUE hash, const char *key, VALUE value)
{
    rb_hash_aset(hash, ID2SYM(rb_intern(key)), value);
}

static VALUE string_of(const char *value)
{
    return value ? rb_utf8_str_new_cstr(value) : Qnil;
}

HEDDLE_DEFINE_METHOD(offload_core, "core", string_of(heddle_offload_core()))

/*
 * Returns the functions that can't be intercepted in Ruby's own library: [[name, what can't be offloaded without it,
 * reason]].
 */
static VALUE offload_missing(VALUE self)
{
    VALUE list = rb_ary_new();
    const char *use, *why, *name;
    for (size_t i = 0; (name = heddle_offload_missing(i, &use, &why)); i++)
        rb_ary_push(list, rb_ary_new_from_args(3, string_of(name), string_of(use), string_of(why)));
    return list;
}

static VALUE symbol_of(const char *name)
{
    return ID2SYM(rb_intern(name));
}

/*
 * call-seq: libraries -> [{path:, class:, reason:}]
 *
 * Returns the libraries whose calls are intercepted, each with its class and the reason for the class (nil: none is
 * known). Libraries that have made no call yet are judged now, which takes some milliseconds for each library.
 */
static VALUE offload_libraries(VALUE self)
{
    VALUE list = rb_ary_new();
    for (size_t i = 0; i < heddle_offload_library_count(); i++) {
        char reason[HEDDLE_JUDGEMENT_REASON];
        const void *address = NULL;
        const char *path = heddle_offload_library(i, &address);
        heddle_library_class class = heddle_policy_class(path, address, reason, sizeof(reason));
        VALUE hash = rb_hash_new();
        set_value(hash, "path", string_of(path));
        set_value(hash, "class", symbol_of(heddle_policy_class_name(class)));
        set_value(hash, "reason", reason[0] ? string_of(reason) : Qnil);
        rb_ary_push(list, hash);
    }
    return list;
}

HEDDLE_DEFINE_METHOD(offload_library_count, "library_count", SIZET2NUM(heddle_offload_library_count()))

/*
 * call-seq: libc_libraries -> [String]
 *
 * Returns the paths of the libraries whose waits in libc are intercepted.
 */
static VALUE offload_libc_libraries(VALUE self)
{
    VALUE list = rb_ary_new();
    for (size_t i = 0; i < heddle_libc_count(); i++)
        rb_ary_push(list, string_of(heddle_libc_library(i)));
    return list;
}

/*
 * call-seq: threads -> {threads:, idle:, queued:, running:, computing:, calls:, grown:, limit:, full:, return_wait:}
 *
 * Returns numbers of offload threads and calls. +calls+, +grown+ and +full+ are counted since the process started.
 * +return_wait+ is the total time from the ends of calls until their loops have continued their fibers, in seconds.
 */
static VALUE offload_threads(VALUE self)
{
    heddle_threads_statistics now = heddle_threads_read_statistics();
    VALUE hash = rb_hash_new();
    set_value(hash, "threads", UINT2NUM(now.threads));
    set_value(hash, "idle", UINT2NUM(now.idle));
    set_value(hash, "queued", UINT2NUM(now.queued));
    set_value(hash, "running", UINT2NUM(now.running));
    set_value(hash, "computing", UINT2NUM(now.computing));
    set_value(hash, "calls", ULL2NUM(now.jobs));
    set_value(hash, "grown", ULL2NUM(now.grown));
    set_value(hash, "limit", UINT2NUM(now.limit));
    set_value(hash, "full", ULL2NUM(now.full));
    set_value(hash, "return_wait", DBL2NUM((double)heddle_offload_return_wait() / 1e9));
    return hash;
}

static VALUE describe_function(const heddle_function *function)
{
    VALUE hash = rb_hash_new();
    uintptr_t offset = (uintptr_t)function->address - (uintptr_t)function->base;
    set_value(hash, "library", string_of(function->library));
    set_value(hash, "function",
              function->symbol ? string_of(function->symbol) : rb_sprintf("+0x%lx", (unsigned long)offset));
    set_value(hash, "method", function->method ? ID2SYM((ID)function->method) : Qnil);
    set_value(hash, "calls", ULL2NUM(function->calls));
    set_value(hash, "offloaded", ULL2NUM(function->offloaded));
    set_value(hash, "wall", DBL2NUM((double)function->wall / 1e9));
    set_value(hash, "cpu", DBL2NUM((double)function->cpu / 1000));
    set_value(hash, "class", symbol_of(function->class == HEDDLE_LIBRARY_DENIED ? "denied"
                              : function->in_place                     ? "in_place"
                              : heddle_function_computes(function)   ? "computes"
                              : function->offloaded                  ? "waits"
                                                                     : "quick"));
    set_value(hash, "trust", symbol_of(heddle_policy_class_name(function->class)));
    set_value(hash, "reason", string_of(function->reason));
    return hash;
}

/*
 * Returns the functions that have blocked a loop in place and were not reported yet, each with the longest time for
 * which it has blocked a loop, in seconds.
 */
static VALUE offload_take_blocking(VALUE self)
{
    VALUE list = rb_ary_new();
    int64_t wall = 0;
    for (const heddle_function *function; (function = heddle_policy_take_unreported(&wall));)
        rb_ary_push(list, rb_assoc_new(describe_function(function), DBL2NUM((double)wall / 1e9)));
    return list;
}

/* Returns the address of a function that does nothing. Ruby code calls it by Fiddle: see fiddle_targets.h. */
HEDDLE_DEFINE_METHOD(offload_probe, "probe", ULL2NUM((uintptr_t)heddle_target_probe()))

static VALUE offload_functions(VALUE self)
{
    VALUE list = rb_ary_new();
    for (size_t i = 0; i < heddle_function_count(); i++)
        rb_ary_push(list, describe_function(heddle_function_at(i)));
    return list;
}

#ifdef HEDDLE_DEBUG
/* Heddle::Offload::Switch.delay_threads(seconds, seed), for tests: see offload/thread_delay.h. */
static VALUE offload_delay_threads(VALUE self, VALUE seconds, VALUE seed)
{
    heddle_threads_set_delay((int64_t)(NUM2DBL(seconds) * 1e9), (unsigned)NUM2ULL(seed));
    return Qnil;
}
#endif

static long count_idle_threads(void)
{
    heddle_threads_statistics statistics = heddle_threads_read_statistics();
    return statistics.idle == statistics.threads ? (long)statistics.threads : -1;
}

void Init_heddle_offload(VALUE heddle)
{
    heddle_hooks.count_idle_threads = count_idle_threads;
    VALUE offload = rb_define_module_under(heddle, "Offload");
    VALUE shown = rb_singleton_class(offload);
    heddle_calls_setup();
    VALUE class = rb_singleton_class(rb_define_module_under(offload, "Switch"));
    rb_define_private_method(class, "serve", offload_serve, 0);
#ifdef HEDDLE_DEBUG
    rb_define_private_method(class, "delay_threads", offload_delay_threads, 2);
#endif
    rb_define_private_method(class, "intercept", offload_intercept, 0);
    rb_define_private_method(class, "check_io_calls", offload_check_io_calls, 2);
    rb_define_private_method(class, "learn_open_calls", offload_learn_open_calls, 0);
    rb_define_private_method(class, "missing_functions", offload_missing, 0);
    rb_define_private_method(class, "switch", offload_switch, 1);
    LISTS(REGISTER_LIST)
    rb_define_private_method(class, "library_count", offload_library_count, 0);
    rb_define_private_method(class, "take_blocking", offload_take_blocking, 0);
    rb_define_private_method(class, "limit_threads", offload_limit_threads, 1);
    rb_define_private_method(class, "probe", offload_probe, 0);
    rb_define_private_method(class, "hook_libc", offload_hook_libc, 1);
    rb_define_private_method(class, "native_methods", offload_methods, 2);
    rb_define_private_method(class, "count_inline", offload_count_inline, 2);
    rb_define_private_method(class, "core", offload_core, 0);
    rb_define_private_method(shown, "native_functions", offload_functions, 0);
    heddle_define_operations(class);
    rb_define_method(class, "refused?", offload_refused_p, 0);
    rb_define_method(class, "enabled?", offload_enabled_p, 0);
    rb_define_method(shown, "libraries", offload_libraries, 0);
    rb_define_method(shown, "libc_libraries", offload_libc_libraries, 0);
    rb_define_method(shown, "threads", offload_threads, 0);
}
