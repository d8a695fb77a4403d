#ifndef HEDDLE_RUNNER_H
#define HEDDLE_RUNNER_H

/* A pooled fiber that serves one work item after another. */

#include "net/runners.h"
#include "net/work.h"

struct heddle_runner {
    heddle_sockets *sockets;
    VALUE object; /* of the sockets */
    heddle_fiber *fiber; /* NULL once it has ended */
    heddle_park *park;   /* at rest */
    heddle_runner *next; /* of those at rest, or of those that serve */
    heddle_runner *previous; /* of those that serve */
    const heddle_work_operations *operations; /* of the work item that it serves */
    const VALUE *served;  /* the block's argument; NULL or 0: none */
    unsigned uses;
    bool called; /* heddle_runners_call has woken or started it, and it does not run yet */
    bool ending;
};

/* Starts a new runner, which looks at the ready list when the loop reaches its fiber; raises where no fiber can be made. */
void heddle_runner_start(heddle_sockets *sockets);

/* A description of what it serves, or nil. On any thread. */
VALUE heddle_runner_describe_object(const heddle_runner *runner);

/* -- runners.c: the list of all runners --------------------------------------------------- */

void heddle_runners_park_runner(heddle_runner *runner);
/* It was woken, but not by heddle_runners_call: takes it from the list of resting runners. */
void heddle_runners_take_out(heddle_runner *runner);
void heddle_runners_begin_to_serve(heddle_runner *runner);
void heddle_runners_end_to_serve(heddle_runner *runner);
/* Has the last request waited? Then more runners are called at once, so that all ready items begin in the same tick. */
void heddle_runners_adapt_batch(heddle_runners *runners, bool waited);
/* No fiber can be had now: ready items wait. */
void heddle_runners_call_later(heddle_sockets *sockets);

void Init_heddle_runner(VALUE net);

#endif
