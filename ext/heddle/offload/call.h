#pragma once

/* Runs a native call of a fiber on an offload thread, while the loop runs other fibers. */

#include "offload/job.h"
#include "offload/policy.h"
#include "scheduler/loop.h"

typedef enum {
    HEDDLE_CALL_ENDS_EARLY, /* an exception ends the call early, and is raised when the call has ended */
    /*
     * … and is raised at the caller's next check for interrupts or at the fiber's next wait: the caller expects its
     * call to return
     */
    HEDDLE_CALL_IS_SKIPPED,
    HEDDLE_CALL_CONTINUES,    /* an exception waits for the end of the call, and is raised at the next wait after it */
} heddle_call_kind;

/*
 * Runs the job's function on an offload thread. True: job->result and errno are the call's. False: the function was not
 * run, because it has to run in place, or there is no thread for it. An exception that was pending before the call is
 * raised; with HEDDLE_CALL_IS_SKIPPED the function is not run instead, and its result is NULL.
 */
bool heddle_offload_run(heddle_loop *loop, heddle_job *job, heddle_function *function, heddle_call_kind kind);

/* How long ended calls have waited together for their loops, before their fibers ran again; ns. With the GVL. */
uint64_t heddle_offload_return_wait(void);

/* Once. */
void heddle_calls_setup(void);
