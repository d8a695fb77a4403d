/* Records stalls, which are ticks of a loop that ran too long: see stalls.h. */

#include "watch/stalls.h"

#include "scheduler/own_code.h"
#include "scheduler/take_errinfo.h"
#include "watch/lost_time.h"
#include "watch/watch.h"

#include <ruby/debug.h>

enum {
    KEPT = 64,   /* the maximum number of stalls that wait for Ruby; beyond that, the oldest ones are discarded */
    FRAMES = 32, /* the maximum number of frames of a backtrace */
};

typedef struct {
    int64_t began, length; /* CLOCK_MONOTONIC, ns */
    heddle_activity activity;
    char request[HEDDLE_HEARTBEAT_REQUEST];
    char place[HEDDLE_HEARTBEAT_PLACE];
    /* the library in whose callback a fiber waited in place (see note_callback), or "" */
    char library[HEDDLE_HEARTBEAT_LIBRARY];
} stall;

static stall stalls[KEPT];
static unsigned next_stall, noted;

/* -- the place of a stall ---------------------------------------------------------------------------------------- */

/* A backtrace with one line for each frame: path, line, label. */
typedef struct {
    char *bytes;
    size_t size, used;
    bool has_user_code; /* some frame is neither Heddle's nor Ruby's own code */
} place_text;

static void add_frame(place_text *to, VALUE path, int line, VALUE label)
{
    if (!RB_TYPE_P(path, T_STRING))
        return; /* a method in C has no path; the frame of its caller follows */
    size_t room = to->size - to->used;
    int written = snprintf(to->bytes + to->used, room, "%.*s:%d:%.*s\n", (int)RSTRING_LEN(path), RSTRING_PTR(path),
                           line, RB_TYPE_P(label, T_STRING) ? (int)RSTRING_LEN(label) : 0,
                           RB_TYPE_P(label, T_STRING) ? RSTRING_PTR(label) : "");
    if (written < 0 || (size_t)written >= room) {
        to->bytes[to->used] = '\0';
        return;
    }
    to->used += (size_t)written;
    to->has_user_code = to->has_user_code || heddle_is_user_code(path);
}

static void add_frames_of_thread(place_text *to, VALUE thread)
{
    VALUE frames[FRAMES];
    int lines[FRAMES];
    int count = rb_profile_thread_frames(thread, 0, FRAMES, frames, lines);
    for (int i = 0; i < count; i++)
        add_frame(to, rb_profile_frame_path(frames[i]), lines[i], rb_profile_frame_base_label(frames[i]));
}

static VALUE add_frames_of_fiber(VALUE data)
{
    VALUE *arguments = (VALUE *)data;
    place_text *to = (place_text *)arguments[0];
    volatile VALUE locations =
        rb_funcall(arguments[1], rb_intern("backtrace_locations"), 2, INT2FIX(0), INT2FIX(FRAMES));
    for (long i = 0; RB_TYPE_P(locations, T_ARRAY) && i < RARRAY_LEN(locations); i++) {
        VALUE location = RARRAY_AREF(locations, i);
        add_frame(to, rb_funcall(location, rb_intern("path"), 0), NUM2INT(rb_funcall(location, rb_intern("lineno"), 0)),
                  rb_funcall(location, rb_intern("base_label"), 0));
    }
    return Qnil;
}

/*
 * Writes a backtrace of the thread. Returns false if it shows no user code.
 *
 * If `apart` is true and the calling fiber runs no user code, writes the backtrace of the loop's current fiber instead.
 * Perhaps Heddle runs the calling fiber on behalf of the current one, for example to start a thread. The backtrace of
 * another fiber allocates objects, and takes longer.
 */
static bool describe_place(heddle_loop *loop, VALUE thread, bool apart, char *bytes, size_t size)
{
    place_text text = {.bytes = bytes, .size = size};
    int state = 0;
    bytes[0] = '\0';
    add_frames_of_thread(&text, thread);
    if (text.has_user_code || !apart || !loop->current || loop->current == &loop->implicit ||
        loop->current->fiber == rb_fiber_current())
        return text.has_user_code;
    text.used = 0;
    VALUE arguments[] = {(VALUE)&text, loop->current->fiber};
    rb_protect(add_frames_of_fiber, (VALUE)arguments, &state);
    if (state)
        heddle_take_errinfo();
    return text.has_user_code;
}

static void describe_request(heddle_loop *loop, char *text, size_t size)
{
    heddle_fiber *fiber = loop->current;
    size_t length = fiber && fiber->describe ? fiber->describe(fiber, text, size - 1) : 0;
    text[length] = '\0';
}

static void record_sighting(heddle_heartbeat *heartbeat, VALUE thread, bool own)
{
    bool first = heartbeat->sighted == HEDDLE_UNSEEN;
    if (first)
        describe_request(heartbeat->loop, heartbeat->request, sizeof(heartbeat->request));
    heartbeat->sighted = describe_place(heartbeat->loop, thread, own && first, heartbeat->place,
                                        sizeof(heartbeat->place))
                             ? HEDDLE_SEEN
                             : HEDDLE_GLIMPSED;
}

void heddle_stalls_record_sighting(VALUE thread, heddle_heartbeat *own)
{
    if (!(heddle_watch_purposes() & HEDDLE_WATCH_STALLS))
        return;
    for (heddle_heartbeat *heartbeat = atomic_load(&heddle_heartbeats); heartbeat; heartbeat = heartbeat->next) {
        uintptr_t whose = atomic_load(&heartbeat->thread);
        if (!whose || heartbeat->sighted == HEDDLE_SEEN || atomic_load(&heartbeat->verdict) != HEDDLE_LATE)
            continue;
        if (heartbeat->sighted == HEDDLE_GLIMPSED && heartbeat != own)
            continue; /* only a sample by the loop's own thread could show other code, and sampling delays the loop */
        heddle_activity activity = heddle_gvl_activity(atomic_load(&heartbeat->gvl));
        if (heartbeat == own || activity == HEDDLE_ACTIVITY_NATIVE_NO_GVL)
            record_sighting(heartbeat, (VALUE)whose, heartbeat == own);
        else if (activity == HEDDLE_ACTIVITY_NONE)
            record_sighting(heartbeat, thread, false); /* the late loop waits for the GVL, which this thread holds */
    }
}

/*
 * Called before the current fiber waits in place. The fiber runs a callback of this library, so it blocks the thread
 * instead of switching to another fiber. If this causes a stall, the report of the stall names the library.
 */
static void note_callback(heddle_loop *loop, const char *library)
{
    heddle_heartbeat *heartbeat = loop->watch.heartbeat;
    if (!heartbeat || !(heddle_watch_purposes() & HEDDLE_WATCH_STALLS))
        return;
    heartbeat->callback_until = heddle_clock_now();
    snprintf(heartbeat->callback_library, sizeof(heartbeat->callback_library), "%s", library);
    describe_request(loop, heartbeat->callback_request, sizeof(heartbeat->callback_request));
    describe_place(loop, loop->thread, false, heartbeat->callback_place, sizeof(heartbeat->callback_place));
}

/* Called after each poll(2) of a wait in place. */
static void prolong_callback(heddle_loop *loop)
{
    if (loop->watch.heartbeat)
        loop->watch.heartbeat->callback_until = heddle_clock_now();
}

/* -- the end of a stall ------------------------------------------------------------------------------------------ */

static heddle_activity find_most_frequent(const heddle_heartbeat *heartbeat)
{
    uint32_t found[HEDDLE_ACTIVITIES], unanswered = atomic_load_explicit(&heartbeat->unanswered, memory_order_relaxed);
    for (int activity = 0; activity < HEDDLE_ACTIVITIES; activity++)
        found[activity] = atomic_load_explicit(&heartbeat->found[activity], memory_order_relaxed);
    bool native = unanswered > HEDDLE_HEARTBEAT_MAX_UNANSWERED;
    found[native ? HEDDLE_ACTIVITY_NATIVE_GVL : HEDDLE_ACTIVITY_RUBY] += unanswered;
    heddle_activity most = HEDDLE_ACTIVITY_NATIVE_NO_GVL;
    for (int activity = 1; activity < HEDDLE_ACTIVITIES; activity++) {
        if (found[activity] > found[most])
            most = (heddle_activity)activity;
    }
    return most;
}

/*
 * Returns the lost time (lost_time.h) of the heartbeat that ends at `now`, in ns. If the watch thread is overdue, it
 * has not measured the last part, so that part is added.
 */
static int64_t measure_lost_time(const heddle_heartbeat *heartbeat, int64_t now)
{
    int64_t due = atomic_load(&heddle_watch_due),
            lost = atomic_load_explicit(&heartbeat->late_lost, memory_order_relaxed);
    return due <= now - HEDDLE_LOST_TOLERANCE ? lost + now - due : lost;
}

static void record_stall(heddle_loop *loop, bool idle)
{
    heddle_heartbeat *heartbeat = loop->watch.heartbeat;
    stall *one = &stalls[next_stall++ % KEPT];
    one->activity = find_most_frequent(heartbeat);
    one->began = heartbeat->late_since;
    /*
     * If the loop has been idle since the late tick, the time of the tick's end is unknown. Assumes that the tick ended
     * when the watch thread found it late.
     */
    bool ended = idle && one->activity != HEDDLE_ACTIVITY_NONE;
    int64_t over = ended ? heartbeat->late_at : heddle_clock_now();
    one->length = over - one->began - measure_lost_time(heartbeat, over);
    if (one->length < 0)
        one->length = 0;
    memcpy(one->request, heartbeat->request, sizeof(one->request));
    memcpy(one->place, heartbeat->place, sizeof(one->place));
    if (heartbeat->sighted == HEDDLE_UNSEEN)
        one->request[0] = one->place[0] = '\0';
    one->library[0] = '\0';
    /* if another activity was more frequent, a wait in a callback is not the main cause */
    if (one->activity == HEDDLE_ACTIVITY_NATIVE_NO_GVL && heartbeat->callback_until >= heartbeat->late_since) {
        memcpy(one->library, heartbeat->callback_library, sizeof(one->library));
        memcpy(one->request, heartbeat->callback_request, sizeof(one->request));
        memcpy(one->place, heartbeat->callback_place, sizeof(one->place));
    }
    if (noted < KEPT)
        noted++;
    heddle_stalls_pending = true;
}

void heddle_loop_note_late(heddle_loop *loop, bool idle)
{
    heddle_heartbeat *heartbeat = loop->watch.heartbeat;
    if (!loop->watch.unreported)
        record_stall(loop, idle);
    heartbeat->sighted = HEDDLE_UNSEEN;
    atomic_store(&heartbeat->verdict, HEDDLE_IN_TIME);
}

/* Calls Ruby code, which fetches and reports the recorded stalls. */
static void announce_stalls(heddle_loop *loop)
{
    int state = 0;
    heddle_stalls_pending = false;
    heddle_call_module_protected("Heddle::Stalls", rb_intern("noted"), 1, &loop->scheduler, &state);
    if (state)
        heddle_take_errinfo(); /* an error in the report must not end the loop */
}

/* -- methods of Ruby --------------------------------------------------------------------------------------------- */

static VALUE cause_symbol(heddle_activity activity)
{
    static const char *const names[] = {"native", "native_with_gvl", "ruby", "waiting_for_gvl",
                                         "garbage_collection"};
    return ID2SYM(rb_intern(names[activity]));
}

/*
 * call-seq: Heddle::Native.take_stalls -> Array
 *
 * Returns the stalls since the last call, oldest first. Each stall is an Array: the cause, the time of its beginning
 * (CLOCK_MONOTONIC) and its length in seconds, the request, the backtrace, and the path of the library in whose
 * callback the loop waited in place. A text is empty if it is unknown.
 */
static VALUE stalls_take(VALUE self)
{
    VALUE list = rb_ary_new();
    for (; noted > 0; noted--) {
        const stall *one = &stalls[(next_stall - noted) % KEPT];
        rb_ary_push(list, rb_ary_new_from_args(6, cause_symbol(one->activity), DBL2NUM((double)one->began / 1e9),
                                               DBL2NUM((double)one->length / 1e9), rb_utf8_str_new_cstr(one->request),
                                               rb_utf8_str_new_cstr(one->place), rb_utf8_str_new_cstr(one->library)));
    }
    return list;
}

/*
 * call-seq: Heddle::Native.leave_unreported(scheduler) -> nil
 *
 * Stops recording stalls of this scheduler's loop, which serves no requests of the application. While the application's
 * loop holds the GVL, both loops are late, but the stall is recorded for the application's loop alone.
 */
static VALUE loop_exclude_from_reports(VALUE self, VALUE scheduler)
{
    heddle_loop_of(scheduler)->watch.unreported = true;
    return Qnil;
}

static bool is_watching(void)
{
    return heddle_watch_purposes() != 0;
}

void Init_heddle_stalls(VALUE native)
{
    heddle_hooks.is_watching = is_watching;
    heddle_hooks.acquire_heartbeat = heddle_heartbeat_acquire;
    heddle_hooks.release_heartbeat = heddle_heartbeat_release;
    heddle_hooks.rouse_watch = heddle_watch_rouse;
    heddle_hooks.announce_stalls = announce_stalls;
    heddle_hooks.begin_wait_in_place = note_callback;
    heddle_hooks.prolong_wait_in_place = prolong_callback;
    rb_define_singleton_method(native, "leave_unreported", loop_exclude_from_reports, 1);
    rb_define_singleton_method(native, "take_stalls", stalls_take, 0);
}
