#ifndef HEDDLE_RUNNERS_H
#define HEDDLE_RUNNERS_H

/*
 * The fibers that serve connections. A runner takes one ready work item after another and rests while
 * none is ready. When the application of one waits, another runner serves the items that are ready.
 */

#include "net/connection.h"

enum {
    HEDDLE_RUNNER_USES = 1000,   /* then its fiber is retired */
    HEDDLE_RUNNERS_AT_REST = 4,  /* so many are kept for ever, the others while they are used */
    HEDDLE_RUNNERS_AHEAD = 64,   /* at most so many are called at once */
};

/* How long a runner serves before the loop's other fibers and events have their turn: ns. */
#define HEDDLE_RUNNER_SHARE INT64_C(20000000)

/* How often runners that were not needed since the last time are ended: ns. */
#define HEDDLE_RUNNERS_TRIM INT64_C(250000000)

/* When to try again after no fiber could be made: ns. */
#define HEDDLE_RUNNERS_RETRY INT64_C(50000000)

typedef struct heddle_runner heddle_runner;

typedef struct {
    heddle_runner *resting; /* the last one to rest first: its stack is still in the caches */
    size_t resting_count, least_resting;
    heddle_runner *serving;
    size_t serving_count;
    VALUE awaiting; /* the fiber that is woken when nothing is left to be served, or 0 */
    size_t coming;          /* called, and about to look at the ready list */
    size_t ahead;           /* how many may be coming at once */
    unsigned uses;          /* how many connections a fiber serves, HEDDLE_RUNNER_USES or 1 */
    heddle_timer trim, retry;
} heddle_runners;

void heddle_runners_start(heddle_sockets *sockets, bool pooled);
/*
 * The ready list is not empty: starts a runner now. At the limit a runner that completes an item looks at the list
 * again. Never raises.
 */
void heddle_runners_call(heddle_sockets *sockets);
/* The fibers of the runners that serve, an Array. */
VALUE heddle_runners_list_fibers(heddle_sockets *sockets);
/* The same, each with its protocol's description of the request. */
VALUE heddle_runners_list_work(heddle_sockets *sockets);
/* Is there no connection, and does nobody serve one? */
bool heddle_runners_are_done(const heddle_sockets *sockets);
/* A connection has ended: wakes the fiber that waits for the last one. */
void heddle_runners_check_end(heddle_sockets *sockets);
/* Those at rest end. */
void heddle_runners_dismiss(heddle_sockets *sockets);

#endif
