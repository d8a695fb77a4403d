#include "scheduler/early_unblock.h"

#include "scheduler/fiber_notes.h"
#include "scheduler/frame_names.h"

#include <ruby/debug.h>

/* How many frames are searched for the method that sleeps. Frames of methods that wrap the hook may come before it. */
enum { FRAMES = 16 };

void heddle_early_unblock_record(heddle_loop *loop, VALUE fiber, VALUE blocker)
{
    if (rb_obj_is_fiber(fiber))
        heddle_fiber_notes_put(&loop->early_unblocks, fiber, blocker);
}

/*
 * Does this code run within the hook kernel_sleep, called by a method that a wake-up may end early? If a subclass
 * defines the hook by define_method, the hook's frame may have another name. So a frame of Mutex#sleep or
 * ConditionVariable#wait is enough.
 */
static bool is_wakeable_sleep(void)
{
    VALUE frames[FRAMES];
    int lines[FRAMES];
    int count = rb_profile_frames(0, FRAMES, frames, lines);
    bool in_hook = false;
    for (int i = 0; i < count; i++) {
        VALUE name = rb_profile_frame_method_name(frames[i]);
        if (heddle_frame_name_is(name, "kernel_sleep"))
            in_hook = true;
        else if (heddle_frame_name_is(name, "sleep"))
            return heddle_frame_name_is(rb_profile_frame_classpath(frames[i]), "Thread::Mutex");
        else if (heddle_frame_name_is(name, "wait") &&
                 heddle_frame_name_is(rb_profile_frame_classpath(frames[i]), "Thread::ConditionVariable"))
            return true;
    }
    return in_hook;
}

bool heddle_early_unblock_consume(heddle_loop *loop, VALUE blocker)
{
    if (!heddle_fiber_notes_any(loop->early_unblocks))
        return false;
    VALUE fiber = rb_fiber_current(), kept = rb_hash_lookup2(loop->early_unblocks, fiber, Qundef);
    if (kept == Qundef || (kept != blocker && !is_wakeable_sleep()))
        return false;
    rb_hash_delete(loop->early_unblocks, fiber);
    return true;
}

bool heddle_early_unblock_consume_asleep(heddle_loop *loop)
{
    return heddle_fiber_notes_any(loop->early_unblocks) &&
           rb_hash_delete(loop->early_unblocks, rb_fiber_current()) != Qnil && is_wakeable_sleep();
}
