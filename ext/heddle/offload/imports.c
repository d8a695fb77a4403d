#include "offload/imports.h"

#include "offload/call.h"
#include "offload/caller.h"
#include "offload/descriptors.h"
#include "offload/import_table.h"
#include "offload/in_place.h"
#include "offload/libc_hooks.h"
#include "offload/policy.h"
#include "offload/targets.h"
#include "offload/threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <ruby/fiber/scheduler.h>
#include <ruby/thread.h>
#include <ruby/version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#ifndef RB_NOGVL_OFFLOAD_SAFE
#define RB_NOGVL_OFFLOAD_SAFE 0 /* before Ruby 3.4 no library can mark its calls as safe */
#endif

/* Exported by Ruby, but in no header. Its signature changed in 4.0. */
#if defined(HAVE_RB_THREAD_IO_BLOCKING_CALL) && RUBY_API_VERSION_MAJOR < 4
#define BLOCKING_REGIONS 1
VALUE rb_thread_io_blocking_call(rb_blocking_function_t *function, void *data, int fd, int events);
VALUE rb_thread_io_blocking_region(rb_blocking_function_t *function, void *data, int fd);
#endif

static bool on;
static const void *ruby_base; /* where libruby, or the program that contains it, was loaded */

bool heddle_offload_on(void)
{
    return on;
}

void heddle_offload_switch(bool to)
{
    on = to;
}

/* -- methods ------------------------------------------------------------------------------------------------------- */

enum { METHOD_SLOTS = 512 };

static struct {
    ID method;
    heddle_method_kind kind;
} methods[METHOD_SLOTS];
static size_t method_count;

static size_t method_slot(ID method)
{
    size_t slot = (size_t)((uint64_t)method * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (METHOD_SLOTS - 1);
    while (methods[slot].method && methods[slot].method != method)
        slot = (slot + 1) & (METHOD_SLOTS - 1);
    return slot;
}

void heddle_offload_method(ID method, heddle_method_kind kind)
{
    size_t slot = method_slot(method);
    if (!methods[slot].method && ++method_count > METHOD_SLOTS / 2)
        rb_raise(rb_eArgError, "more than %d intercepted methods", METHOD_SLOTS / 2);
    methods[slot].method = method;
    methods[slot].kind = kind;
}

/* -- one call ------------------------------------------------------------------------------------------------------ */

typedef struct {
    void *(*function)(void *data);
    void *data;
    int64_t began, ended;
} timed_call;

/* Measures only the function: waiting for the GVL afterwards does not count. */
static void *run_timed(void *data)
{
    timed_call *call = data;
    call->began = heddle_clock_now();
    void *result = call->function(call->data);
    call->ended = heddle_clock_now();
    return result;
}

/* A call in place that takes longer than this (ns) is named in the report of the stall that it causes. */
static const int64_t BLOCKING_NS = 20 * 1000 * 1000;

static void note_run(heddle_function *known, const timed_call *call)
{
    int saved = errno;
    int64_t wall = call->ended - call->began;
    if (call->ended)
        heddle_function_ran(known, false, wall, -1);
    if (call->ended && known->in_place && wall > BLOCKING_NS)
        heddle_function_report_stall(known, wall);
    errno = saved;
}

static heddle_function *find_known_function(void *function)
{
    heddle_function *known = heddle_function_record(function);
    if (!known->method)
        known->method = rb_frame_this_func();
    return known;
}

static bool is_ruby_function(const heddle_function *known)
{
    return known->base == ruby_base;
}

/* Only functions on the list of quick ones run inline, and only while they are quick. */
static bool is_inline_in_ruby(const heddle_function *known)
{
    ID method = rb_frame_this_func();
    heddle_method_kind kind = method ? methods[method_slot(method)].kind : HEDDLE_METHOD_OTHER;
    return kind == HEDDLE_METHOD_LOADING || (kind == HEDDLE_METHOD_QUICK && known->pace <= HEDDLE_QUICK_NS);
}

/*
 * Does it close a descriptor that calls wait on? Then it must not queue behind them. The first argument of Ruby's
 * function points to the number; for another function of IO#close this reads some other value, and at worst runs the
 * call in place.
 */
static bool is_close_with_waiters(const void *data)
{
    return data && rb_frame_this_func() == rb_intern("close") && heddle_descriptor_in_use(*(const int *)data);
}

/* A library may mark a call as one that any thread can make. */
static bool is_inline_in_extension(const heddle_function *known, int flags)
{
    if (known->in_place && (known->class == HEDDLE_LIBRARY_DENIED || !(flags & RB_NOGVL_OFFLOAD_SAFE)))
        return true;
    return known->quick && known->calls && known->pace <= HEDDLE_QUICK_NS;
}

/*
 * Runs the call on this thread. Without a loop, time limits don't end it: Ruby's own calls that run in place are quick.
 */
static void *call_in_place(heddle_loop *loop, heddle_function *known, timed_call *call, rb_unblock_function_t *unblock,
                           void *unblock_data, int flags)
{
    if (loop && !heddle_in_place_begin(loop, flags)) {
        errno = 0; /* Ruby does the same */
        return NULL;
    }
    void *result = loop ? heddle_in_place_run(loop, run_timed, call, unblock, unblock_data, flags)
                        : rb_nogvl(run_timed, call, unblock, unblock_data, flags);
    note_run(known, call);
    if (loop)
        heddle_in_place_end(loop, flags);
    return result;
}

static void *call_without_gvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock,
                              void *unblock_data, int flags, bool by_ruby)
{
    heddle_loop *loop = on ? heddle_offload_find_loop() : NULL;
    if (!loop || (by_ruby && !(flags & RB_NOGVL_OFFLOAD_SAFE))) {
        /* Then Ruby must not call the scheduler's hook for the call either. */
        if (on && (flags & RB_NOGVL_OFFLOAD_SAFE) && heddle_offload_is_refused())
            flags &= ~RB_NOGVL_OFFLOAD_SAFE;
        return rb_nogvl(function, data, unblock, unblock_data, flags);
    }
    heddle_function *known = find_known_function((void *)function), *target = NULL;
    bool in_place = by_ruby ? is_inline_in_ruby(known) || is_close_with_waiters(data)
                            : is_inline_in_extension(known, flags);
    if (!by_ruby && known->class != HEDDLE_LIBRARY_DENIED && heddle_target_needed(known)) {
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
            .core = is_ruby_function(known),
            .prompt = by_ruby,
        };
        heddle_call_kind kind = flags & RB_NOGVL_INTR_FAIL ? HEDDLE_CALL_IS_SKIPPED : HEDDLE_CALL_ENDS_EARLY;
        if (heddle_offload_run(loop, &job, known, kind))
            return job.result;
    }
    return call_in_place(by_ruby ? NULL : loop, known, &(timed_call){.function = function, .data = data}, unblock,
                         unblock_data, flags & ~RB_NOGVL_OFFLOAD_SAFE);
}

/* -- replacements of imported functions ---------------------------------------------------------------------- */

static void *extension_nogvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock, void *unblock_data,
                             int flags)
{
    return call_without_gvl(function, data, unblock, unblock_data, flags, false);
}

static void *extension_without_gvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock,
                                   void *unblock_data)
{
    return call_without_gvl(function, data, unblock, unblock_data, 0, false);
}

static void *extension_without_gvl2(void *(*function)(void *), void *data, rb_unblock_function_t *unblock,
                                    void *unblock_data)
{
    return call_without_gvl(function, data, unblock, unblock_data, RB_NOGVL_INTR_FAIL, false);
}

static void *extension_with_gvl(void *(*function)(void *), void *data)
{
    heddle_job *job = heddle_threads_current();
    return job ? heddle_threads_call_back(job, function, data) : heddle_in_place_call_back(function, data);
}

static void *ruby_nogvl(void *(*function)(void *), void *data, rb_unblock_function_t *unblock, void *unblock_data,
                        int flags)
{
    return call_without_gvl(function, data, unblock, unblock_data, flags, true);
}

/* A garbage collection that the extension's allocation starts stays on this thread. */
static void *ruby_with_gvl(void *(*function)(void *), void *data)
{
    heddle_job *job = heddle_threads_current();
    return job && job->core ? heddle_threads_call_back(job, function, data) : heddle_in_place_call_back(function, data);
}

/* Raises the fiber's own exceptions, too: a caller that repeats an interrupted call relies on that. */
static void extension_check_ints(void)
{
    heddle_offload_raise_postponed();
    rb_thread_check_ints();
}

#ifdef BLOCKING_REGIONS

typedef struct {
    rb_blocking_function_t *function;
    void *data;
} region_call;

static void *run_region(void *data)
{
    region_call *call = data;
    return (void *)call->function(call->data);
}

static VALUE run_timed_region(void *data)
{
    return (VALUE)run_timed(data);
}

/*
 * Does File#flock unlock, or only try to lock? Such a call never waits, and must not queue behind calls that wait for
 * the lock.
 */
static bool is_lock_without_waiting(const heddle_function *known, const void *data, int fd)
{
    if (!is_ruby_function(known) || rb_frame_this_func() != rb_intern("flock"))
        return false;
    const int *arguments = data; /* flock(2)'s */
    return arguments[0] == fd && arguments[1] & (LOCK_UN | LOCK_NB);
}

/*
 * Replaces Ruby's function for calls on a descriptor. If `events` is not 0, Ruby first waits for them, by the
 * scheduler's hooks.
 */
static VALUE ruby_io_call(rb_blocking_function_t *function, void *data, int fd, int events)
{
    heddle_loop *loop = on && events == 0 ? heddle_offload_find_loop() : NULL;
    if (!loop)
        return rb_thread_io_blocking_call(function, data, fd, events);
    heddle_function *known = find_known_function((void *)function);
    /* The socket library tries first and waits only then: a call that doesn't block needs no thread. */
    bool quick = is_ruby_function(known) ? is_inline_in_ruby(known)
                                         : known->in_place || (fcntl(fd, F_GETFL) & O_NONBLOCK);
    quick = quick || is_lock_without_waiting(known, data, fd);
    region_call region = {.function = function, .data = data};
    if (!quick) {
        heddle_job job = {
            .function = run_region,
            .data = &region,
            .unblock = HEDDLE_UNBLOCK_BY_SIGNAL,
            .core = is_ruby_function(known),
            .on_descriptor = true,
            .fd = fd,
        };
        if (heddle_offload_run(loop, &job, known, HEDDLE_CALL_ENDS_EARLY))
            return (VALUE)job.result;
    }
    timed_call call = {.function = run_region, .data = &region};
    VALUE result = rb_thread_io_blocking_call(run_timed_region, &call, fd, events);
    note_run(known, &call);
    return result;
}

static VALUE ruby_io_region(rb_blocking_function_t *function, void *data, int fd)
{
    return ruby_io_call(function, data, fd, 0);
}

#endif

static void *hooked_dlopen(const char *path, int mode)
{
    void *library = dlopen(path, mode);
    int saved = errno;
    if (library)
        heddle_offload_intercept();
    errno = saved;
    return library;
}

/* -- intercepting ----------------------------------------------------------------------------- */

typedef struct {
    uintptr_t base;
    char *path;
    bool intercepted;
} library;

static pthread_mutex_t intercepting = PTHREAD_MUTEX_INITIALIZER;
static library *libraries;
static size_t library_count;
static const char NOT_TRIED[] = "not tried yet";
static const char *core = NOT_TRIED;

/* Forgets all intercepted objects once one of them is gone: another one may have been loaded at its address. */
static void forget_unloaded(void)
{
    static uint64_t unloaded;
    uint64_t now = heddle_objects_unloaded();
    if (now == unloaded)
        return;
    unloaded = now;
    heddle_policy_relocate();
    while (library_count)
        free(libraries[--library_count].path);
}

static bool is_known_library(const heddle_object *object)
{
    for (size_t i = 0; i < library_count; i++) {
        if (libraries[i].base == heddle_object_base(object) &&
            strcmp(libraries[i].path, heddle_object_path(object)) == 0)
            return true;
    }
    return false;
}

static void remember_library(const heddle_object *object, bool intercepted)
{
    library *more = realloc(libraries, (library_count + 1) * sizeof(*more));
    char *path = strdup(heddle_object_path(object));
    if (more)
        libraries = more;
    if (more && path)
        libraries[library_count++] =
            (library){.base = heddle_object_base(object), .path = path, .intercepted = intercepted};
    else
        free(path); /* the object will be visited again */
}

static void intercept_object(const heddle_object *object, void *data)
{
    const heddle_import extension[] = {
        {"rb_nogvl", (void *)rb_nogvl, (void *)extension_nogvl},
        {"rb_thread_call_without_gvl", (void *)rb_thread_call_without_gvl, (void *)extension_without_gvl},
        {"rb_thread_call_without_gvl2", (void *)rb_thread_call_without_gvl2, (void *)extension_without_gvl2},
        {"rb_thread_call_with_gvl", (void *)rb_thread_call_with_gvl, (void *)extension_with_gvl},
#ifdef BLOCKING_REGIONS
        {"rb_thread_io_blocking_call", (void *)rb_thread_io_blocking_call, (void *)ruby_io_call},
        {"rb_thread_io_blocking_region", (void *)rb_thread_io_blocking_region, (void *)ruby_io_region},
#endif
    };
    const heddle_import ruby[] = {
        {"rb_nogvl", (void *)rb_nogvl, (void *)ruby_nogvl},
        {"rb_thread_call_with_gvl", (void *)rb_thread_call_with_gvl, (void *)ruby_with_gvl},
#ifdef BLOCKING_REGIONS
        {"rb_thread_io_blocking_call", (void *)rb_thread_io_blocking_call, (void *)ruby_io_call},
        {"rb_thread_io_blocking_region", (void *)rb_thread_io_blocking_region, (void *)ruby_io_region},
#endif
    };
#ifdef BLOCKING_REGIONS
    const heddle_import closing[] = {{"close", (void *)close, (void *)heddle_descriptor_close}};
#endif
    const heddle_import interrupts[] = {
        {"rb_thread_check_ints", (void *)rb_thread_check_ints, (void *)extension_check_ints},
    };
    /* The dlopen calls of libruby, fiddle and ffi; those of other libraries are left alone. */
    const heddle_import loader[] = {{"dlopen", NULL, (void *)hooked_dlopen}};
    const char *const loaders[] = {"fiddle.", "ffi_c."};
    /* Never Heddle's own library: code that the loop runs without the GVL must not wait for the loop. */
    if (heddle_object_contains(object, (void *)intercept_object) || is_known_library(object))
        return;
    if (heddle_object_contains(object, (void *)rb_nogvl)) {
        int intercepted = heddle_object_intercept(object, ruby, sizeof(ruby) / sizeof(ruby[0]));
        /* Separately: a static Ruby imports only dlopen. */
        heddle_object_intercept(object, loader, 1);
#ifdef BLOCKING_REGIONS
        if (intercepted > 0)
            heddle_object_intercept(object, closing, 1);
#endif
        core = intercepted > 0   ? NULL
               : intercepted < 0 ? "the system refuses to change Ruby's table of functions"
                         : "Ruby calls its own functions in a way that can't be changed (a static Ruby?)";
        remember_library(object, false);
        return;
    }
    int intercepted = heddle_object_intercept(object, extension, sizeof(extension) / sizeof(extension[0]));
    if (intercepted > 0)
        heddle_object_intercept(object, interrupts, 1);
    if (heddle_library_listed(heddle_object_path(object), loaders, sizeof(loaders) / sizeof(loaders[0])))
        heddle_object_intercept(object, loader, 1);
    remember_library(object, intercepted > 0);
}

const char *heddle_offload_unsupported(void)
{
    const char *wish = getenv("HEDDLE_OFFLOAD_IMPORTS");
    return wish && strcmp(wish, "off") == 0 ? "import tables are left as they are (HEDDLE_OFFLOAD_IMPORTS=off)"
                                            : heddle_imports_unsupported();
}

void heddle_offload_intercept(void)
{
    const char *unsupported = heddle_offload_unsupported();
    if (unsupported) {
        core = unsupported;
        return;
    }
    Dl_info info = {0};
    if (!ruby_base && dladdr((void *)rb_nogvl, &info)) {
        ruby_base = info.dli_fbase;
        heddle_policy_set_ruby((void *)rb_nogvl);
    }
    pthread_mutex_lock(&intercepting);
    forget_unloaded();
    heddle_objects_each(intercept_object, NULL);
    pthread_mutex_unlock(&intercepting);
    heddle_libc_intercept();
}

const char *heddle_offload_core(void)
{
    const char *unsupported = core == NOT_TRIED ? heddle_offload_unsupported() : NULL;
    return unsupported ? unsupported : core;
}

size_t heddle_offload_library_count(void)
{
    size_t intercepted = 0;
    for (size_t i = 0; i < library_count; i++)
        intercepted += libraries[i].intercepted;
    return intercepted;
}

const char *heddle_offload_library(size_t index, const void **address)
{
    for (size_t i = 0; i < library_count; i++) {
        if (libraries[i].intercepted && index-- == 0) {
            if (address)
                *address = (const void *)libraries[i].base;
            return libraries[i].path;
        }
    }
    return NULL;
}
