#ifndef HEDDLE_OFFLOAD_CALL_H
#define HEDDLE_OFFLOAD_CALL_H

/* Runs a native call of a fiber on an offload thread, while the loop runs other fibers. */

#include "offload/job.h"
#include "offload/policy.h"
#include "scheduler/loop.h"

#include <ruby.h>

/*
 * The loop of the calling fiber if its native calls may be offloaded, in the main Ractor only; NULL: they run as
 * without Heddle.
 */
heddle_loop *heddle_offload_find_loop(void);

/* Is the calling fiber in a block of without_offload? */
bool heddle_offload_is_refused(void);

typedef enum {
    HEDDLE_CALL_ENDS_EARLY, /* an exception ends the call early, and is raised when the call has ended */
    /*
     * … and is raised at the caller's next check for interrupts or at the fiber's next wait: the caller expects its
     * call to return
     */
    HEDDLE_CALL_RETURNS,
    HEDDLE_CALL_GOES_ON,    /* an exception waits for the end of the call, and is raised at the next wait after it */
} heddle_call_kind;

/*
 * Runs the job's function on an offload thread. True: job->result and errno are the call's. False: the function was not
 * run, because it has to run in place, or there is no thread for it. An exception that was pending before the call is
 * raised; with HEDDLE_CALL_RETURNS the function is not run instead, and its result is NULL.
 */
bool heddle_offload_run(heddle_loop *loop, heddle_job *job, heddle_function *function, heddle_call_kind kind);

/* May an exception be raised in the calling fiber here? Not in a signal handler, nor during a garbage collection. */
bool heddle_offload_may_interrupt(heddle_loop *loop);

/* Is an exception pending in the calling fiber? Then it is kept for heddle_offload_raise_postponed or the fiber's next
 * wait. */
bool heddle_offload_postpone_errors(heddle_loop *loop);

/* Called where an extension checks for interrupts: raises the exceptions that were postponed. */
void heddle_offload_raise_postponed(void);

/* Once. */
void heddle_calls_setup(void);

#endif
