/* Suspends and wakes fibers. */

#include "scheduler/fiber_interrupt.h"
#include "scheduler/fiber_stacks.h"
#include "scheduler/loop.h"
#include "scheduler/take_errinfo.h"
#include "selector/list.h"

/* -- slots ------------------------------------------------------------------------------------------------------- */

static void grow_slots(heddle_loop *loop)
{
    uint32_t count = loop->slots.count ? loop->slots.count * 2 : 64;
    heddle_slot *slots = realloc(loop->slots.items, count * sizeof(*slots));
    if (!slots)
        rb_memerror();
    loop->slots.items = slots;
    if (heddle_token_ring_reserve(&loop->ready, count) != 0 || heddle_token_ring_reserve(&loop->preempted, count) != 0)
        rb_memerror();
    for (uint32_t i = loop->slots.count; i < count; i++)
        slots[i] = (heddle_slot){.next_free = i + 1 < count ? i + 1 : loop->slots.first_free};
    loop->slots.first_free = loop->slots.count;
    loop->slots.count = count;
}

static void take_slot(heddle_park *park)
{
    heddle_loop *loop = park->loop;
    if (loop->slots.first_free == UINT32_MAX)
        grow_slots(loop);
    heddle_slot *slot = &loop->slots.items[loop->slots.first_free];
    park->slot = loop->slots.first_free;
    park->generation = slot->generation;
    loop->slots.first_free = slot->next_free;
    slot->park = park;
}

static void invalidate_slot(heddle_park *park)
{
    heddle_loop *loop = park->loop;
    heddle_slot *slot = &loop->slots.items[park->slot];
    slot->park = NULL;
    slot->generation++;
    slot->next_free = loop->slots.first_free;
    loop->slots.first_free = park->slot;
}

bool heddle_park_entered(const heddle_park *park)
{
    const heddle_loop *loop = park->loop;
    return park->slot < loop->slots.count && loop->slots.items[park->slot].park == park;
}

/*
 * Removes invalid tokens from the ring. Afterwards the ring has room, because its size is the number of slots, and each
 * slot has at most one valid token.
 */
static void drop_void_tokens(heddle_loop *loop, heddle_token_ring *ring)
{
    for (uint32_t n = heddle_token_ring_count(ring); n > 0; n--) {
        uint64_t token = heddle_token_ring_shift(ring);
        if (heddle_loop_find_park(loop, token))
            heddle_token_ring_push(ring, token);
    }
}

static void enqueue_park(heddle_park *park, heddle_token_ring *ring)
{
    heddle_loop *loop = park->loop;
    if (heddle_token_ring_count(ring) == ring->size)
        drop_void_tokens(loop, ring);
    heddle_token_ring_push(ring, heddle_park_token(park));
    park->queued = true;
    heddle_loop_wake(loop);
}

/* -- the account of the request ------------------------------------------------------------------------------------ */

/*
 * In ns. If fibers ran for longer than this before a poll, the time of the poll says too little about when its events
 * occurred.
 */
static const int64_t LONG_RUN = 1000 * 1000;

/*
 * Records when the awaited event occurred, for the time account. The loop notices an event only after the fibers that
 * are ready have run. If they ran for longer than LONG_RUN, the time of the event is estimated. The wait is assumed to
 * have continued during their run for as long as it had lasted before, but for at least LONG_RUN and at most half of
 * the run.
 */
static void note_ready(heddle_park *park)
{
    const heddle_loop *loop = park->loop;
    const heddle_spender *spender = &park->owner->spender;
    if (park->ready_at || !heddle_spender_counts(spender))
        return;
    park->ready_at = heddle_clock_now();
    int64_t held = loop->held_since > spender->since || !loop->held_since ? loop->held_since : spender->since;
    if (!held || park->ready_at - held < LONG_RUN)
        return;
    int64_t waited = held - spender->since, half = (park->ready_at - held) / 2;
    waited = waited > LONG_RUN ? waited : LONG_RUN;
    park->ready_at = held + (waited < half ? waited : half);
}

/* -- parks ------------------------------------------------------------------------------------------------------- */

static void deadline_passed(heddle_timer *timer)
{
    heddle_park *park = (heddle_park *)((char *)timer - offsetof(heddle_park, timer));
    if (!park->woken)
        park->timed_out = true;
    if (!park->ready_at)
        park->ready_at = timer->deadline;
    heddle_park_wake(park);
}

void heddle_park_enter(heddle_loop *loop, heddle_park *park)
{
    heddle_fiber *owner = heddle_fiber_current(loop);
    *park = (heddle_park){.loop = loop, .owner = owner, .fiber = rb_fiber_current(), .outer = owner->park};
    park->waits_for = owner->spender.waits_for ? owner->spender.waits_for : HEDDLE_SPENT_IO;
    /* Steps that can fail come before all other changes. */
    take_slot(park);
    if (park->fiber != owner->fiber)
        st_insert(loop->by_waiter, park->fiber, (st_data_t)park);
    HEDDLE_LIST_ADD(loop->parks, park);
    loop->park_count++;
    owner->park = park;
}

static void clear_idle(heddle_park *park)
{
    if (park->idle && park->queued)
        return; /* the fiber was abandoned (heddle_park_abandon_preempted) */
    if (park->idle)
        park->loop->idle--;
    park->idle = false;
}

void heddle_park_mark_idle(heddle_park *park)
{
    if (park->idle || park->woken)
        return;
    park->idle = true;
    park->loop->idle++;
}

void heddle_fiber_reserve_queue_park(heddle_fiber *fiber)
{
    fiber->queue_park = (heddle_park){.loop = fiber->loop, .owner = fiber};
    take_slot(&fiber->queue_park);
}

/*
 * Called after a switch back to the park's fiber: sets the loop's `current`. If another fiber, and not the loop, has
 * switched to this fiber by Fiber#raise or #transfer, queues that other fiber, so that it continues.
 */
void heddle_park_finish_switch(heddle_park *park)
{
    heddle_loop *loop = park->loop;
    heddle_loop_notice_fork(loop); /* in a forked child, the program may have resumed one of the parent's fibers */
    bool dispatched = loop->switching.switching_to == park;
    heddle_fiber *other = loop->current;
    heddle_fiber_stacks_unlock(loop);
    park->switched_away = false;
    park->switched_to = Qfalse;
    if (!heddle_park_entered(park))
        /*
         * the loop has discarded this park and freed its owner, because the loop was closed or this is a forked child
         */
        return;
    loop->switching.switching_to = NULL;
    loop->current = park->owner;
    park->owner->spender.timed_out = park->timed_out || (park->owner->must_raise && !park->unblocked);
    heddle_spender_resume(&park->owner->spender, park->ready_at);
    park->ready_at = 0;
    if (dispatched || !other || other == park->owner || other == &loop->implicit || other->park)
        return;
    heddle_fiber_reserve_queue_park(other);
    other->queue_park.fiber = other->fiber;
    other->queue_park.put_back = true;
    heddle_park_wake(&other->queue_park);
}

void heddle_park_leave(heddle_park *park)
{
    heddle_loop *loop = park->loop;
    heddle_loop_notice_fork(loop);
    if (!heddle_park_entered(park)) { /* the park was left already, or this is a forked child */
        heddle_fiber_stacks_unlock(loop);
        return;
    }
    bool is_queue_park = park == &park->owner->queue_park;
    if (park->switched_away)
        heddle_park_finish_switch(park);
    clear_idle(park);
    invalidate_slot(park);
    heddle_timer_heap_remove(&loop->timers, &park->timer);
    if (is_queue_park)
        return;
    st_data_t key = park->fiber;
    if (park->fiber != park->owner->fiber)
        st_delete(loop->by_waiter, &key, NULL);
    HEDDLE_LIST_REMOVE(loop->parks, park);
    loop->park_count--;
    HEDDLE_LIST_REMOVE_INNER(park->owner->park, park); /* not always the innermost park: see selector/list.h */
}

void heddle_park_set_deadline(heddle_park *park, int64_t deadline)
{
    if (deadline < 0)
        return;
    park->timer.deadline = deadline;
    park->timer.fn = deadline_passed;
    if (heddle_timer_heap_push(&park->loop->timers, &park->timer) != 0) {
        heddle_park_leave(park); /* some callers set the deadline before they call rb_ensure */
        rb_memerror();
    }
}

void heddle_park_wake(heddle_park *park)
{
    park->woken = true;
    clear_idle(park);
    note_ready(park);
    if (!park->queued)
        enqueue_park(park, &park->loop->ready);
}

void heddle_park_wake_preempted(heddle_park *park)
{
    park->woken = true;
    clear_idle(park);
    if (!park->queued)
        enqueue_park(park, &park->loop->preempted);
}

heddle_park *heddle_park_abandon_preempted(heddle_loop *loop)
{
    while (heddle_token_ring_count(&loop->preempted)) {
        heddle_park *park = heddle_loop_find_park(loop, heddle_token_ring_shift(&loop->preempted));
        if (!park)
            continue;
        park->idle = true; /* `queued` stays set, so that the park is not queued again */
        loop->idle++;
        return park;
    }
    return NULL;
}

heddle_park *heddle_park_find(heddle_loop *loop, VALUE fiber)
{
    heddle_fiber *record = heddle_fiber_find(loop, fiber);
    if (record && record->park && record->park->fiber == fiber)
        return record->park;
    st_data_t found;
    return st_lookup(loop->by_waiter, fiber, &found) ? (heddle_park *)found : NULL;
}

/* -- waiting ----------------------------------------------------------------------------------------------------- */

void heddle_fiber_keep_error(heddle_fiber *fiber)
{
    VALUE before = fiber->delivered_error ? rb_errinfo() : Qfalse;
    if (!NIL_P(before) && !heddle_is_exception(before))
        return; /* the fiber has no delivered error, or it is being killed */
    heddle_hooks.take_back_error(fiber);
    rb_set_errinfo(before); /* the caller may be about to raise the exception that was in errinfo */
}

static void switch_away(heddle_park *park)
{
    heddle_loop *loop = park->loop;
    if (!heddle_park_entered(park))
        rb_raise(rb_eRuntimeError,
                 "this fiber can't continue: its scheduler is closed, or belongs to the process that forked this one");
    heddle_fiber_keep_error(park->owner);
    heddle_park *next = heddle_fiber_take_parent_park(park->owner);
    if (!next && !heddle_loop_is_running(loop) && (park->owner == &loop->implicit || loop->run.forked_by)) {
        /*
         * The loop does not run. Either the waiting fiber was not resumed by a scheduled fiber, or this is a forked
         * child.
         */
        heddle_loop_run_until(loop, park);
        park->queued = false; /* the loop has returned here without dispatching the park's token */
        if (!park->woken)
            switch_away(park); /* raises, because this fiber is a forked child's copy of a fiber of the parent */
        return;
    }
    if (loop->fiber == park->fiber)
        rb_raise(rb_eThreadError, "this fiber runs the loop, so it can't wait");
    heddle_spender_stop(&park->owner->spender, park->waits_for);
    if (!park->idle) /* an idle fiber has no job, so no callback from native code can be on its stack */
        heddle_loop_note_switch(loop);
    park->switched_away = true;
    if (next) {
        loop->switching.switching_to = next;
        heddle_loop_advance_heartbeat(loop);
    } else {
        next = heddle_loop_choose_next(loop, park);
    }
    if (next)
        heddle_park_note_target(park, next->fiber);
    else
        loop->switching.left_by_wait = true;
    rb_fiber_transfer(next ? next->fiber : loop->fiber, 0, NULL);
    heddle_park_finish_switch(park);
}

static void defer_interrupt(heddle_park *park)
{
    if (!park->interrupt)
        return;
    heddle_interrupt_defer(park->loop, park->fiber, park->interrupt);
    park->interrupt = 0;
}

static void wait_uninterrupted(heddle_park *park)
{
    /*
     * A fiber whose park is woken but still queued (sleep 0, yield) also switches away: the other ready fibers run
     * first.
     */
    while (!park->woken || park->queued)
        switch_away(park);
}

void heddle_park_wait(heddle_park *park)
{
    if (park->owner->timeouts)
        heddle_fiber_fire_passed_timeouts(park->owner);
    if (park->owner->must_raise)
        heddle_park_raise_pending(park);
    heddle_interrupt_raise_deferred(park->loop, park->fiber);
    wait_uninterrupted(park);
    /*
     * Mutex#unlock, Queue#push and similar methods wake only one of the waiting fibers. If that fiber raised an
     * exception here, no fiber would lock the mutex or remove the item, and the other fibers would wait forever. So the
     * fiber continues, and raises the exception at its next wait.
     */
    if (park->unblocked) {
        defer_interrupt(park);
        return;
    }
    if (park->owner->must_raise)
        heddle_park_raise_pending(park);
    if (park->interrupt)
        heddle_interrupt_raise(park->interrupt);
}

void heddle_park_wait_uninterruptibly(heddle_park *park)
{
    wait_uninterrupted(park);
    defer_interrupt(park);
}

static VALUE wait_interruptibly(VALUE park)
{
    heddle_park_wait((heddle_park *)park);
    return Qnil;
}

VALUE heddle_park_leave_ensured(VALUE park)
{
    heddle_park_leave((heddle_park *)park);
    return Qnil;
}

void heddle_park_wait_and_leave(heddle_park *park)
{
    rb_ensure(wait_interruptibly, (VALUE)park, heddle_park_leave_ensured, (VALUE)park);
}

static VALUE wait_uninterruptibly(VALUE park)
{
    wait_uninterrupted((heddle_park *)park);
    return Qnil;
}

int heddle_park_wait_until_woken_and_leave(heddle_park *park)
{
    int state = 0;
    rb_protect(wait_uninterruptibly, (VALUE)park, &state);
    /*
     * The wait is not repeated if the fiber has not switched away: then switch_away itself has raised the exception,
     * and would raise it again.
     */
    while (!park->woken && park->switched_away && heddle_park_entered(park)) {
        int later = 0;
        heddle_park_finish_switch(park);
        rb_protect(wait_uninterruptibly, (VALUE)park, &later);
        if (later)
            state = later;
    }
    defer_interrupt(park);
    heddle_park_leave(park);
    return state;
}

void heddle_park_wait_completion(heddle_park *park, heddle_waiter *waiter)
{
    heddle_loop *loop = park->loop;
    int state = 0;
    rb_protect(wait_interruptibly, (VALUE)park, &state);
    while (waiter->armed && !state && !park->timed_out) {
        park->woken = false; /* the fiber was woken by something else, such as `unblock`, so it continues to wait */
        rb_protect(wait_interruptibly, (VALUE)park, &state);
    }
    if (waiter->armed)
        loop->operations->cancel(loop->selector, waiter);
    while (waiter->armed) {
        int later = 0;
        if (park->switched_away)
            heddle_park_finish_switch(park);
        park->woken = false;
        rb_protect(wait_uninterruptibly, (VALUE)park, &later);
        if (later)
            state = later;
    }
    if (state)
        rb_jump_tag(state);
}
