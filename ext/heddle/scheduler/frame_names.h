#pragma once

/* Names and paths of frames as rb_profile_frame_* returns them: a String, or nil. */

#include <ruby.h>

static inline bool heddle_frame_name_begins(VALUE name, const char *beginning)
{
    return RB_TYPE_P(name, T_STRING) && (size_t)RSTRING_LEN(name) >= strlen(beginning) &&
           memcmp(RSTRING_PTR(name), beginning, strlen(beginning)) == 0;
}

static inline bool heddle_frame_name_is(VALUE name, const char *expected)
{
    return heddle_frame_name_begins(name, expected) && (size_t)RSTRING_LEN(name) == strlen(expected);
}
