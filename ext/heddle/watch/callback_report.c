/*
 * The callback report. It finds Ruby code that was called by a C function of a native library, such as an extension,
 * and that switches to another fiber. If the other fiber calls the same library, the two calls may mix up state that
 * the library keeps per thread. Each such place in Ruby code is reported once.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif

#include "binding.h"

#include "scheduler/native_callbacks.h"
#include "scheduler/loop.h"
#include "scheduler/own_code.h"
#include "native_code/stack_walk.h"

#include <dlfcn.h>
#include <ruby/debug.h>

enum {
    PLACES = 1024, /* the maximum number of places that are reported; waits at further places are only counted */
    UNTAKEN = 64,  /* the maximum number of reports not taken by Ruby yet; beyond it, a later wait reports the place */
    FRAMES = 256,  /* the maximum number of Ruby frames that are searched, innermost first */
    TEXT = 512,
    LIBRARIES = 64, /* the last entry counts the waits of all libraries that have no entry of their own */
};

typedef struct {
    char library[TEXT], function[TEXT], method[TEXT], place[TEXT];
} report;

static uint64_t places[PLACES]; /* hashes of the reported places */
static unsigned place_count;
static struct {
    uint64_t key; /* a hash of the path; 0: the entry is unused */
    uint64_t waits;
    char path[TEXT];
} libraries[LIBRARIES];
static report *reports; /* UNTAKEN entries, allocated when the report is enabled */
static unsigned report_count;
/* The address of the C function in which CRuby executes bytecode; 0 if it is unknown. */
static uintptr_t interpreter;

/* -- the C frames -------------------------------------------------------------------------------------------------- */

typedef struct {
    const heddle_library *library;
    uintptr_t function;
    /*
     * the number of the interpreter's C frames between `function` and report_callback; each of them runs a group of
     * Ruby frames
     */
    unsigned runs;
} callback;

static bool visit_frame(const heddle_stack_frame *frame, void *data)
{
    callback *self = data;
    if (frame->library->kind & HEDDLE_CODE_UNSWITCHABLE) {
        self->library = frame->library;
        self->function = frame->function;
        return false;
    }
    if (frame->function == interpreter)
        self->runs++;
    return true;
}

/*
 * Finds out whether the Ruby code that is about to switch fibers was called by a C function of a native library. If the
 * library's function waits by itself, through Ruby's C API, it has called no Ruby code and does not count.
 */
static bool find_callback(callback *found)
{
    uintptr_t base = heddle_stack_base();
    heddle_native_frame frame;
    if (!heddle_code_map_refresh() ||
        heddle_native_frames_inspect(HEDDLE_CODE_UNSWITCHABLE, base, &frame) != HEDDLE_FRAMES_NATIVE)
        return false;
    *found = (callback){0};
    return heddle_stack_walk(base, visit_frame, found) == HEDDLE_WALK_STOPPED && found->runs > 0;
}

/* -- the Ruby frames ----------------------------------------------------------------------------------------------- */

/*
 * Writes the library's method and the place in the user's code. Each group of Ruby frames was called by a C method,
 * whose frame is the next one outwards. The library's method is the one that called group number `runs`, counted from
 * the innermost group. Returns false if the called Ruby code is unknown, or is Heddle's or Ruby's own, such as a
 * scheduler hook.
 */
static bool describe_place(const callback *found, report *to)
{
    VALUE frames[FRAMES];
    int lines[FRAMES], count = rb_profile_frames(0, FRAMES, frames, lines);
    unsigned runs = 0;
    bool in_ruby = false, has_user_code = false;
    for (int i = 0; i < count; i++) {
        VALUE path = rb_profile_frame_path(frames[i]);
        bool is_ruby = RB_TYPE_P(path, T_STRING);
        if (!is_ruby && in_ruby && ++runs == found->runs) {
            VALUE method = rb_profile_frame_qualified_method_name(frames[i]);
            if (RB_TYPE_P(method, T_STRING))
                snprintf(to->method, sizeof(to->method), "%.*s", (int)RSTRING_LEN(method), RSTRING_PTR(method));
            return has_user_code;
        }
        in_ruby = is_ruby;
        if (!is_ruby || has_user_code || !heddle_is_user_code(path))
            continue;
        has_user_code = true;
        snprintf(to->place, sizeof(to->place), "%.*s:%d", (int)RSTRING_LEN(path), RSTRING_PTR(path), lines[i]);
    }
    return has_user_code;
}

static void describe_function(const callback *found, report *to)
{
    Dl_info info;
    snprintf(to->library, sizeof(to->library), "%s", found->library->path);
    if (dladdr((void *)found->function, &info) && info.dli_sname && (uintptr_t)info.dli_saddr == found->function)
        snprintf(to->function, sizeof(to->function), "%s", info.dli_sname);
}

/* -- places that were reported ------------------------------------------------------------------------------------- */

static uint64_t hash_text(uint64_t start, const char *text)
{
    for (; *text; text++)
        start = (start ^ (uint8_t)*text) * UINT64_C(1099511628211);
    return start;
}

static bool is_known(const report *one)
{
    uint64_t key = hash_text(hash_text(UINT64_C(14695981039346656037), one->library), one->place);
    for (unsigned i = 0; i < place_count; i++) {
        if (places[i] == key)
            return true;
    }
    if (place_count == PLACES || report_count == UNTAKEN)
        return true;
    places[place_count++] = key;
    return false;
}

static void count_wait(const char *path)
{
    uint64_t key = hash_text(UINT64_C(14695981039346656037), path) | 1;
    unsigned i = 0;
    while (i < LIBRARIES - 1 && libraries[i].key && libraries[i].key != key)
        i++;
    if (!libraries[i].key) {
        libraries[i].key = key;
        snprintf(libraries[i].path, TEXT, "%s", i == LIBRARIES - 1 ? "others" : path);
    }
    libraries[i].waits++;
}

/*
 * The hook `report_callback` (scheduler/layer_hooks.h): counts the wait, and reports its place if this is the first
 * wait there.
 */
static void report_callback(heddle_loop *loop)
{
    callback found;
    report one = {0};
    if (!loop->in_main_ractor || !find_callback(&found) || !describe_place(&found, &one))
        return;
    count_wait(found.library->path);
    describe_function(&found, &one);
    if (is_known(&one))
        return;
    reports[report_count++] = one;
    heddle_stalls_pending = true; /* the loop announces stalls and callback reports together */
}

/* -- finding the interpreter --------------------------------------------------------------------------------------- */

enum { LAYERS = 64 };

typedef struct {
    uintptr_t functions[LAYERS]; /* addresses of Ruby's C functions on the stack, innermost first */
    unsigned count;
} layers;

static layers noted_layers;

static bool visit_layer(const heddle_stack_frame *frame, void *data)
{
    layers *self = data;
    if (frame->library->kind == HEDDLE_CODE_HEDDLE)
        return self->count == 0;
    if (frame->library->kind == HEDDLE_CODE_RUBY && self->count < LAYERS)
        self->functions[self->count++] = frame->function;
    return true;
}

/* Heddle::Native.note_interpreter: notes Ruby's C functions on the stack between this function and find_interpreter. */
static VALUE native_note_interpreter(VALUE self)
{
    noted_layers.count = 0;
    if (heddle_code_map_refresh())
        heddle_stack_walk(heddle_stack_base(), visit_layer, &noted_layers);
    return Qnil;
}

static bool has_layer(const layers *where, uintptr_t function)
{
    for (unsigned i = 0; i < where->count; i++) {
        if (where->functions[i] == function)
            return true;
    }
    return false;
}

/*
 * call-seq: Heddle::Native.find_interpreter(object) { Heddle::Native.note_interpreter } -> true or false
 *
 * Finds the C function in which CRuby executes bytecode, for which there is no symbol. The function is on the stack
 * when C code calls a block or a method that is written in Ruby, but not when C code calls a method that is written in
 * C. `object.call` must call note_interpreter, as the block does. Returns whether the function was found.
 */
static VALUE native_find_interpreter(VALUE self, VALUE object)
{
    rb_yield(Qnil);
    layers block = noted_layers;
    rb_funcall(object, rb_intern("call"), 0);
    layers method = noted_layers;
    rb_funcall(self, rb_intern("note_interpreter"), 0);
    layers direct = noted_layers;
    interpreter = 0;
    for (unsigned i = block.count; i-- > 0 && !interpreter;) {
        if (has_layer(&method, block.functions[i]) && !has_layer(&direct, block.functions[i]))
            interpreter = block.functions[i];
    }
    return interpreter ? Qtrue : Qfalse;
}

/* -- methods of Ruby ----------------------------------------------------------------------------------------------- */

/*
 * Heddle::Native.report_callbacks(on): enables or disables the report. Disabling it clears the list of reported places.
 */
static VALUE native_report_callbacks(VALUE self, VALUE on)
{
    if (RTEST(on) && !reports)
        reports = ALLOC_N(report, UNTAKEN);
    heddle_reporting_callbacks = RTEST(on);
    if (!heddle_reporting_callbacks)
        place_count = report_count = 0;
    return Qnil;
}

static VALUE text_or_nil(const char *text)
{
    return *text ? rb_utf8_str_new_cstr(text) : Qnil;
}

/*
 * call-seq: Heddle::Native.take_callbacks -> Array
 *
 * Returns the reports since the last call. Each report is an Array: the library's path, the name of its C function or
 * nil, the name of the C method that called the Ruby code or nil, and the place as path:line.
 */
static VALUE native_take_callbacks(VALUE self)
{
    VALUE list = rb_ary_new();
    unsigned count = report_count;
    for (unsigned i = 0; i < count; i++) {
        const report *one = &reports[i];
        rb_ary_push(list, rb_ary_new_from_args(4, rb_utf8_str_new_cstr(one->library), text_or_nil(one->function),
                                               text_or_nil(one->method), rb_utf8_str_new_cstr(one->place)));
    }
    report_count = 0;
    return list;
}

/*
 * call-seq: Heddle::Native.callback_waits -> Hash
 *
 * Returns the number of waits in callbacks by the path of the library, as counted while the report was enabled. The key
 * "others" stands for the libraries after the first 63.
 */
static VALUE native_callback_waits(VALUE self)
{
    VALUE counts = rb_hash_new();
    for (unsigned i = 0; i < LIBRARIES && libraries[i].key; i++)
        rb_hash_aset(counts, rb_utf8_str_new_cstr(libraries[i].path), ULL2NUM(libraries[i].waits));
    return counts;
}

void Init_heddle_callback_report(VALUE heddle)
{
    heddle_hooks.report_callback = report_callback;
    VALUE native = rb_define_module_under(heddle, "Native");
    rb_define_singleton_method(native, "note_interpreter", native_note_interpreter, 0);
    rb_define_singleton_method(native, "find_interpreter", native_find_interpreter, 1);
    rb_define_singleton_method(native, "report_callbacks", native_report_callbacks, 1);
    rb_define_singleton_method(native, "take_callbacks", native_take_callbacks, 0);
    rb_define_singleton_method(native, "callback_waits", native_callback_waits, 0);
}
