#include "watch/stalls.h"

#include "watch/watch.h"

#include <ruby/debug.h>
#include <string.h>

enum {
    KEPT = 64,   /* stalls that nobody took; then the oldest is forgotten */
    FRAMES = 32, /* of a backtrace */
};

typedef struct {
    int64_t began, length; /* CLOCK_MONOTONIC, ns */
    heddle_doing doing;
    uintptr_t loop; /* which one: a number, and no pointer to be followed */
    char request[HEDDLE_BEAT_REQUEST];
    char place[HEDDLE_BEAT_PLACE];
} stall;

bool heddle_stalls_untold;

static stall stalls[KEPT];
static unsigned next_stall, noted;
static ID id_noted;

/* -- where it is ------------------------------------------------------------------------------------------------- */

/* A line a frame: path, line, label. */
static void describe_place(VALUE thread, char *text, size_t size)
{
    VALUE frames[FRAMES];
    int lines[FRAMES];
    size_t used = 0;
    int count = rb_profile_thread_frames(thread, 0, FRAMES, frames, lines);
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        VALUE path = rb_profile_frame_path(frames[i]), label = rb_profile_frame_base_label(frames[i]);
        if (!RB_TYPE_P(path, T_STRING))
            continue; /* a method in C: its caller is next */
        int written = snprintf(text + used, size - used, "%.*s:%d:%.*s\n", (int)RSTRING_LEN(path), RSTRING_PTR(path),
                               lines[i], RB_TYPE_P(label, T_STRING) ? (int)RSTRING_LEN(label) : 0,
                               RB_TYPE_P(label, T_STRING) ? RSTRING_PTR(label) : "");
        if (written < 0 || (size_t)written >= size - used) {
            text[used] = '\0';
            return;
        }
        used += (size_t)written;
    }
}

static void describe_request(heddle_loop *loop, char *text, size_t size)
{
    heddle_fiber *fiber = loop->current;
    size_t length = fiber && fiber->describe ? fiber->describe(fiber, text, size - 1) : 0;
    text[length] = '\0';
}

static void sight(heddle_beat *beat, VALUE thread)
{
    describe_request(beat->loop, beat->request, sizeof(beat->request));
    describe_place(thread, beat->place, sizeof(beat->place));
    beat->sighted = true;
}

void heddle_stalls_sight(VALUE thread, heddle_beat *own)
{
    if (!(heddle_watch_wants() & HEDDLE_WATCH_STALLS))
        return;
    for (heddle_beat *beat = atomic_load(&heddle_beats); beat; beat = beat->next) {
        uintptr_t whose = atomic_load(&beat->thread);
        if (!whose || beat->sighted || atomic_load(&beat->verdict) != HEDDLE_LATE)
            continue;
        heddle_doing doing = heddle_watch_gvl(atomic_load(&beat->gvl));
        if (beat == own || doing == HEDDLE_DOING_NATIVE_FREE)
            sight(beat, (VALUE)whose);
        else if (doing == HEDDLE_DOING_NOTHING)
            sight(beat, thread); /* it is this one that it waits for */
    }
}

/* -- when it is over --------------------------------------------------------------------------------------------- */

static heddle_doing most(const heddle_beat *beat)
{
    uint32_t found[HEDDLE_DOINGS];
    memcpy(found, beat->found, sizeof(found));
    found[beat->unanswered > HEDDLE_BEAT_PATIENCE ? HEDDLE_DOING_NATIVE_HELD : HEDDLE_DOING_RUBY] += beat->unanswered;
    heddle_doing most = HEDDLE_DOING_NATIVE_FREE;
    for (int doing = 1; doing < HEDDLE_DOINGS; doing++) {
        if (found[doing] > found[most])
            most = (heddle_doing)doing;
    }
    return most;
}

void heddle_loop_was_late(heddle_loop *loop, bool idle)
{
    heddle_beat *beat = loop->beat;
    stall *one = &stalls[next_stall++ % KEPT];
    one->doing = most(beat);
    one->loop = (uintptr_t)loop;
    one->began = beat->late_since;
    /* What came to its end just as the watch found it has been followed by a wait for events since. */
    bool ended = idle && one->doing != HEDDLE_DOING_NOTHING;
    one->length = (ended ? beat->late_at : heddle_now()) - one->began;
    memcpy(one->request, beat->request, sizeof(one->request));
    memcpy(one->place, beat->place, sizeof(one->place));
    if (!beat->sighted)
        one->request[0] = one->place[0] = '\0';
    beat->sighted = false;
    atomic_store(&beat->verdict, HEDDLE_IN_TIME);
    if (noted < KEPT)
        noted++;
    heddle_stalls_untold = true;
}

static VALUE announce(VALUE loop)
{
    return rb_funcall(rb_path2class("Heddle::Stalls"), id_noted, 1, ((heddle_loop *)loop)->scheduler);
}

void heddle_stalls_announce(heddle_loop *loop)
{
    int state = 0;
    heddle_stalls_untold = false;
    rb_protect(announce, (VALUE)loop, &state);
    if (state)
        rb_set_errinfo(Qnil); /* to report one must not end the loop */
}

/* -- what Ruby sees ---------------------------------------------------------------------------------------------- */

static VALUE cause(heddle_doing doing)
{
    static const char *const names[] = {"native", "native_with_gvl", "ruby", "waiting_for_gvl",
                                         "garbage_collection"};
    return ID2SYM(rb_intern(names[doing]));
}

/*
 * call-seq: Heddle::Native.take_stalls -> Array
 *
 * Those that were noted since it was last called, oldest first: [cause, begin and length in seconds, request, place,
 * number of the loop].
 */
static VALUE stalls_take(VALUE self)
{
    VALUE list = rb_ary_new();
    for (; noted > 0; noted--) {
        const stall *one = &stalls[(next_stall - noted) % KEPT];
        rb_ary_push(list, rb_ary_new_from_args(6, cause(one->doing), DBL2NUM((double)one->began / 1e9),
                                               DBL2NUM((double)one->length / 1e9), rb_utf8_str_new_cstr(one->request),
                                               rb_utf8_str_new_cstr(one->place), ULL2NUM(one->loop)));
    }
    return list;
}

/*
 * call-seq: Heddle::Native.loop_number(scheduler) -> Integer
 *
 * What stalls name its loop by. A loop may have the number of one that is gone.
 */
static VALUE loop_number(VALUE self, VALUE scheduler)
{
    return ULL2NUM((uintptr_t)heddle_loop_of(scheduler));
}

void Init_heddle_stalls(VALUE native)
{
    rb_define_singleton_method(native, "loop_number", loop_number, 1);
    id_noted = rb_intern("noted");
    rb_define_singleton_method(native, "take_stalls", stalls_take, 0);
}
