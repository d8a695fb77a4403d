/* The hooks block, unblock, kernel_sleep and yield, and the methods park and unpark, which higher layers call. */

#include "scheduler/early_unblock.h"
#include "scheduler/frame_names.h"
#include "scheduler/ruby_hooks.h"
#include "scheduler/loop.h"
#include "scheduler/wait_in_place.h"

#include <ruby/debug.h>

/*
 * Suspends the calling fiber. Returns true if it was woken, and false if the timeout (ns; < 0: none) has passed. With a
 * timeout of 0, the other ready fibers run once, and the result is false.
 */
static bool park_for(heddle_loop *loop, int64_t timeout, bool blocked, bool one_tick, heddle_spent part)
{
    heddle_park park;
    heddle_park_enter(loop, &park);
    park.one_tick = one_tick;
    park.blocked = blocked;
    heddle_park_waits_for(&park, part);
    if (timeout == 0)
        heddle_park_wake(&park);
    else if (timeout > 0)
        heddle_park_set_deadline(&park, heddle_deadline_after(timeout));
    heddle_park_wait_and_leave(&park);
    return timeout != 0 && !park.timed_out;
}

/*
 * Converts a timeout in seconds to ns. Ruby passes the timeout of Queue#pop or Thread#join unchecked: a negative one
 * has passed already, and one that is too large for int64_t never passes.
 */
static int64_t block_duration(VALUE timeout)
{
    if (NIL_P(timeout))
        return -1;
    double seconds = rb_num2dbl(timeout); /* Thread#join accepts any object with to_f */
    if (seconds < 0)
        return 0;
    return seconds < 9e9 ? heddle_parse_duration(DBL2NUM(seconds)) : -1;
}

/*
 * Is this the frame of Mutex#sleep or ConditionVariable#wait? Since Ruby 4.0, ConditionVariable#wait calls the C
 * function of Mutex#sleep directly, so that Mutex#sleep has no frame.
 */
static bool is_mutex_sleep(VALUE frame)
{
    VALUE name = rb_profile_frame_method_name(frame), owner = rb_profile_frame_classpath(frame);
    return (heddle_frame_name_is(name, "sleep") && heddle_frame_name_is(owner, "Thread::Mutex")) ||
           (heddle_frame_name_is(name, "wait") && heddle_frame_name_is(owner, "Thread::ConditionVariable"));
}

/*
 * Was this hook called by Mutex#sleep or ConditionVariable#wait? Skips the innermost frames: those of the hook, of
 * methods of the same name that wrap it, and of kernel_sleep, which may still be there if an exception has ended the
 * sleep. The next frame is the caller's.
 */
static bool is_in_mutex_sleep(void)
{
    enum { FRAMES = 8 };
    VALUE frames[FRAMES];
    int lines[FRAMES];
    int count = rb_profile_frames(0, FRAMES, frames, lines);
    for (int i = 0; i < count; i++) {
        VALUE name = rb_profile_frame_method_name(frames[i]);
        if (!heddle_frame_name_is(name, "block") && !heddle_frame_name_is(name, "kernel_sleep"))
            return is_mutex_sleep(frames[i]);
    }
    return false;
}

/* The part of the request's time account (account.h) that a sleep counts as. */
static heddle_spent sleep_part(const heddle_loop *loop, int64_t timeout)
{
    const heddle_fiber *fiber = loop->current;
    if (timeout < 0 || !fiber || !heddle_spender_counts(&fiber->spender) || is_in_mutex_sleep())
        return HEDDLE_SPENT_LOCK;
    return HEDDLE_SPENT_SLEEP;
}

static VALUE lock_mutex(VALUE mutex)
{
    return RTEST(rb_mutex_trylock(mutex)) ? mutex : rb_mutex_lock(mutex);
}

/*
 * Waits for the Mutex that Mutex#sleep locks again before it returns. The caller of Mutex#sleep unlocks the Mutex
 * later, so no exception may be raised before the fiber has locked it. Heddle's own exceptions are raised at the next
 * wait. Fiber#raise and Fiber#kill, however, raise in this hook, and Ruby then does not lock the Mutex. So the hook
 * itself locks the Mutex; if it has to wait for that, this function is called again.
 */
static void park_to_lock_again(heddle_loop *loop, VALUE mutex)
{
    heddle_park park;
    heddle_park_enter(loop, &park);
    park.blocked = true;
    heddle_park_waits_for(&park, HEDDLE_SPENT_LOCK);
    int state = heddle_park_wait_until_woken_and_leave(&park);
    if (!state)
        return;
    if (park.woken) {
        int later = 0;
        rb_protect(lock_mutex, mutex, &later);
        if (later)
            state = later;
    }
    rb_jump_tag(state);
}

/*
 * Is the object a Mutex? Does not check its class, because Ruby's internal Mutexes, such as those of `require`, have
 * none.
 */
static bool is_mutex(VALUE blocker)
{
    return RB_TYPE_P(blocker, T_DATA) && RTYPEDDATA_P(blocker) &&
           strcmp(RTYPEDDATA_TYPE(blocker)->wrap_struct_name, "mutex") == 0;
}

typedef struct {
    heddle_park park;
    VALUE mutex;
    bool ended;
} mutex_wait;

static VALUE wait_for_unlock(VALUE data)
{
    mutex_wait *self = (mutex_wait *)data;
    heddle_park_wait(&self->park);
    self->ended = true;
    return Qnil;
}

/*
 * Mutex#unlock wakes only one of the waiting fibers. If Fiber#kill or Fiber#raise ends that fiber's wait before it
 * locks the Mutex, the other fibers would wait forever. So this function then locks and unlocks the Mutex, which wakes
 * another fiber.
 */
static VALUE pass_unlock_on(VALUE data)
{
    mutex_wait *self = (mutex_wait *)data;
    bool left = self->park.unblocked && !self->ended;
    heddle_park_leave(&self->park);
    if (left && RTEST(rb_mutex_trylock(self->mutex)))
        rb_mutex_unlock(self->mutex);
    return Qnil;
}

static void park_for_mutex(heddle_loop *loop, VALUE mutex)
{
    mutex_wait self = {.mutex = mutex};
    heddle_park_enter(loop, &self.park);
    self.park.blocked = true;
    heddle_park_waits_for(&self.park, HEDDLE_SPENT_LOCK);
    rb_ensure(wait_for_unlock, (VALUE)&self, pass_unlock_on, (VALUE)&self);
}

/*
 * call-seq: block(blocker, timeout = nil) -> true or false
 *
 * Waits until #unblock is called for this fiber (returns true) or +timeout+ seconds have passed (returns false). Ruby
 * calls this hook for Mutex, Queue, ConditionVariable, Thread#join and similar methods.
 */
static VALUE scheduler_block(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 1, 2);
    heddle_loop *loop = heddle_loop_get(self);
    int64_t timeout = block_duration(argc == 2 ? argv[1] : Qnil);
    if (heddle_early_unblock_consume(loop, argv[0]))
        return Qtrue;
    if (timeout < 0 && is_mutex(argv[0])) {
        if (is_in_mutex_sleep())
            park_to_lock_again(loop, argv[0]);
        else
            park_for_mutex(loop, argv[0]);
        return Qtrue;
    }
    return park_for(loop, timeout, true, false, HEDDLE_SPENT_LOCK) ? Qtrue : Qfalse;
}

/*
 * call-seq: unpark(fiber) -> nil
 *
 * Wakes a fiber that waits in #park; also ends its wait in #block or #kernel_sleep. Has no effect if the fiber does not
 * wait. May be called on any thread.
 */
static VALUE scheduler_unpark(VALUE self, VALUE fiber)
{
    heddle_loop *loop = heddle_loop_of(self);
    heddle_park *park = heddle_loop_is_closed(loop) ? NULL : heddle_park_find(loop, fiber);
    if (park)
        heddle_park_wake(park);
    return Qnil;
}

/*
 * call-seq: unblock(blocker, fiber) -> nil
 *
 * Wakes a fiber that waits in #block or #kernel_sleep. If the fiber does not wait yet, its next call of #block for this
 * blocker, or of Mutex#sleep, returns at once. May be called on any thread. Never raises, and never switches fibers.
 */
static VALUE scheduler_unblock(VALUE self, VALUE blocker, VALUE fiber)
{
    heddle_loop *loop = heddle_loop_of(self);
    if (heddle_loop_is_closed(loop))
        return Qnil;
    heddle_park *park = heddle_park_find(loop, fiber);
    if (park && park->blocked) {
        park->unblocked = true;
        heddle_park_wake(park);
    } else {
        heddle_early_unblock_record(loop, fiber, blocker);
    }
    return Qnil;
}

typedef struct {
    heddle_park park;
    int64_t deadline;
} sleep_in_place;

static VALUE wait_asleep_in_place(VALUE data)
{
    sleep_in_place *self = (sleep_in_place *)data;
    heddle_wait_in_place(self->park.loop, NULL, 0, self->deadline, &self->park.woken);
    return Qnil;
}

/*
 * If the calling fiber must not switch to another one, sleeps in place (wait_in_place.h) and returns true. Otherwise
 * returns false without sleeping. Also returns false for a sleep without a duration, because another fiber of this loop
 * may have to end it.
 */
static bool sleep_without_switch(heddle_loop *loop, int64_t timeout)
{
    sleep_in_place self = {.deadline = heddle_deadline_after(timeout)};
    if (timeout < 0 || !heddle_must_wait_in_place(loop))
        return false;
    heddle_park_enter(loop, &self.park);
    self.park.blocked = true;
    rb_ensure(wait_asleep_in_place, (VALUE)&self, heddle_park_leave_ensured, (VALUE)&self.park);
    return true;
}

/*
 * call-seq: kernel_sleep(duration = nil) -> true
 *
 * Waits +duration+ seconds, or until #unblock is called for this fiber. Ruby calls this hook for Kernel#sleep,
 * Mutex#sleep and ConditionVariable#wait.
 */
static VALUE scheduler_kernel_sleep(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 0, 1);
    heddle_loop *loop = heddle_loop_get(self);
    int64_t timeout = heddle_parse_duration(argc == 1 ? argv[0] : Qnil);
    if (!heddle_early_unblock_consume_asleep(loop) && !sleep_without_switch(loop, timeout))
        park_for(loop, timeout, true, false, sleep_part(loop, timeout));
    return Qtrue;
}

/*
 * call-seq: park(timeout = nil, one_tick = false) -> true or false
 *
 * Waits until #unpark is called for this fiber (returns true) or +timeout+ seconds have passed (returns false). An
 * earlier call of #unpark has no effect. With +one_tick+, if the loop does not run, also returns (true) after its first
 * tick: it has run the ready fibers, and if none was ready then, it has waited for an event. The event's fibers run in
 * the next tick.
 */
static VALUE scheduler_park(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 0, 2);
    int64_t timeout = heddle_parse_limit(argc ? argv[0] : Qnil);
    bool one_tick = argc == 2 && RTEST(argv[1]);
    return park_for(heddle_loop_get(self), timeout, false, one_tick, HEDDLE_SPENT_LOCK) ? Qtrue : Qfalse;
}

/*
 * call-seq: yield -> nil
 *
 * Lets the other fibers that are ready run, then returns. Ruby >= 4.0 calls this hook where a pending signal can't be
 * raised.
 */
static VALUE scheduler_yield(VALUE self)
{
    heddle_loop *loop = heddle_loop_get(self);
    if (!heddle_must_wait_in_place(loop))
        park_for(loop, 0, false, false, HEDDLE_SPENT_READY);
    return Qnil;
}

void heddle_define_block_hooks(VALUE scheduler_class)
{
    rb_define_method(scheduler_class, "block", scheduler_block, -1);
    rb_define_method(scheduler_class, "unblock", scheduler_unblock, 2);
    rb_define_method(scheduler_class, "kernel_sleep", scheduler_kernel_sleep, -1);
    rb_define_method(scheduler_class, "yield", scheduler_yield, 0);
    rb_define_method(scheduler_class, "park", scheduler_park, -1);
    rb_define_method(scheduler_class, "unpark", scheduler_unpark, 1);
}
