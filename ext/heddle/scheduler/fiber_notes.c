#include "scheduler/fiber_notes.h"

/* If there are at least this many notes, the notes of ended fibers are removed before another note is added. */
enum { DROP_ENDED_FROM = 64 };

static int drop_ended(VALUE fiber, VALUE note, VALUE data)
{
    return RTEST(rb_fiber_alive_p(fiber)) ? ST_CONTINUE : ST_DELETE;
}

void heddle_fiber_notes_put(VALUE *notes, VALUE fiber, VALUE note)
{
    if (!*notes)
        *notes = rb_funcall(rb_hash_new(), rb_intern("compare_by_identity"), 0);
    if (RHASH_SIZE(*notes) >= DROP_ENDED_FROM)
        rb_hash_foreach(*notes, drop_ended, Qnil);
    rb_hash_aset(*notes, fiber, note);
}
