#ifndef HEDDLE_FIBER_NOTES_H
#define HEDDLE_FIBER_NOTES_H

#include <ruby.h>

/*
 * A Hash, made when it is first needed, of one note a Fiber. Programs that keep a loop for long write few notes, and
 * seldom read them: what a fiber leaves behind is dropped when a later note is written.
 */

/* The newest note of a fiber counts. With the GVL, from any thread; the caller marks *notes. */
void heddle_fiber_notes_put(VALUE *notes, VALUE fiber, VALUE note);

static inline bool heddle_fiber_notes_any(VALUE notes)
{
    return notes && RHASH_SIZE(notes);
}

#endif
