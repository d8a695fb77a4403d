#pragma once

#include <ruby.h>

/*
 * A Hash from a Fiber to its note, which is a Ruby object. The Hash is created when the first note is written, because
 * notes are rare. When there are many, the notes of ended fibers are removed before another note is written.
 */

/*
 * Writes the note of a fiber, in place of its earlier one. Called with the GVL, on any thread. The caller marks *notes.
 */
void heddle_fiber_notes_put(VALUE *notes, VALUE fiber, VALUE note);

static inline bool heddle_fiber_notes_any(VALUE notes)
{
    return notes && RHASH_SIZE(notes);
}
