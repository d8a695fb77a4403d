#pragma once

/* Runs a fiber's native call on an offload thread. While the fiber waits for it, the loop runs other fibers. */

#include "offload/job.h"
#include "offload/policy.h"
#include "scheduler/loop.h"

typedef enum {
    HEDDLE_CALL_ENDS_EARLY, /* an exception ends the call early, and is raised after the call */
    /*
     * an exception ends the call early, or skips it, but the call returns normally, as its caller expects; the
     * exception is raised at the caller's next check for interrupts, or at the fiber's next wait
     */
    HEDDLE_CALL_IS_SKIPPED,
    HEDDLE_CALL_CONTINUES,    /* an exception does not end the call, and is raised at the fiber's next wait after it */
} heddle_call_kind;

/*
 * Runs the job's function on an offload thread. Returns true if job->result and errno are set. Returns false if the
 * function was not run, because it must run in place or no thread is available. If an exception is pending before the
 * call, HEDDLE_CALL_ENDS_EARLY raises it, and HEDDLE_CALL_IS_SKIPPED sets the result to NULL without running the
 * function.
 */
bool heddle_offload_run(heddle_loop *loop, heddle_job *job, heddle_function *function, heddle_call_kind kind);

/*
 * Returns the sum, over all calls so far, of the time from the end of a call until the loop resumed its fiber, in ns.
 * Called with the GVL.
 */
uint64_t heddle_offload_return_wait(void);

/* Called once. */
void heddle_calls_setup(void);
