#include "scheduler/early_unblock.h"

#include "scheduler/frame_names.h"

#include <ruby/debug.h>

/* At this size, entries of ended fibers are dropped before another one is added. */
enum { DROP_ENDED_FROM = 64 };

/* How many frames are searched for the method that asked to sleep: instrumented hooks lie between. */
enum { FRAMES = 16 };

static int drop_ended(VALUE fiber, VALUE blocker, VALUE data)
{
    return RTEST(rb_fiber_alive_p(fiber)) ? ST_CONTINUE : ST_DELETE;
}

void heddle_early_unblock_record(heddle_loop *loop, VALUE fiber, VALUE blocker)
{
    if (!rb_obj_is_fiber(fiber))
        return;
    if (!loop->early_unblocks)
        loop->early_unblocks = rb_funcall(rb_hash_new(), rb_intern("compare_by_identity"), 0);
    if (RHASH_SIZE(loop->early_unblocks) >= DROP_ENDED_FROM)
        rb_hash_foreach(loop->early_unblocks, drop_ended, Qnil);
    rb_hash_aset(loop->early_unblocks, fiber, blocker);
}

static bool has_early_unblocks(const heddle_loop *loop)
{
    return loop->early_unblocks && RHASH_SIZE(loop->early_unblocks);
}

bool heddle_early_unblock_consume(heddle_loop *loop, VALUE blocker)
{
    if (!has_early_unblocks(loop))
        return false;
    VALUE fiber = rb_fiber_current();
    if (rb_hash_lookup2(loop->early_unblocks, fiber, Qundef) != blocker)
        return false;
    rb_hash_delete(loop->early_unblocks, fiber);
    return true;
}

static bool called_by_kernel_sleep(void)
{
    VALUE frames[FRAMES];
    int lines[FRAMES];
    int count = rb_profile_frames(0, FRAMES, frames, lines);
    for (int i = 0; i < count; i++) {
        if (heddle_frame_name_is(rb_profile_frame_method_name(frames[i]), "sleep"))
            return heddle_frame_name_is(rb_profile_frame_classpath(frames[i]), "Kernel");
    }
    return false;
}

bool heddle_early_unblock_consume_asleep(heddle_loop *loop)
{
    if (!has_early_unblocks(loop) || rb_hash_delete(loop->early_unblocks, rb_fiber_current()) == Qnil)
        return false;
    return !called_by_kernel_sleep();
}
