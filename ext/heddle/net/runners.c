#include "net/runner.h"

#include "net/sockets.h"
#include "scheduler/take_errinfo.h"

/* -- those at rest ------------------------------------------------------------------------------------------------ */

static void set_trim_timer(heddle_sockets *sockets);

void heddle_runners_add_resting(heddle_runner *runner)
{
    heddle_runners *runners = &runner->sockets->runners;
    runner->next = runners->resting;
    runners->resting = runner;
    runners->resting_count++;
    set_trim_timer(runner->sockets);
}

static heddle_runner *take_resting_runner(heddle_runners *runners)
{
    heddle_runner *runner = runners->resting;
    if (!runner)
        return NULL;
    runners->resting = runner->next;
    runners->resting_count--;
    if (runners->least_resting > runners->resting_count)
        runners->least_resting = runners->resting_count;
    return runner;
}

void heddle_runners_remove_resting(heddle_runner *runner)
{
    heddle_runners *runners = &runner->sockets->runners;
    for (heddle_runner **link = &runners->resting; *link; link = &(*link)->next) {
        if (*link == runner) {
            *link = runner->next;
            runners->resting_count--;
            return;
        }
    }
}

static void end_resting(heddle_sockets *sockets, size_t count)
{
    while (count-- > 0 && sockets->runners.resting) {
        heddle_runner *runner = take_resting_runner(&sockets->runners);
        runner->ending = true;
        heddle_park_wake(runner->park);
    }
}

/* Ends the runners that have waited for work since the last call: they are not needed. */
static void trim_runners(heddle_timer *timer)
{
    heddle_sockets *sockets = (heddle_sockets *)((char *)timer - offsetof(heddle_sockets, runners.trim));
    heddle_runners *runners = &sockets->runners;
    size_t spare = runners->resting_count - HEDDLE_RUNNERS_AT_REST;
    if (runners->resting_count > HEDDLE_RUNNERS_AT_REST)
        end_resting(sockets, runners->least_resting < spare ? runners->least_resting : spare);
    set_trim_timer(sockets);
}

static void set_trim_timer(heddle_sockets *sockets)
{
    heddle_runners *runners = &sockets->runners;
    if (runners->trim.slot || runners->resting_count <= HEDDLE_RUNNERS_AT_REST)
        return;
    runners->least_resting = runners->resting_count;
    runners->trim.fn = trim_runners;
    runners->trim.deadline = heddle_deadline_after(HEDDLE_RUNNERS_TRIM);
    heddle_timer_heap_push(&sockets->loop->timers, &runners->trim); /* without memory the runners stay */
}

void heddle_runners_end_resting(heddle_sockets *sockets)
{
    if (!heddle_loop_is_closed(sockets->loop))
        end_resting(sockets, sockets->runners.resting_count);
}

/* -- calling one -------------------------------------------------------------------------------------------------- */

static void retry_calls(heddle_timer *timer)
{
    heddle_sockets *sockets = (heddle_sockets *)((char *)timer - offsetof(heddle_sockets, runners.retry));
    if (heddle_rounds_count_waiting(sockets))
        heddle_runners_call(sockets);
}

void heddle_runners_call_later(heddle_sockets *sockets)
{
    heddle_timer *timer = &sockets->runners.retry;
    if (timer->slot)
        return;
    timer->fn = retry_calls;
    timer->deadline = heddle_deadline_after(HEDDLE_RUNNERS_RETRY);
    heddle_timer_heap_push(&sockets->loop->timers, timer);
}

static VALUE start_runner(VALUE sockets)
{
    heddle_runner_start((heddle_sockets *)sockets);
    return Qnil;
}

static bool call_one(heddle_sockets *sockets)
{
    heddle_runner *runner = take_resting_runner(&sockets->runners);
    if (runner) {
        runner->called = true;
        heddle_park_wake(runner->park);
        return true;
    }
    int state = 0;
    rb_protect(start_runner, (VALUE)sockets, &state);
    if (!state)
        return true;
    heddle_take_errinfo();
    heddle_runners_call_later(sockets);
    return false;
}

void heddle_runners_call(heddle_sockets *sockets)
{
    heddle_runners *runners = &sockets->runners;
    size_t waiting = heddle_rounds_count_waiting(sockets), wanted = runners->ahead < waiting ? runners->ahead : waiting;
    if (sockets->closed || !heddle_admission_open(sockets))
        return;
    while (runners->coming < wanted && call_one(sockets))
        runners->coming++;
}

void heddle_runners_start(heddle_sockets *sockets, bool pooled)
{
    sockets->runners.uses = pooled ? HEDDLE_RUNNER_USES : 1;
    sockets->runners.ahead = 1;
}

void heddle_runners_adapt_batch(heddle_runners *runners, bool waited)
{
    if (waited)
        runners->ahead = runners->ahead < HEDDLE_RUNNERS_AHEAD ? runners->ahead * 2 : HEDDLE_RUNNERS_AHEAD;
    else if (runners->ahead > 1)
        runners->ahead /= 2;
}

/* -- those that serve --------------------------------------------------------------------------------------------- */

void heddle_runners_begin_to_serve(heddle_runner *runner)
{
    heddle_runners *runners = &runner->sockets->runners;
    runner->previous = NULL;
    runner->next = runners->serving;
    if (runner->next)
        runner->next->previous = runner;
    runners->serving = runner;
    runners->serving_count++;
    if (runner->sockets->balance.slot)
        HEDDLE_SCOREBOARD_ADD(runner->sockets->balance.slot->in_flight, 1);
}

void heddle_runners_end_to_serve(heddle_runner *runner)
{
    heddle_runners *runners = &runner->sockets->runners;
    if (runner->sockets->abandoned)
        return; /* this is a forked child: the other fibers are gone, or about to be */
    if (runner->previous)
        runner->previous->next = runner->next;
    else
        runners->serving = runner->next;
    if (runner->next)
        runner->next->previous = runner->previous;
    runner->next = runner->previous = NULL;
    runners->serving_count--;
    if (runner->sockets->balance.slot) {
        HEDDLE_SCOREBOARD_ADD(runner->sockets->balance.slot->in_flight, -1);
        HEDDLE_SCOREBOARD_ADD(runner->sockets->balance.slot->requests, 1);
    }
    heddle_runners_check_end(runner->sockets);
}

VALUE heddle_runners_list_fibers(heddle_sockets *sockets)
{
    VALUE fibers = rb_ary_new();
    for (heddle_runner *runner = sockets->runners.serving; runner; runner = runner->next)
        rb_ary_push(fibers, runner->fiber->fiber);
    return fibers;
}

VALUE heddle_runners_list_work(heddle_sockets *sockets)
{
    VALUE list = rb_ary_new();
    for (heddle_runner *runner = sockets->runners.serving; runner; runner = runner->next) {
        VALUE description = heddle_runner_describe_object(runner);
        if (!NIL_P(description))
            rb_ary_push(list, rb_assoc_new(runner->fiber->fiber, description));
    }
    return list;
}

bool heddle_runners_are_done(const heddle_sockets *sockets)
{
    return !sockets->runners.serving && sockets->connections == 0;
}

void heddle_runners_check_end(heddle_sockets *sockets)
{
    if (!sockets->runners.awaiting || !heddle_runners_are_done(sockets))
        return;
    heddle_park *park = heddle_park_find(sockets->loop, sockets->runners.awaiting);
    if (park)
        heddle_park_wake(park);
}
