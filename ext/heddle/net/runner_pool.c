/* The pool of runners, which are fibers that serve work items (requests and callbacks): see runner_pool.h. */

#include "net/runner.h"

#include "net/sockets.h"
#include "scheduler/take_errinfo.h"
#include "selector/list.h"

/* -- idle runners ------------------------------------------------------------------------------------------------- */

static void set_trim_timer(heddle_sockets *sockets);

void heddle_runners_add_idle(heddle_runner *runner)
{
    heddle_runners *runners = &runner->sockets->runners;
    runner->next = runners->idle;
    runners->idle = runner;
    runner->idle = true;
    runners->idle_count++;
    set_trim_timer(runner->sockets);
}

static void unlink_idle_runner(heddle_runners *runners, heddle_runner **link)
{
    (*link)->idle = false;
    *link = (*link)->next;
    runners->idle_count--;
    if (runners->least_idle > runners->idle_count)
        runners->least_idle = runners->idle_count;
}

static heddle_runner *take_idle_runner(heddle_runners *runners)
{
    heddle_runner *runner = runners->idle;
    if (runner)
        unlink_idle_runner(runners, &runners->idle);
    return runner;
}

void heddle_runners_remove_idle(heddle_runner *runner)
{
    heddle_runners *runners = &runner->sockets->runners;
    for (heddle_runner **link = &runners->idle; *link; link = &(*link)->next) {
        if (*link == runner) {
            unlink_idle_runner(runners, link);
            return;
        }
    }
}

static void end_idle_runners(heddle_sockets *sockets, size_t count)
{
    while (count-- > 0 && sockets->runners.idle) {
        heddle_runner *runner = take_idle_runner(&sockets->runners);
        runner->ending = true;
        heddle_park_wake(runner->park);
    }
}

/*
 * Ends as many idle runners as were never needed since the timer was set, but always keeps HEDDLE_RUNNERS_MIN_IDLE of
 * them.
 */
static void trim_runners(heddle_timer *timer)
{
    heddle_sockets *sockets = (heddle_sockets *)((char *)timer - offsetof(heddle_sockets, runners.trim));
    heddle_runners *runners = &sockets->runners;
    if (runners->idle_count > HEDDLE_RUNNERS_MIN_IDLE) {
        size_t spare = runners->idle_count - HEDDLE_RUNNERS_MIN_IDLE;
        end_idle_runners(sockets, runners->least_idle < spare ? runners->least_idle : spare);
    }
    set_trim_timer(sockets);
}

static void set_trim_timer(heddle_sockets *sockets)
{
    heddle_runners *runners = &sockets->runners;
    if (runners->trim.slot || runners->idle_count <= HEDDLE_RUNNERS_MIN_IDLE)
        return;
    runners->least_idle = runners->idle_count;
    runners->trim.fn = trim_runners;
    runners->trim.deadline = heddle_deadline_after(HEDDLE_RUNNERS_TRIM);
    /* without memory for the timer, the runners are kept */
    heddle_timer_heap_push(&sockets->loop->timers, &runners->trim);
}

void heddle_runners_end_idle(heddle_sockets *sockets)
{
    if (!heddle_loop_is_closed(sockets->loop))
        end_idle_runners(sockets, sockets->runners.idle_count);
}

/* -- starting and waking runners ---------------------------------------------------------------------------------- */

static void retry_summons(heddle_timer *timer)
{
    heddle_sockets *sockets = (heddle_sockets *)((char *)timer - offsetof(heddle_sockets, runners.retry));
    heddle_admission_request(sockets);
}

void heddle_runners_summon_later(heddle_sockets *sockets)
{
    heddle_timer *timer = &sockets->runners.retry;
    if (timer->slot)
        return;
    timer->fn = retry_summons;
    timer->deadline = heddle_deadline_after(HEDDLE_RUNNERS_RETRY);
    /*
     * If there is no memory for the timer, a runner is summoned when the next item is queued or the next runner becomes
     * idle.
     */
    heddle_timer_heap_push(&sockets->loop->timers, timer);
}

static VALUE start_runner(VALUE sockets)
{
    heddle_runner_start((heddle_sockets *)sockets);
    return Qnil;
}

/* Returns false if no fiber could be made. Then a timer tries again. */
static bool summon_runner(heddle_sockets *sockets)
{
    heddle_runner *runner = take_idle_runner(&sockets->runners);
    if (runner) {
        runner->summoned = true;
        heddle_park_wake(runner->park);
        return true;
    }
    int state = 0;
    rb_protect(start_runner, (VALUE)sockets, &state);
    if (!state)
        return true;
    heddle_take_errinfo();
    heddle_runners_summon_later(sockets);
    return false;
}

void heddle_runners_summon(heddle_sockets *sockets)
{
    if (sockets->runners.coming == 0 && summon_runner(sockets))
        sockets->runners.coming++;
}

/* -- serving runners ---------------------------------------------------------------------------------------------- */

void heddle_runners_publish_load(heddle_sockets *sockets)
{
    heddle_balance *balance = &sockets->balance;
    uint32_t load = (uint32_t)(sockets->runners.serving_count + heddle_rounds_count_waiting(sockets));
    if (!balance->slot)
        return;
    HEDDLE_SCOREBOARD_ADD(balance->slot->in_flight, load - balance->load);
    balance->load = load;
}

void heddle_runners_start_serving(heddle_runner *runner)
{
    heddle_runners *runners = &runner->sockets->runners;
    HEDDLE_LIST_ADD(runners->serving, runner);
    runners->serving_count++;
    heddle_runners_publish_load(runner->sockets);
}

void heddle_runners_stop_serving(heddle_runner *runner)
{
    heddle_runners *runners = &runner->sockets->runners;
    if (runner->sockets->abandoned)
        return; /* in a forked child the other runners no longer exist, so the list must not be used */
    HEDDLE_LIST_REMOVE(runners->serving, runner);
    runners->serving_count--;
    heddle_runners_publish_load(runner->sockets);
    if (runner->sockets->balance.slot && runner->operations->waits_at_gate) /* callbacks are not counted */
        HEDDLE_SCOREBOARD_ADD(runner->sockets->balance.slot->requests, 1);
    heddle_admission_request(runner->sockets);
    heddle_runners_wake_if_done(runner->sockets);
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

void heddle_runners_wake_if_done(heddle_sockets *sockets)
{
    if (!sockets->runners.waiting_for_end || !heddle_runners_are_done(sockets))
        return;
    heddle_park *park = heddle_park_find(sockets->loop, sockets->runners.waiting_for_end);
    if (park)
        heddle_park_wake(park);
}
