#include "offload/imports.h"

#include "offload/descriptors.h"
#include "native_code/import_table.h"
#include "offload/io_calls.h"
#include "offload/libc_hooks.h"
#include "offload/policy.h"
#include "offload/replacements.h"

#include <dlfcn.h>
#include <ruby/thread.h>

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

/* If any library was unloaded, forgets all libraries, because another one may now be loaded at the same address. */
static void forget_unloaded(void)
{
    static uint64_t unloaded;
    uint64_t now = heddle_objects_count().unloaded;
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
        if (libraries[i].base == object->base && strcmp(libraries[i].path, object->path) == 0)
            return true;
    }
    return false;
}

static void remember_library(const heddle_object *object, bool intercepted)
{
    library *more = realloc(libraries, (library_count + 1) * sizeof(*more));
    char *path = strdup(object->path);
    if (more)
        libraries = more;
    if (more && path)
        libraries[library_count++] = (library){.base = object->base, .path = path, .intercepted = intercepted};
    else
        free(path); /* out of memory: the object is examined again at the next call */
}

/* -- Ruby's own library -------------------------------------------------------------------------- */

/*
 * A function that Ruby's own library calls. `use` is what can't be offloaded if the function is not intercepted.
 * `missing` is the reason why the function is not intercepted, or NULL.
 */
typedef struct {
    heddle_import import;
    const char *use, *missing;
} core_function;

static core_function core_functions[] = {
    {{"rb_nogvl", (void *)rb_nogvl, (void *)heddle_replaced_ruby_nogvl}, "opening and reading files and folders", NULL},
    {{"rb_thread_call_with_gvl", (void *)rb_thread_call_with_gvl, (void *)heddle_replaced_ruby_with_gvl},
     "callbacks of offloaded calls", NULL},
    {{"dlopen", NULL, (void *)hooked_dlopen}, "libraries that are loaded later", NULL},
    {{"close", (void *)close, (void *)heddle_descriptor_close}, "closing files that calls wait on", NULL},
};
enum { CORE_FUNCTIONS = sizeof(core_functions) / sizeof(core_functions[0]) };
static const char IO_CALLS[] = "rb_thread_io_blocking_call";
static const char *io_calls_missing; /* the reason why calls on a descriptor are not intercepted, or NULL */

static const char OFF[] = "switched off by HEDDLE_OFFLOAD_IMPORTS=off";
static const char LEFT_ALONE[] = "excluded by HEDDLE_OFFLOAD_IMPORTS";
static const char NOT_FOUND[] = "Ruby's import table has no entry for it";
static const char REFUSED[] = "the system does not allow Heddle to change Ruby's import table";

/* Has the user excluded this function from interception, by HEDDLE_OFFLOAD_IMPORTS=-name,-name? */
static bool is_left_alone(const char *name)
{
    const char *list = getenv("HEDDLE_OFFLOAD_IMPORTS");
    size_t length = strlen(name);
    for (const char *at = list; at && (at = strstr(at, name)); at += length) {
        if (at > list && at[-1] == '-' && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

/*
 * Intercepts those of the functions that the user has not excluded. Returns the number of import-table entries that now
 * point to replacements, or -1 if the system does not allow the change.
 */
static int intercept_each(const heddle_object *object, const heddle_import *imports, size_t count)
{
    heddle_import wanted[8];
    size_t number = 0;
    for (size_t i = 0; i < count && number < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (!is_left_alone(imports[i].name))
            wanted[number++] = imports[i];
    }
    return heddle_object_intercept(object, wanted, number);
}

/*
 * Intercepts one function, and returns the same number as intercept_each. Sets `*why` to NULL, or to the reason why the
 * function is not intercepted.
 */
static int intercept_core_function(const heddle_object *object, const heddle_import *import, const char **why)
{
    int intercepted = intercept_each(object, import, 1);
    *why = intercepted > 0               ? NULL
           : is_left_alone(import->name) ? LEFT_ALONE
           : intercepted < 0             ? REFUSED
                                         : NOT_FOUND;
    return intercepted;
}

static void intercept_ruby(const heddle_object *object)
{
    bool refused = false;
    /*
     * counts intercepted functions of Ruby itself; a statically linked Ruby has no entries for them, and imports only
     * functions of libc
     */
    int own = 0;
    for (int i = 0; i < CORE_FUNCTIONS; i++) {
        core_function *each = &core_functions[i];
        int intercepted = intercept_core_function(object, &each->import, &each->missing);
        refused |= intercepted < 0;
        own += intercepted > 0 && strncmp(each->import.name, "rb_", 3) == 0;
    }
    size_t count;
    const heddle_import *io_calls = heddle_io_call_imports(&count);
    if (count && !heddle_io_calls_missing()) {
        bool intercepted = intercept_core_function(object, io_calls, &io_calls_missing) > 0;
        if (intercepted)
            intercept_each(object, io_calls + 1, count - 1);
        own += intercepted;
    }
    core = own       ? NULL
           : refused ? REFUSED
                     : "Ruby's calls of its own functions can't be intercepted (is Ruby linked statically?)";
}

const char *heddle_offload_missing(size_t index, const char **use, const char **why)
{
    size_t found = 0;
    if (core)
        return NULL; /* none of Ruby's own functions is intercepted: heddle_offload_core returns the reason */
    for (int i = 0; i < CORE_FUNCTIONS; i++) {
        const core_function *each = &core_functions[i];
        if (each->missing && found++ == index) {
            *use = each->use;
            *why = each->missing;
            return each->import.name;
        }
    }
    *use = "file locks and fsync";
    *why = io_calls_missing ? io_calls_missing : heddle_io_calls_missing();
    return *why && found == index ? IO_CALLS : NULL;
}

static bool restore_io_calls(heddle_object *object, void *data)
{
    size_t count;
    const heddle_import *imports = heddle_io_call_imports(&count);
    for (size_t i = 0; i < count; i++) {
        heddle_import back = {imports[i].name, imports[i].replacement, imports[i].original};
        heddle_object_intercept(object, &back, 1);
    }
    return false;
}

void heddle_offload_check_io_calls(VALUE file, VALUE expected)
{
    if (core || io_calls_missing || !heddle_io_calls_check(file, expected))
        return;
    pthread_mutex_lock(&intercepting);
    heddle_objects_each(restore_io_calls, NULL);
    pthread_mutex_unlock(&intercepting);
}

static bool intercept_object(heddle_object *object, void *data)
{
    const heddle_import extension[] = {
        {"rb_nogvl", (void *)rb_nogvl, (void *)heddle_replaced_nogvl},
        {"rb_thread_call_without_gvl", (void *)rb_thread_call_without_gvl, (void *)heddle_replaced_without_gvl},
        {"rb_thread_call_without_gvl2", (void *)rb_thread_call_without_gvl2, (void *)heddle_replaced_without_gvl2},
        {"rb_thread_call_with_gvl", (void *)rb_thread_call_with_gvl, (void *)heddle_replaced_with_gvl},
    };
    const heddle_import interrupts[] = {
        {"rb_thread_check_ints", (void *)rb_thread_check_ints, (void *)heddle_replaced_check_ints},
    };
    /* dlopen is intercepted only in fiddle, ffi and Ruby's own library (core_functions). */
    const heddle_import loader[] = {{"dlopen", NULL, (void *)hooked_dlopen}};
    const char *const loaders[] = {"fiddle.", "ffi_c."};
    /*
     * Heddle's own library is never intercepted, because code that the loop runs without the GVL must not wait for the
     * loop.
     */
    if (heddle_object_contains(object, (void *)intercept_object) || is_known_library(object))
        return false;
    if (heddle_object_contains(object, (void *)rb_nogvl)) {
        intercept_ruby(object);
        remember_library(object, false);
        return false;
    }
    int intercepted = intercept_each(object, extension, sizeof(extension) / sizeof(extension[0]));
    size_t count;
    const heddle_import *io_calls = heddle_io_call_imports(&count);
    if (!heddle_io_calls_missing() && !is_left_alone(IO_CALLS))
        intercepted += intercept_each(object, io_calls, count);
    if (intercepted > 0)
        heddle_object_intercept(object, interrupts, 1);
    if (heddle_library_listed(object->path, loaders, sizeof(loaders) / sizeof(loaders[0])))
        intercept_each(object, loader, 1);
    remember_library(object, intercepted > 0);
    return false;
}

const char *heddle_offload_unsupported(void)
{
    const char *wish = getenv("HEDDLE_OFFLOAD_IMPORTS");
    return wish && strcmp(wish, "off") == 0 ? OFF : heddle_imports_unsupported();
}

void heddle_offload_intercept(void)
{
    const char *unsupported = heddle_offload_unsupported();
    if (unsupported) {
        core = unsupported;
        return;
    }
    heddle_policy_set_ruby((void *)rb_nogvl);
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
