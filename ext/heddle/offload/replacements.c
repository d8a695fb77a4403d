#include "offload/replacements.h"

#include "offload/call.h"
#include "offload/caller.h"
#include "offload/descriptors.h"
#include "offload/fiddle_targets.h"
#include "offload/in_place.h"
#include "offload/open_calls.h"
#include "offload/threads.h"

#ifndef RB_NOGVL_OFFLOAD_SAFE
#define RB_NOGVL_OFFLOAD_SAFE 0 /* before Ruby 3.4, libraries can't mark their calls as safe */
#endif

static bool on;

bool heddle_offload_on(void)
{
    return on;
}

void heddle_offload_switch(bool to)
{
    on = to;
}

/* -- methods ------------------------------------------------------------------------------------------------------- */

static st_table *methods; /* the kind of each method */

void heddle_offload_method(ID method, heddle_method_kind kind)
{
    if (!methods)
        methods = st_init_numtable();
    st_insert(methods, (st_data_t)method, (st_data_t)kind);
}

/* -- one call ------------------------------------------------------------------------------------------------------ */

void *heddle_timed_call_run(void *data)
{
    heddle_timed_call *call = data;
    call->began = heddle_clock_now();
    void *result = call->function(call->data);
    call->ended = heddle_clock_now();
    return result;
}

/* If a call in place takes longer than this (ns), it counts as a stall of its function, which is reported. */
static const int64_t BLOCKING_NS = 20 * 1000 * 1000;

void heddle_timed_call_record(heddle_function *known, const heddle_timed_call *call)
{
    int saved = errno;
    int64_t wall = call->ended - call->began;
    if (call->ended)
        heddle_function_ran(known, false, wall, -1);
    if (call->ended && known->in_place && wall > BLOCKING_NS)
        heddle_function_report_stall(known, wall);
    errno = saved;
}

heddle_function *heddle_function_of_call(void *function)
{
    heddle_function *known = heddle_function_record(function);
    if (!known->method)
        known->method = rb_frame_this_func();
    return known;
}

bool heddle_function_is_inline_in_ruby(const heddle_function *known, const void *data)
{
    st_data_t kind = HEDDLE_METHOD_ORDINARY;
    if (methods)
        st_lookup(methods, (st_data_t)rb_frame_this_func(), &kind);
    if (kind == HEDDLE_METHOD_LOADING)
        return true;
    return known->pace <= HEDDLE_QUICK_IN_RUBY_NS &&
           (kind == HEDDLE_METHOD_QUICK || heddle_open_call_never_waits(known->address, data));
}

/*
 * Does the call close a descriptor that other calls use? Then it must run in place: it must not be queued behind those
 * calls. `data` of Ruby's closing function points to the descriptor. If IO#close calls any other function, the value
 * that is read here is not a descriptor; at worst, the call of that function runs in place, too.
 */
static bool is_close_with_waiters(const void *data)
{
    return data && rb_frame_this_func() == rb_intern("close") && heddle_descriptor_in_use(*(const int *)data);
}

/*
 * Must the call of an extension run in place? A library may mark a call as safe for any thread (RB_NOGVL_OFFLOAD_SAFE).
 * Such a call may be offloaded unless its library is on the list of denied libraries.
 */
static bool is_inline_in_extension(const heddle_function *known, int flags)
{
    if (known->in_place && (known->class == HEDDLE_LIBRARY_DENIED || !(flags & RB_NOGVL_OFFLOAD_SAFE)))
        return true;
    return known->quick && known->calls && known->pace <= HEDDLE_QUICK_NS;
}

/*
 * Runs the call on this thread. If `loop` is not NULL, the fiber's time limits end the call. For native calls of Ruby
 * itself, `loop` is NULL: those that run in place are quick.
 */
static void *call_in_place(heddle_loop *loop, heddle_function *known, heddle_timed_call *call,
                           rb_unblock_function_t *unblock, void *unblock_data, int flags)
{
    if (loop && !heddle_in_place_begin(loop, flags)) {
        errno = 0; /* as Ruby does */
        return NULL;
    }
    void *result = loop ? heddle_in_place_run(loop, heddle_timed_call_run, call, unblock, unblock_data, flags)
                        : rb_nogvl(heddle_timed_call_run, call, unblock, unblock_data, flags);
    heddle_timed_call_record(known, call);
    if (loop)
        heddle_in_place_end(loop, flags);
    return result;
}

static void *call_without_gvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock,
                              void *unblock_data, int flags, bool by_ruby)
{
    heddle_loop *loop = on ? heddle_offload_find_loop() : NULL;
    if (!loop || (by_ruby && !(flags & RB_NOGVL_OFFLOAD_SAFE))) {
        /* in a block of without_offload, Ruby must not call the scheduler's hook blocking_operation_wait either */
        if (on && (flags & RB_NOGVL_OFFLOAD_SAFE) && heddle_offload_is_refused())
            flags &= ~RB_NOGVL_OFFLOAD_SAFE;
        return rb_nogvl(function, data, unblock, unblock_data, flags);
    }
    heddle_function *known = heddle_function_of_call((void *)function), *target = NULL;
    bool in_place = by_ruby ? heddle_function_is_inline_in_ruby(known, data) || is_close_with_waiters(data)
                            : is_inline_in_extension(known, flags);
    if (!by_ruby && known->class != HEDDLE_LIBRARY_DENIED && heddle_is_fiddle_function(known)) {
        target = heddle_target_find(known, data);
        in_place = !target || target->class == HEDDLE_LIBRARY_RUBYS || is_inline_in_extension(target, 0);
        if (target && !target->method)
            target->method = known->method;
        known = target ? target : known;
    }
    if (!in_place) {
        heddle_job job = {
            .function = function,
            .data = data,
            .unblock = (heddle_unblock *)unblock,
            .unblock_data = unblock_data,
            .core = heddle_function_is_ruby(known),
            .prompt = by_ruby,
        };
        heddle_call_kind kind = flags & RB_NOGVL_INTR_FAIL ? HEDDLE_CALL_IS_SKIPPED : HEDDLE_CALL_ENDS_EARLY;
        if (heddle_offload_run(loop, &job, known, kind))
            return job.result;
    }
    heddle_timed_call call = {.function = function, .data = data};
    return call_in_place(by_ruby ? NULL : loop, known, &call, unblock, unblock_data, flags & ~RB_NOGVL_OFFLOAD_SAFE);
}

/* -- replacements of imported functions ---------------------------------------------------------------------- */

void *heddle_replaced_nogvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock, void *unblock_data,
                             int flags)
{
    return call_without_gvl(function, data, unblock, unblock_data, flags, false);
}

void *heddle_replaced_without_gvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock,
                                   void *unblock_data)
{
    return call_without_gvl(function, data, unblock, unblock_data, 0, false);
}

void *heddle_replaced_without_gvl2(void *(*function)(void *), void *data, rb_unblock_function_t *unblock,
                                    void *unblock_data)
{
    return call_without_gvl(function, data, unblock, unblock_data, RB_NOGVL_INTR_FAIL, false);
}

void *heddle_replaced_with_gvl(void *(*function)(void *), void *data)
{
    heddle_job *job = heddle_threads_current();
    return job ? heddle_threads_call_back(job, function, data) : heddle_in_place_call_back(function, data);
}

void *heddle_replaced_ruby_nogvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock,
                                 void *unblock_data, int flags)
{
    heddle_open_calls_note(function, data);
    return call_without_gvl(function, data, unblock, unblock_data, flags, true);
}

/*
 * A job that is not a core function gets here when, for example, an allocation of the extension starts a garbage
 * collection. Then the callback runs here, on the job's thread.
 */
void *heddle_replaced_ruby_with_gvl(void *(*function)(void *), void *data)
{
    heddle_job *job = heddle_threads_current();
    return job && job->core ? heddle_threads_call_back(job, function, data) : heddle_in_place_call_back(function, data);
}

/*
 * Also raises exceptions that were postponed for the fiber: a caller that repeats an interrupted call relies on that.
 */
void heddle_replaced_check_ints(void)
{
    heddle_offload_raise_postponed();
    rb_thread_check_ints();
}
