/* Runs Ruby's own blocking operations on the offload threads, for the hook blocking_operation_wait of Ruby >= 4.0. */

#include "offload/blocking_operation.h"

#include "offload/call.h"
#include "offload/caller.h"
#include "offload/threads.h"

#ifdef HAVE_RB_FIBER_SCHEDULER_BLOCKING_OPERATION_EXTRACT

#include <ruby/fiber/scheduler.h>

typedef struct {
    rb_fiber_scheduler_blocking_operation_t *operation;
    bool interrupted; /* the operation's unblocking function was called */
    bool cancelled;   /* the operation was interrupted, or was not begun */
} operation_call;

static void *execute_operation(void *data)
{
    operation_call *call = data;
    call->cancelled = rb_fiber_scheduler_blocking_operation_execute(call->operation) != 0;
    /*
     * Ruby's own unblocking function repeats its signal until the thread acquires the GVL. These signals must not
     * interrupt another job, so the thread acquires the GVL before its next one.
     */
    if (call->cancelled)
        heddle_threads_current()->last = true;
    return NULL;
}

static void cancel_operation(void *data)
{
    operation_call *call = data;
    call->interrupted = rb_fiber_scheduler_blocking_operation_cancel(call->operation) == 1;
}

/* The class of a blocking operation has no name, so this function compares the name of the data type. */
static bool is_operation(VALUE object)
{
    return RB_TYPE_P(object, T_DATA) && RTYPEDDATA_P(object) &&
           strcmp(RTYPEDDATA_TYPE(object)->wrap_struct_name, "Fiber::Scheduler::BlockingOperation") == 0;
}

static VALUE offload_operation_p(VALUE self, VALUE object)
{
    return is_operation(object) ? Qtrue : Qfalse;
}

/*
 * Runs the operation on an offload thread, and returns true. Returns false if that was not possible, so that the caller
 * must run the operation in place. Returns nil if the calling fiber can't use the offload threads, or if `object` is
 * not a blocking operation.
 */
static VALUE offload_run_operation(VALUE self, VALUE object, VALUE file)
{
    /*
     * Ruby does not reveal the function of an operation. So one record stands for all operations on files, and one for
     * all others.
     */
    static heddle_function files, others;
    heddle_loop *loop = heddle_offload_find_loop();
    if (!loop || !is_operation(object))
        return Qnil;
    operation_call call = {.operation = rb_fiber_scheduler_blocking_operation_extract(object)};
    heddle_job job = {
        .function = execute_operation,
        .data = &call,
        .unblock = cancel_operation,
        .unblock_data = &call,
        .core = RTEST(file),
        .prompt = RTEST(file),
    };
    if (!heddle_offload_run(loop, &job, RTEST(file) ? &files : &others, HEDDLE_CALL_ENDS_EARLY))
        return Qfalse;
    /* The operation was not begun, because its thread was interrupted. Ruby must not treat that as a success. */
    if (call.cancelled && !call.interrupted)
        rb_syserr_fail(EINTR, "blocking operation");
    RB_GC_GUARD(object);
    return Qtrue;
}

void heddle_define_operations(VALUE switch_class)
{
    rb_define_method(switch_class, "operation?", offload_operation_p, 1);
    rb_define_method(switch_class, "run_operation", offload_run_operation, 2);
}

#else

/* This version of Ruby passes a Proc instead of an operation, and Ruby code calls the Proc. */
static VALUE offload_operation_p(VALUE self, VALUE object)
{
    return Qfalse;
}

void heddle_define_operations(VALUE switch_class)
{
    rb_define_method(switch_class, "operation?", offload_operation_p, 1);
}

#endif
