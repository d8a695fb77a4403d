#include "scheduler/own_code.h"

#include "scheduler/frame_names.h"

#include <ruby/debug.h>

enum {
    FEWEST = 16, /* the number of frames that the first attempt reads */
    DEPTH = 128, /* the maximum number of frames that are read */
};

static VALUE own_paths, neutral_paths;

void heddle_own_code_set_paths(VALUE own, VALUE neutral)
{
    if (!own_paths) {
        rb_gc_register_address(&own_paths);
        rb_gc_register_address(&neutral_paths);
    }
    own_paths = rb_ary_freeze(own);
    neutral_paths = rb_ary_freeze(neutral);
}

static bool contains_path(VALUE paths, VALUE path)
{
    for (long i = 0; paths && i < RARRAY_LEN(paths); i++) {
        VALUE start = RARRAY_AREF(paths, i);
        if (RSTRING_LEN(path) >= RSTRING_LEN(start) &&
            memcmp(RSTRING_PTR(path), RSTRING_PTR(start), (size_t)RSTRING_LEN(start)) == 0)
            return true;
    }
    return false;
}

bool heddle_is_user_code(VALUE path)
{
    return !contains_path(neutral_paths, path) && !contains_path(own_paths, path);
}

/*
 * Is the method a hook that must neither switch fibers nor raise? Ruby calls such a hook while it walks through a list
 * of waiting fibers, from which a fiber that runs might remove itself.
 */
static bool is_waking_hook(VALUE frame)
{
    VALUE name = rb_profile_frame_method_name(frame);
    return (heddle_frame_name_is(name, "unblock") || heddle_frame_name_is(name, "fiber_interrupt")) &&
           heddle_frame_name_is(rb_profile_frame_classpath(frame), "Heddle::Scheduler");
}

/*
 * Finds the innermost frame that does not count as code of its caller. Returns true if that frame's code is Heddle's
 * own. The following count as code of their caller: methods in C (they have no path), except the hooks of
 * is_waking_hook; methods of Ruby's core that are written in Ruby; the standard library; Heddle's signal handlers
 * (lib/heddle/own_code.rb).
 */
bool heddle_own_code_runs(void)
{
    VALUE frames[DEPTH];
    int lines[DEPTH];
    /* rb_profile_frames of Ruby 3.3 can't skip the innermost frames, so each attempt reads them again. */
    for (int i = 0, limit = FEWEST; limit <= DEPTH; limit *= 2) {
        int count = rb_profile_frames(0, limit, frames, lines);
        for (; i < count; i++) {
            VALUE path = rb_profile_frame_path(frames[i]);
            if (NIL_P(path) && is_waking_hook(frames[i]))
                return true;
            if (RB_TYPE_P(path, T_STRING) && !contains_path(neutral_paths, path))
                return contains_path(own_paths, path);
        }
        if (count < limit)
            return false;
    }
    return false;
}
