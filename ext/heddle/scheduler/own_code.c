#include "scheduler/own_code.h"

#include <ruby/debug.h>

enum {
    FRAMES = 16, /* frames read at a time */
    DEPTH = 128, /* frames read at most */
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

bool heddle_own_code_excludes(VALUE path)
{
    return !contains_path(neutral_paths, path) && !contains_path(own_paths, path);
}

/*
 * Methods in C have no path. Methods of Ruby itself that are written in Ruby, and of its standard library, count as
 * their caller's code.
 */
bool heddle_own_code_runs(void)
{
    VALUE frames[FRAMES];
    int lines[FRAMES];
    for (int start = 0; start < DEPTH; start += FRAMES) {
        int count = rb_profile_frames(start, FRAMES, frames, lines);
        for (int i = 0; i < count; i++) {
            VALUE path = rb_profile_frame_path(frames[i]);
            if (RB_TYPE_P(path, T_STRING) && !contains_path(neutral_paths, path))
                return contains_path(own_paths, path);
        }
        if (count < FRAMES)
            return false;
    }
    return false;
}
