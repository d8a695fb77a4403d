/* One run of a loop: repeats ticks until only idle fibers are left, or until the fiber that runs the loop is woken. */

#include "scheduler/fiber_stacks.h"
#include "scheduler/foreign_return.h"
#include "scheduler/loop.h"

typedef struct {
    heddle_loop *loop;
    heddle_park *until;
    /*
     * in a forked child: the scheduled fiber that called fork, which now runs the loop on its own stack; otherwise NULL
     */
    heddle_fiber *outer;
    VALUE outer_fiber;
    bool watched; /* this run has begun to watch the loop (heddle_loop_begin_watch), so it must end that */
} loop_run;

static VALUE repeat_ticks(VALUE data)
{
    loop_run *run = (loop_run *)data;
    heddle_loop *loop = run->loop;
    if (run->until) {
        do {
            heddle_loop_tick(loop);
            if (run->until->one_tick)
                heddle_park_wake(run->until);
            /*
             * The fiber that runs the loop has called fork without a block. In the child it has no job left and waits
             * for another one, but no fiber remains that could give it one. So this process, which the program should
             * have ended, ends here.
             */
            if (loop->run.forked_by && run->until->idle && !heddle_loop_has_live_fiber(loop))
                rb_exit(EXIT_SUCCESS);
        } while (!run->until->woken && heddle_park_entered(run->until));
    } else {
        while (heddle_loop_has_live_fiber(loop))
            heddle_loop_tick(loop);
    }
    return Qnil;
}

static VALUE run_ticks(VALUE data)
{
    heddle_loop *loop = ((loop_run *)data)->loop;
    int state;
    do {
        rb_protect(repeat_ticks, data, &state);
        if (!state)
            return Qnil;
        heddle_foreign_raise(loop, &state);
    } while (!state);
    rb_jump_tag(state);
}

/* Sets the loop's state after a run. In a forked child there may be no selector. */
static void leave_run(loop_run *run)
{
    heddle_loop *loop = run->loop;
    heddle_loop_state next = loop->selector ? HEDDLE_LOOP_OPEN : HEDDLE_LOOP_UNOPENED;
    if (!heddle_loop_is_closed(loop) && loop->state != next)
        heddle_loop_enter(loop, next);
}

static VALUE end_run(VALUE data)
{
    loop_run *run = (loop_run *)data;
    run->loop->fiber = run->outer_fiber;
    leave_run(run);
    run->loop->current = run->outer;
    run->loop->run.runs_in_fiber = 0;
    heddle_fiber_stacks_unlock(run->loop);
    run->loop->run.until = NULL;
    run->loop->preempt.ending = false;
    run->loop->switching.ending = Qfalse;
    run->loop->switching.switching_to = NULL;
    atomic_store(&run->loop->sleeping, 0);
    if (run->watched)
        heddle_loop_end_watch(run->loop);
    return Qnil;
}

void heddle_loop_run_until(heddle_loop *loop, heddle_park *park)
{
    bool watched = heddle_loop_begin_watch(loop); /* may raise an interrupt, so it comes before all changes */
    loop_run run = {.loop = loop,
                    .until = park,
                    .outer = loop->current,
                    .outer_fiber = loop->fiber,
                    .watched = watched};
    loop->fiber = rb_fiber_current();
    heddle_loop_enter(loop, HEDDLE_LOOP_RUNNING);
    loop->run.until = park;
    loop->switching.next_unblocked = NULL;
    loop->run.runs_in_fiber = run.outer ? 1 : 0;
    rb_ensure(run_ticks, (VALUE)&run, end_run, (VALUE)&run);
}

void heddle_loop_run(heddle_loop *loop)
{
    heddle_loop_open(loop);
    if (heddle_loop_is_running(loop))
        rb_raise(rb_eThreadError, "this loop is already running");
    heddle_loop_run_until(loop, NULL);
}
