#pragma once

#include <ruby.h>

/*
 * A Hash with one note for each Fiber, made when it is first needed. Notes are rare, and read even less often. The note
 * of a fiber that has ended is dropped when a later note is written.
 */

/*
 * Writes the note of a fiber, which replaces an earlier one. Called with the GVL, on any thread. The caller marks
 * *notes.
 */
void heddle_fiber_notes_put(VALUE *notes, VALUE fiber, VALUE note);

static inline bool heddle_fiber_notes_any(VALUE notes)
{
    return notes && RHASH_SIZE(notes);
}
