#include "scheduler/fiber_table.h"
#include "scheduler/guard_pages_ruby.h"
#include "scheduler/loop.h"
#include "scheduler/starter.h"

static ID id_call, id_report_failure, id_report_unstarted;

static VALUE call_job(VALUE data)
{
    return rb_funcall(((heddle_fiber *)data)->job, id_call, 0);
}

static VALUE report_failure(VALUE data)
{
    heddle_fiber *fiber = (heddle_fiber *)data;
    return rb_funcall(fiber->loop->scheduler, id_report_failure, 2, fiber->fiber, rb_errinfo());
}

/* Where a thread or a fiber is killed, errinfo is no exception. */
static bool is_exception(VALUE error)
{
    return !RB_SPECIAL_CONST_P(error) && RB_BUILTIN_TYPE(error) != T_IMEMO && rb_obj_is_kind_of(error, rb_eException);
}

static VALUE transfer(VALUE fiber)
{
    return rb_fiber_transfer(fiber, 0, NULL);
}

static void forget(heddle_fiber *fiber)
{
    heddle_loop *loop = fiber->loop;
    heddle_park *starter = heddle_fiber_take_starter(fiber);
    if (starter && loop->running)
        loop->handed_over = starter; /* Ruby switches from an ended fiber to the loop: it goes on with this one */
    else if (starter)
        heddle_park_wake(starter);
    if (loop->current == fiber)
        loop->current = NULL;
    heddle_fiber_table_delete(&loop->by_fiber, fiber->fiber);
    if (fiber->previous)
        fiber->previous->next = fiber->next;
    else
        loop->fibers = fiber->next;
    if (fiber->next)
        fiber->next->previous = fiber->previous;
    loop->fiber_count--;
    free(fiber);
}

static VALUE body(RB_BLOCK_CALL_FUNC_ARGLIST(yielded, data))
{
    heddle_fiber *fiber = (heddle_fiber *)(data & ~(VALUE)1);
    heddle_loop *loop = fiber->loop;
    int state = 0;

    loop->current = fiber;
    loop->arriving = NULL;
    heddle_park_leave(&fiber->entry);
    rb_protect(call_job, (VALUE)fiber, &state);
    if (state) {
        VALUE error = rb_errinfo();
        if (is_exception(error) && !RTEST(rb_obj_is_kind_of(error, rb_eSystemExit)) &&
            !RTEST(rb_obj_is_kind_of(error, rb_eSignal)) && !RTEST(rb_obj_is_kind_of(error, rb_eNoMemError))) {
            int failed = 0;
            rb_protect(report_failure, (VALUE)fiber, &failed);
            rb_set_errinfo(Qnil);
            state = 0;
        }
    }
    forget(fiber);
    if (loop->stranded && !state)
        transfer(loop->fiber); /* not to the root fiber, where Ruby goes when a fiber ends; never comes back */
    if (state)
        rb_jump_tag(state); /* SystemExit, Interrupt, a kill: Ruby hands them to the fiber that runs the loop */
    return Qnil;
}

static VALUE set_up(VALUE data)
{
    heddle_fiber *fiber = (heddle_fiber *)data;
    heddle_loop *loop = fiber->loop;

    heddle_fiber_reserve_entry(fiber);
    /* The record's address, made to look like an Integer to the garbage collector. */
    fiber->fiber = rb_fiber_new(body, (VALUE)fiber | 1);
    fiber->entry.fiber = fiber->fiber;
    heddle_fiber_table_put(&loop->by_fiber, fiber->fiber, fiber);
    return Qnil;
}

heddle_fiber *heddle_fiber_spawn(heddle_loop *loop, VALUE job)
{
    if (!id_call) {
        id_call = rb_intern("call");
        id_report_failure = rb_intern("report_failure");
        id_report_unstarted = rb_intern("report_unstarted");
    }
    heddle_fiber *fiber = calloc(1, sizeof(*fiber));
    if (!fiber)
        rb_memerror();
    *fiber = (heddle_fiber){.loop = loop, .fiber = Qnil, .job = job, .interrupt = Qundef, .next = loop->fibers};
    /* Linked first: from here on the collector sees job and fiber. */
    if (fiber->next)
        fiber->next->previous = fiber;
    loop->fibers = fiber;
    loop->fiber_count++;

    int state = 0;
    rb_protect(set_up, (VALUE)fiber, &state);
    if (state) {
        heddle_park_leave(&fiber->entry);
        forget(fiber);
        rb_jump_tag(state);
    }
    return fiber;
}

/* -- starting ---------------------------------------------------------------------------------------------------- */

bool heddle_is_fiber_error(VALUE error)
{
    return RTEST(rb_obj_is_kind_of(error, rb_const_get(rb_cObject, rb_intern("FiberError"))));
}

static VALUE report_unstarted(VALUE data)
{
    VALUE *arguments = (VALUE *)data;
    return rb_funcall(arguments[0], id_report_unstarted, 2, arguments[1], arguments[2]);
}

void heddle_fiber_unstarted(heddle_fiber *fiber, VALUE error)
{
    VALUE arguments[] = {fiber->loop->scheduler, fiber->job, heddle_fiber_limit_error(error)};
    heddle_park_leave(&fiber->entry);
    forget(fiber);
    report_unstarted((VALUE)arguments);
}

static VALUE leave_park(VALUE park)
{
    heddle_park_leave((heddle_park *)park);
    return Qnil;
}

NORETURN(static void refuse(heddle_fiber *fiber, VALUE error));

/* It has got no stack. */
static void refuse(heddle_fiber *fiber, VALUE error)
{
    VALUE explained = heddle_fiber_limit_error(error);
    heddle_park_leave(&fiber->entry);
    forget(fiber);
    rb_exc_raise(explained);
}

/* A fiber gets its stack when it is first switched to; until its body runs it has its entry. */
static void switch_to_new(heddle_loop *loop, VALUE fiber)
{
    int state = 0;
    rb_protect(transfer, fiber, &state);
    if (!state)
        return;
    heddle_fiber *record = heddle_fiber_find(loop, fiber);
    if (record && heddle_park_entered(&record->entry) && !record->entry.put_back) {
        VALUE error = rb_errinfo();
        rb_set_errinfo(Qnil);
        refuse(record, error);
    }
    rb_jump_tag(state);
}

typedef struct {
    heddle_park park;
    heddle_fiber *fiber;
} starting;

static VALUE start_from_park(VALUE data)
{
    starting *start = (starting *)data;
    heddle_loop *loop = start->park.loop;
    VALUE fiber = start->fiber->fiber;

    start->fiber->starter = &start->park;
    start->park.away = true;
    switch_to_new(loop, fiber);
    heddle_park_arrive(&start->park);
    RB_GC_GUARD(fiber);
    return Qnil;
}

void heddle_fiber_start(heddle_fiber *fiber)
{
    heddle_loop *loop = fiber->loop;
    VALUE keep = fiber->fiber;

    if (loop->running || loop->current) {
        /* The caller stands by until its child waits for the first time, or ends: then it goes on at once. */
        starting start = {.fiber = fiber};
        heddle_park_enter(loop, &start.park);
        rb_ensure(start_from_park, (VALUE)&start, leave_park, (VALUE)&start.park);
    } else {
        /* Nothing runs the loop yet: the child's first wait comes back here. */
        loop->fiber = rb_fiber_current();
        VALUE error = heddle_starter_switch(loop, keep);
        loop->current = NULL;
        loop->arriving = NULL;
        if (!NIL_P(error))
            refuse(fiber, error);
    }
    RB_GC_GUARD(keep);
}

/* The park of the fiber that stands by for this one; it hears of the child once. */
heddle_park *heddle_fiber_take_starter(heddle_fiber *fiber)
{
    heddle_park *starter = fiber->starter;
    fiber->starter = NULL;
    return starter && heddle_park_entered(starter) ? starter : NULL;
}

void heddle_fiber_enqueue(heddle_fiber *fiber)
{
    heddle_park_wake(&fiber->entry);
}

heddle_fiber *heddle_fiber_find(heddle_loop *loop, VALUE fiber)
{
    return heddle_fiber_table_get(&loop->by_fiber, fiber);
}

heddle_fiber *heddle_fiber_current(heddle_loop *loop)
{
    return loop->current ? loop->current : &loop->foreign;
}

void heddle_fiber_interrupt(heddle_fiber *fiber, VALUE exception)
{
    fiber->interrupt = exception;
    fiber->alarm = true;
    if (fiber->park)
        heddle_park_wake(fiber->park);
}
