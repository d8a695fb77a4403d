#ifndef HEDDLE_RUNNER_H
#define HEDDLE_RUNNER_H

/* One of the fibers that serve connections. */

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
    bool called; /* it is coming */
    bool ending;
};

/* A new one, which looks at the ready list in its turn; raises when no fiber can be had. */
void heddle_runner_start(heddle_sockets *sockets);

/* A description of what it serves, or nil. On any thread. */
VALUE heddle_runner_describe_object(const heddle_runner *runner);

/* -- runners.c: what it tells those that look after all of them --------------------------------------------------- */

void heddle_runners_park_runner(heddle_runner *runner);
/* It was woken by something else than a call. */
void heddle_runners_take_out(heddle_runner *runner);
void heddle_runners_begin_to_serve(heddle_runner *runner);
void heddle_runners_end_to_serve(heddle_runner *runner);
/* The more of them wait, the more runners are called at once: all that is ready is to begin in the same turn. */
void heddle_runners_adapt_batch(heddle_runners *runners, bool waited);
/* No fiber can be had now: ready items wait. */
void heddle_runners_call_later(heddle_sockets *sockets);

void Init_heddle_runner(VALUE net);

#endif
