#pragma once

/* Runs a native call of a fiber on an offload thread, while the loop runs other fibers. */

#include "offload/job.h"
#include "offload/policy.h"
#include "scheduler/loop.h"

typedef enum {
    HEDDLE_CALL_ENDS_EARLY, /* an exception ends the call early, and is raised when the call has ended */
    /*
     * an exception ends the call early, and is raised at the caller's next check for interrupts or at the fiber's next
     * wait, because the caller expects its call to return
     */
    HEDDLE_CALL_IS_SKIPPED,
    HEDDLE_CALL_CONTINUES,    /* an exception does not end the call, and is raised at the next wait after it */
} heddle_call_kind;

/*
 * Runs the job's function on an offload thread. Returns true if job->result and errno are set. Returns false if the
 * function was not run: it must run in place, or there is no thread for it. Raises an exception that was pending before
 * the call. With HEDDLE_CALL_IS_SKIPPED it does not raise: it skips the function, and the result is NULL.
 */
bool heddle_offload_run(heddle_loop *loop, heddle_job *job, heddle_function *function, heddle_call_kind kind);

/*
 * The sum of the times, in ns, that ended calls have waited for their loops to continue their fibers. Called with the
 * GVL.
 */
uint64_t heddle_offload_return_wait(void);

/* Once. */
void heddle_calls_setup(void);
