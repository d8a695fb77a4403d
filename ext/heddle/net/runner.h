#ifndef HEDDLE_RUNNER_H
#define HEDDLE_RUNNER_H

/* A pooled fiber that serves one work item after another. */

#include "net/runners.h"
#include "net/work.h"

struct heddle_runner {
    heddle_sockets *sockets;
    VALUE object; /* of the sockets */
    heddle_fiber *fiber; /* NULL once it has ended */
    heddle_park *park;   /* where it waits for work */
    heddle_runner *next; /* in the list of waiting runners, or of serving ones */
    heddle_runner *previous; /* in the list of serving runners */
    const heddle_work_operations *operations; /* the operations of the work item that it serves */
    const VALUE *served;  /* the argument of the block; NULL or 0: none */
    unsigned uses;
    bool called; /* heddle_runners_call has woken or started it, and it does not run yet */
    bool ending;
};

/* Starts a new runner, which reads the ready list when its fiber runs; raises when no fiber can be made. */
void heddle_runner_start(heddle_sockets *sockets);

/* A description of what the runner serves, or nil. On any thread. */
VALUE heddle_runner_describe_object(const heddle_runner *runner);

/* -- runners.c: the list of all runners --------------------------------------------------- */

void heddle_runners_add_resting(heddle_runner *runner);
/* Removes a runner from the list of waiting ones, when it was woken by other code than heddle_runners_call. */
void heddle_runners_remove_resting(heddle_runner *runner);
void heddle_runners_begin_to_serve(heddle_runner *runner);
void heddle_runners_end_to_serve(heddle_runner *runner);
/* Has the last block waited? Then more runners are called at once, so that all ready items begin in the same tick. */
void heddle_runners_adapt_batch(heddle_runners *runners, bool waited);
/* Called when no fiber can be made now: the ready items wait. */
void heddle_runners_call_later(heddle_sockets *sockets);

void Init_heddle_runner(VALUE net);

#endif
