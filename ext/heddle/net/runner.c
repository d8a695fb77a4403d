/* A runner is a pooled fiber that serves work items (requests and callbacks): see runner.h and runner_pool.h. */

#include "net/runner.h"

#include "binding.h"
#include "net/sockets.h"
#include "net/fiber_reset.h"
#include "net/work_sharing.h"
#include "scheduler/take_errinfo.h"

static VALUE runner_class;

static const rb_data_type_t runner_type =
    HEDDLE_TYPE("Heddle::Net::Runner", RUBY_TYPED_DECL_MARKING,
                .dmark = HEDDLE_REFERENCES(offsetof(heddle_runner, object)), .dfree = RUBY_DEFAULT_FREE);

/* -- the work item that is served ---------------------------------------------------------------------------------- */

VALUE heddle_runner_describe_object(const heddle_runner *runner)
{
    if (!runner->served || !*runner->served || !runner->operations->describe)
        return Qnil;
    return runner->operations->describe(*runner->served);
}

/*
 * Describes the request for reports about the runner's fiber, or about a fiber that the runner's work item has started.
 * Returns 0 if the runner no longer serves that item.
 */
static size_t summarize_work(heddle_fiber *fiber, char *text, size_t size)
{
    const heddle_runner *runner;
    TypedData_Get_Struct(fiber->request, const heddle_runner, &runner_type, runner);
    if (runner->uses != fiber->request_number || !runner->served || !*runner->served || !runner->operations->summarize)
        return 0;
    return runner->operations->summarize(*runner->served, text, size);
}

/* -- serving ------------------------------------------------------------------------------------------------------ */

typedef struct {
    heddle_sockets *sockets;
    heddle_work *work;
    VALUE object;
} block_call;

static VALUE call_block(VALUE data)
{
    block_call *call = (block_call *)data;
    const heddle_work_operations *operations = call->work->operations;
    call->object = operations->object(call->work);
    if (operations->serve)
        return operations->serve(call->work, call->object);
    return rb_proc_call_with_block(call->sockets->block, 1, &call->object, Qnil);
}

/*
 * Reports an exception that serving an item has raised, and returns 0. After an exception that is not a StandardError,
 * the runner ends. An exception that ends the loop, and a jump such as throw, are not reported: for these, returns the
 * state of rb_protect, with which runner_call continues the exception or jump.
 */
static int handle_exception(heddle_runner *runner, int state)
{
    VALUE error = rb_errinfo();
    int failed = 0;
    if (!heddle_is_exception(error) || heddle_ends_loop(error))
        return state;
    if (!RTEST(rb_obj_is_kind_of(error, rb_eStandardError)))
        runner->ending = true;
    VALUE failure[] = {runner->fiber->fiber, error};
    heddle_call_protected(runner->sockets->scheduler, rb_intern("report_failure"), 2, failure, &failed);
    heddle_take_errinfo();
    return 0;
}

static int serve_work(heddle_runner *runner, heddle_work *work)
{
    heddle_sockets *sockets = runner->sockets;
    block_call call = {.sockets = sockets, .work = work};
    int state = 0;
    runner->fiber->request_number = ++runner->uses;
    bool counts = work->operations->waits_at_gate && !work->probe;
    runner->quantum = (heddle_quantum){.request = runner->uses, .counts = counts};
    bool has_account = heddle_accounting && work->operations->waits_at_gate;
    if (has_account)
        heddle_account_begin(&runner->account, &runner->fiber->spender, runner->uses, runner->in_row);
    runner->operations = work->operations;
    runner->served = &call.object;
    if (sockets->handoff.on && work->operations->label)
        runner->fiber->label = work->operations->label(work);
    heddle_address_share *prober = work->probe ? work->share : NULL;
    bool probe = work->probe;
    sockets->runners.probing_count += probe;
    if (prober)
        prober->probes++;
    runner->share = probe ? NULL : work->share;
    if (runner->share)
        heddle_admission_count_begun(sockets, runner->share);
    heddle_runners_start_serving(runner);
    heddle_loop_advance_heartbeat(sockets->loop); /* each work item gets a new time slice */
    rb_protect(call_block, (VALUE)&call, &state);
    if (state)
        state = handle_exception(runner, state);
    work->operations->served(work, call.object);
    runner->quantum.counts = false;
    runner->in_row = has_account && !runner->account.request;
    heddle_account_abandon(&runner->account);
    sockets->runners.probing_count -= probe;
    if (prober)
        prober->probes--;
    if (runner->share)
        heddle_admission_count_ended(sockets, runner->share);
    heddle_runners_stop_serving(runner);
    runner->served = NULL;
    RB_GC_GUARD(call.object);
    return state;
}

/*
 * Takes the next item to serve. Passes over items that are handed off to another worker or deferred, and rejects items
 * whose client has left. Returns NULL if no further item is to begin now.
 */
static heddle_work *claim_work(heddle_sockets *sockets, int64_t now)
{
    for (;;) {
        heddle_ready_list *list = heddle_admission_choose_list(sockets);
        heddle_work *work = list ? heddle_ready_list_take_first(list) : NULL;
        if (!work)
            return NULL;
        if (heddle_work_share(sockets, work, now) || !heddle_connection_acquire(work->connection) ||
            (sockets->reserve.rank && heddle_reserve_defer(sockets, work)))
            continue;
        if (heddle_admission_drop_abandoned(sockets, work, now)) {
            if (heddle_clock_coarse() - now >= HEDDLE_RUNNER_SHARE)
                return NULL; /* returns to the loop, because many clients may have left at once */
            continue;
        }
        if (!work->probe && !heddle_rounds_use_turn(sockets, work))
            continue;
        heddle_ready_list_note_served(sockets, work);
        heddle_connection_begin_work(work->connection);
        return work;
    }
}

/*
 * Serves the items that are ready now. Items that become ready meanwhile wait for the next tick, except further items
 * of the current turn (`urgent`). If serving takes long, the remaining items wait, too, so that timers, other fibers
 * and unread sockets get their turn.
 */
static int serve_ready_items(heddle_runner *runner)
{
    heddle_sockets *sockets = runner->sockets;
    if (!sockets->ready.count && !sockets->callbacks.count)
        heddle_rounds_release(sockets);
    size_t left = heddle_rounds_count_ready(sockets);
    runner->in_row = false;
    uint64_t preemptions = sockets->loop->statistics.preemptions;
    int64_t began = 0;
    while ((left > 0 || sockets->urgent) && !runner->ending) {
        int64_t now = heddle_clock_coarse();
        if (began == 0)
            began = now;
        if (now - began >= HEDDLE_RUNNER_SHARE || sockets->loop->statistics.preemptions != preemptions)
            break;
        if (!sockets->urgent) {
            sockets->tick_began = now;
            left--;
        }
        heddle_work *work = claim_work(sockets, now);
        sockets->urgent = NULL;
        if (!work)
            break;
        int state = serve_work(runner, work);
        if (state || sockets->closed)
            return state;
        if (runner->uses >= HEDDLE_RUNNER_USES) {
            runner->ending = true;
            break;
        }
        state = heddle_fiber_reset(runner->fiber);
        if (state)
            return state;
    }
    return 0;
}

/* -- waiting for work --------------------------------------------------------------------------------------------- */

static VALUE wait_for_summons(VALUE data)
{
    heddle_runner *runner = (heddle_runner *)data;
    heddle_runners_add_idle(runner);
    heddle_park_mark_idle(runner->park);
    heddle_park_wait(runner->park);
    return Qnil;
}

static int wait_for_work(heddle_runner *runner)
{
    heddle_park park;
    int state = 0;
    heddle_park_enter(runner->sockets->loop, &park);
    runner->park = &park;
    rb_protect(wait_for_summons, (VALUE)runner, &state);
    if (runner->idle)
        heddle_runners_remove_idle(runner);
    heddle_park_leave(&park);
    runner->park = NULL;
    if (state && heddle_is_exception(rb_errinfo())) {
        /* discards a cancellation, or an exception that came too late for the item that was served before */
        heddle_take_errinfo();
        runner->ending = true;
        state = 0;
    }
    return state;
}

/* Called when a runner that was summoned reads the ready list, or ends: it no longer counts as `coming`. */
static void count_arrival(heddle_runner *runner)
{
    if (runner->summoned)
        runner->sockets->runners.coming--;
    runner->summoned = false;
}

static int run_runner(heddle_runner *runner)
{
    heddle_sockets *sockets = runner->sockets;
    int state = heddle_fiber_reset(runner->fiber); /* a new fiber inherits the storage of the fiber that started it */
    while (!state) {
        count_arrival(runner);
        state = serve_ready_items(runner);
        if (state || runner->ending || sockets->closed)
            break;
        heddle_admission_request(sockets);
        state = wait_for_work(runner);
    }
    count_arrival(runner);
    return state;
}

/* -- the runner's fiber ------------------------------------------------------------------------------------------- */

/*
 * Returns true, because a runner's fiber serves one item after another. Tasks that an item starts therefore end with
 * the item, not with the fiber (Concurrency::Context).
 */
HEDDLE_DEFINE_METHOD(runner_hosts_p, "hosts?", Qtrue)

/* The body of the runner's fiber. */
static VALUE runner_call(VALUE self)
{
    heddle_runner *runner = rb_check_typeddata(self, &runner_type);
    int state = run_runner(runner);
    runner->fiber = NULL;
    heddle_admission_request(runner->sockets);
    if (state)
        rb_jump_tag(state);
    RB_GC_GUARD(self);
    return Qnil;
}

/* Called when the scheduler ends all fibers. */
static VALUE runner_cancel(VALUE self)
{
    heddle_runner *runner = rb_check_typeddata(self, &runner_type);
    if (!runner->fiber)
        return Qnil;
    runner->ending = true;
    heddle_fiber_interrupt(runner->fiber, rb_class_new_instance(0, NULL, rb_path2class("Heddle::Cancelled")));
    return Qnil;
}

/* Called if the runner's fiber could not be started, because there was no memory for its stack. */
static VALUE runner_unstarted(VALUE self, VALUE error)
{
    heddle_runner *runner = rb_check_typeddata(self, &runner_type);
    runner->fiber = NULL;
    runner->summoned = false;
    runner->sockets->runners.coming--;
    heddle_runners_summon_later(runner->sockets);
    return Qnil;
}

void heddle_runner_start(heddle_sockets *sockets)
{
    heddle_runner *runner;
    VALUE job = TypedData_Make_Struct(runner_class, heddle_runner, &runner_type, runner);
    runner->sockets = sockets;
    runner->object = sockets->attachment.object;
    runner->summoned = true;
    runner->fiber = heddle_fiber_spawn(sockets->loop, job);
    runner->fiber->describe = summarize_work;
    runner->fiber->request = job;
    runner->fiber->request_number = 0;
    runner->fiber->quantum = &runner->quantum;
    runner->fiber->spender = (heddle_spender){0}; /* the fiber's time counts for no request yet */
    heddle_fiber_enqueue(runner->fiber);
}

void Init_heddle_runner(VALUE net)
{
    runner_class = heddle_define_class(net, "Runner", NULL);
    rb_define_method(runner_class, "hosts?", runner_hosts_p, 0);
    rb_define_method(runner_class, "call", runner_call, 0);
    rb_define_method(runner_class, "cancel", runner_cancel, 0);
    rb_define_method(runner_class, "unstarted", runner_unstarted, 1);
    rb_funcall(net, rb_intern("private_constant"), 1, ID2SYM(rb_intern("Runner")));
}
