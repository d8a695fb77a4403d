#ifndef HEDDLE_OFFLOAD_CALL_H
#define HEDDLE_OFFLOAD_CALL_H

/*
 * A native call of a fiber that waits: an offload thread runs it, and the loop goes on with others meanwhile.
 */

#include "offload/job.h"
#include "offload/policy.h"
#include "scheduler/loop.h"

#include <ruby.h>

/* Where the calling fiber's native calls may be offloaded from, in the main Ractor only; NULL: they run as ever. */
heddle_loop *heddle_offload_loop(void);

/* Is the calling fiber in a block whose calls are not to be offloaded? */
bool heddle_offload_refused(void);

typedef enum {
    HEDDLE_CALL_ENDS_EARLY, /* what is raised meanwhile ends the call, and is raised when that has ended */
    HEDDLE_CALL_RETURNS,    /* … and is raised where the caller takes interrupts, or at the fiber's next wait: the caller
                             * expects its call to return */
    HEDDLE_CALL_GOES_ON,    /* what is raised meanwhile waits for the call's own end, and then for the next wait */
} heddle_call_kind;

/*
 * Runs the job's function on an offload thread. True: job->result and errno are what the call has left. False: it was
 * not run, because it has to run here, or there is no thread for it. An exception that was pending before it began is
 * raised. A call that has to return is not run then, and its result is NULL.
 */
bool heddle_offload_run(heddle_loop *loop, heddle_job *job, heddle_function *function, heddle_call_kind kind);

/* May the calling fiber be interrupted here? Not in a signal's handler, nor during garbage collection. */
bool heddle_offload_may_wait(heddle_loop *loop);

/* Is anything to be raised in the calling fiber? It is raised where the extension takes interrupts. */
bool heddle_offload_postpone_due(heddle_loop *loop);

/* Where an extension takes interrupts: raises what had to wait because its call was to return. */
void heddle_offload_check(void);

/* Once. */
void heddle_calls_setup(void);

#endif
