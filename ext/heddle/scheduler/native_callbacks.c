#include "scheduler/native_callbacks.h"

#include "binding.h"
#include "scheduler/wait_in_place.h"

#include <ruby/thread.h>

uintptr_t heddle_stack_base(void)
{
    VALUE *end = NULL;
    size_t length = ruby_stack_length(&end);
    return (uintptr_t)(end + length);
}

heddle_frames_verdict heddle_native_callbacks_inspect(heddle_loop *loop)
{
    heddle_native_frame found;
    if (!loop->in_main_ractor || !heddle_code_map_refresh())
        return HEDDLE_FRAMES_UNKNOWN;
    heddle_frames_verdict verdict = heddle_native_frames_inspect(HEDDLE_CODE_UNSWITCHABLE, heddle_stack_base(), &found);
    /*
     * The stacks of the fibers that have resumed this one can't be read. For example, the fiber that uses an Enumerator
     * has resumed the Enumerator's fiber.
     */
    if (verdict == HEDDLE_FRAMES_CLEAR && loop->current && loop->current->fiber != rb_fiber_current())
        return HEDDLE_FRAMES_UNKNOWN;
    return verdict;
}

/* -- libraries that are not re-entrant ----------------------------------------------------------------------------- */

/*
 * $LOADED_FEATURES, to which Ruby adds the file of each extension that it loads. `features_seen` is the length that
 * this Array had when is_any_listed_loaded last searched the loaded libraries, or -1 if the function must search them
 * again.
 */
static VALUE features;
static long features_seen = -1;
static bool listed_loaded;

static bool is_any_listed_loaded(void)
{
    if (__builtin_expect(RARRAY_LEN(features) != features_seen, 0)) {
        features_seen = RARRAY_LEN(features);
        listed_loaded = heddle_code_map_refresh() && heddle_code_map_has(HEDDLE_CODE_NOT_REENTRANT);
    }
    return listed_loaded;
}

bool heddle_native_callbacks_pinned(heddle_loop *loop, heddle_native_frame *found)
{
    if (!loop->in_main_ractor || !is_any_listed_loaded())
        return false;
    return heddle_native_frames_inspect(HEDDLE_CODE_NOT_REENTRANT, heddle_stack_base(), found) != HEDDLE_FRAMES_CLEAR;
}

/* -- methods of Ruby ----------------------------------------------------------------------------------------------- */

static void list_libraries(heddle_code_kind kind, VALUE names)
{
    Check_Type(names, T_ARRAY);
    long count = RARRAY_LEN(names);
    VALUE buffer;
    const char **copies = ALLOCV_N(const char *, buffer, count + 1);
    for (long i = 0; i < count; i++) {
        VALUE name = RARRAY_AREF(names, i);
        copies[i] = StringValueCStr(name);
    }
    bool listed = heddle_code_map_list(kind, copies, (size_t)count);
    ALLOCV_END(buffer);
    if (!listed)
        rb_memerror();
}

/*
 * call-seq: Heddle::Native.list_libraries(reentrant, not_reentrant) -> nil
 *
 * Sets two lists of extensions. While a fiber runs a callback from an extension in +reentrant+, it may be preempted.
 * While it runs a callback from an extension in +not_reentrant+, it may not even switch to another fiber when it waits.
 * The lists are Arrays of String: ends of paths, without the file's suffix, such as "io/console".
 */
static VALUE native_list_libraries(VALUE self, VALUE reentrant, VALUE not_reentrant)
{
    list_libraries(HEDDLE_CODE_REENTRANT, reentrant);
    list_libraries(HEDDLE_CODE_NOT_REENTRANT, not_reentrant);
    features_seen = -1;
    return Qnil;
}

/*
 * call-seq: wait_in_place? -> true or false
 *
 * Must the calling fiber wait without switching to another fiber? Yes if a library that is not re-entrant has called
 * the Ruby code that waits.
 */
HEDDLE_DEFINE_METHOD(scheduler_wait_in_place_p, "wait_in_place?",
                     heddle_must_wait_in_place(heddle_loop_of(self)) ? Qtrue : Qfalse)

void Init_heddle_native_callbacks(VALUE heddle)
{
    heddle_code_map_set_ruby((void *)rb_nogvl);
    features = rb_gv_get("$LOADED_FEATURES");
    rb_gc_register_mark_object(features);
    VALUE native = rb_define_module_under(heddle, "Native");
    rb_define_singleton_method(native, "list_libraries", native_list_libraries, 2);
    rb_define_method(rb_path2class("Heddle::Scheduler"), "wait_in_place?", scheduler_wait_in_place_p, 0);
}
