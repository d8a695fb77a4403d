#include "scheduler/run_queue.h"

#include "scheduler/fiber_stacks.h"
#include "scheduler/foreign_return.h"
#include "scheduler/starter.h"

/* Makes the first switch to a fiber. The switch fails if Ruby has no stack for the fiber. */
static void dispatch_new(heddle_loop *loop, heddle_park *entry)
{
    if (!RTEST(rb_fiber_alive_p(entry->fiber))) {
        loop->current = NULL;
        heddle_fiber_handle_kill(entry->owner);
        return;
    }
    VALUE error = heddle_starter_switch(loop, entry->fiber);
    if (NIL_P(error))
        return;
    loop->current = NULL;
    heddle_fiber_handle_start_failure(entry->owner, error);
}

static VALUE transfer_checked(VALUE fiber)
{
    return heddle_fiber_transfer_checked(fiber, 0, NULL);
}

/*
 * Switches to a fiber that has called #raise or #transfer of another fiber, and was queued so that it continues
 * (heddle_park_finish_switch). Ignores a FiberError: other code has switched to the fiber meanwhile, or the fiber has
 * resumed a nested fiber, which will return to it.
 */
static void dispatch_put_back(heddle_loop *loop, heddle_park *entry)
{
    int state = 0;
    heddle_park_leave(entry);
    loop->switching.switching_to = NULL;
    VALUE before = rb_errinfo(); /* not nil while the program exits */
    loop->switching.returned = rb_protect(transfer_checked, entry->fiber, &state);
    if (!state)
        return;
    if (!heddle_is_fiber_error(rb_errinfo()))
        rb_jump_tag(state);
    loop->current = NULL;
    rb_set_errinfo(before);
}

static void lock_stacks(heddle_loop *loop, heddle_park *park)
{
    int state = heddle_fiber_stacks_lock(loop);
    if (!state)
        return;
    heddle_park_wake(park); /* the switch has not been made, so the fiber is queued again */
    rb_jump_tag(state);
}

static void dispatch_token(heddle_loop *loop, uint64_t token)
{
    heddle_park *park = heddle_loop_find_park(loop, token);
    if (!park)
        return;
    if (heddle_park_returns_stack(park) || (park == &park->owner->queue_park && !park->put_back))
        lock_stacks(loop, park);
    heddle_loop_prepare_switch(loop, park);
    loop->switching.last_target = park->fiber;
    if (park != &park->owner->queue_park)
        loop->switching.returned = heddle_fiber_transfer(park->fiber);
    else if (park->put_back)
        dispatch_put_back(loop, park);
    else
        dispatch_new(loop, park);
    heddle_fiber_stacks_unlock(loop);
    heddle_foreign_return(loop);
    loop->current = NULL;
    loop->switching.switching_to = NULL;
    if (heddle_loop_forked(loop))
        heddle_loop_open(loop);
    if (loop->preempt.killed)
        heddle_hooks.raise_kill(loop);
}

/*
 * A fiber that starts a new fiber continues when the new fiber first waits or ends. If the new fiber has just ended,
 * dispatches the fiber that started it. If that fiber ends, too, dispatches the fiber that started it in turn, and so
 * on.
 */
static void dispatch_unblocked(heddle_loop *loop)
{
    while (loop->switching.next_unblocked) {
        heddle_park *park = loop->switching.next_unblocked;
        loop->switching.next_unblocked = NULL;
        if (!heddle_park_entered(park))
            continue;
        park->woken = true;
        dispatch_token(loop, heddle_park_token(park));
    }
}

static void dispatch_next(heddle_loop *loop, heddle_token_ring *ring)
{
    dispatch_token(loop, heddle_token_ring_shift(ring));
    dispatch_unblocked(loop);
}

/*
 * Each time that a preempted fiber is chosen to run, a fiber whose request is within its quantum (quantum.h) is
 * preferred, except every fourth time: then the first in the queue runs. So requests that compute for long make
 * progress under any load.
 */
static const unsigned PREEMPTED_SHARE = 4;

/*
 * Chooses the preempted fiber that runs next, and moves it to the front of the ring. Prefers the first fiber whose
 * request is within its quantum, among the first `count` fibers: such a request should end before requests that compute
 * for long continue.
 */
static void choose_preempted(heddle_loop *loop, uint32_t count)
{
    heddle_token_ring *ring = &loop->preempted;
    uint32_t total = heddle_token_ring_count(ring), chosen = 0;
    if (++loop->preempted_turns % PREEMPTED_SHARE == 0)
        return;
    for (uint32_t i = 0; i < count && i < total; i++) {
        heddle_park *park = heddle_loop_find_park(loop, heddle_token_ring_at(ring, i));
        if (park && heddle_fiber_has_quantum_left(park->owner)) {
            chosen = i;
            break;
        }
    }
    uint64_t token = heddle_token_ring_at(ring, chosen);
    for (; chosen > 0; chosen--)
        *heddle_token_ring_slot(ring, chosen) = heddle_token_ring_at(ring, chosen - 1);
    *heddle_token_ring_slot(ring, 0) = token;
}

void heddle_loop_run_ready(heddle_loop *loop)
{
    /*
     * Runs only fibers that are queued now. Fibers that become ready or are preempted during this tick run in the next
     * one, so that the loop polls for events in between.
     */
    uint32_t preempted = heddle_token_ring_count(&loop->preempted);
    dispatch_unblocked(loop); /* an exception may have ended the last tick before its call of dispatch_unblocked */
    loop->left = heddle_token_ring_count(&loop->ready);
    while (loop->left > 0 && heddle_token_ring_count(&loop->ready)) {
        loop->left--;
        dispatch_next(loop, &loop->ready);
    }
    loop->left = 0;
    if (!preempted || !heddle_token_ring_count(&loop->preempted))
        return;
    /*
     * an interrupt is raised here, in the loop's fiber; if the preempted fiber raised it, it would have to be forwarded
     * to the loop
     */
    rb_thread_check_ints();
    heddle_hooks.end_preempted(loop);
    if (!heddle_token_ring_count(&loop->preempted))
        return;
    choose_preempted(loop, preempted);
    dispatch_next(loop, &loop->preempted);
}

static bool has_ready_in(const heddle_loop *loop, const heddle_token_ring *ring, bool (*test)(const heddle_park *park))
{
    for (uint32_t i = 0; i < heddle_token_ring_count(ring); i++) {
        const heddle_park *park = heddle_loop_find_park(loop, heddle_token_ring_at(ring, i));
        if (park && test(park))
            return true;
    }
    return false;
}

bool heddle_loop_has_ready(const heddle_loop *loop, bool (*test)(const heddle_park *park))
{
    return has_ready_in(loop, &loop->ready, test) || has_ready_in(loop, &loop->preempted, test);
}
