#ifndef HEDDLE_RUNNERS_H
#define HEDDLE_RUNNERS_H

/*
 * The fibers that serve work items. A runner takes one ready item after another and waits while none is ready. When the
 * application waits in one runner, another one serves the ready items.
 */

#include "net/connection.h"

enum {
    HEDDLE_RUNNER_USES = 1000,   /* how many items a fiber serves before it is replaced */
    HEDDLE_RUNNERS_AT_REST = 4,  /* so many waiting runners are kept for ever, others while they are needed */
    HEDDLE_RUNNERS_AHEAD = 64,   /* how many are called at once, at most */
};

/* How long a runner serves before the loop's other fibers and events get their turn, ns. */
#define HEDDLE_RUNNER_SHARE INT64_C(20000000)

/* The interval at which runners that were not needed are ended, ns. */
#define HEDDLE_RUNNERS_TRIM INT64_C(250000000)

/* When to try again after no fiber could be made, ns. */
#define HEDDLE_RUNNERS_RETRY INT64_C(50000000)

typedef struct heddle_runner heddle_runner;

typedef struct {
    /* waiting for work; the last one comes first, because its stack is still in the processor's caches */
    heddle_runner *resting;
    size_t resting_count, least_resting;
    heddle_runner *serving;
    size_t serving_count;
    VALUE awaiting; /* the fiber to wake when no connection and no work is left, or 0 */
    size_t coming;          /* runners that were called and have not read the ready list yet */
    size_t ahead;           /* how many may be called at once */
    unsigned uses;          /* how many items a fiber serves, HEDDLE_RUNNER_USES or 1 */
    heddle_timer trim, retry;
} heddle_runners;

void heddle_runners_start(heddle_sockets *sockets, bool pooled);
/*
 * Called when the ready list is not empty: calls a runner, unless `ahead` of them are called already or admission
 * allows no more. Then a runner that completes an item reads the list again. Never raises.
 */
void heddle_runners_call(heddle_sockets *sockets);
/* The fibers of the serving runners, an Array. */
VALUE heddle_runners_list_fibers(heddle_sockets *sockets);
/* The same, each with its protocol's description of the request. */
VALUE heddle_runners_list_work(heddle_sockets *sockets);
/* Is there no connection, and does no runner serve one? */
bool heddle_runners_are_done(const heddle_sockets *sockets);
/* Called when a connection has ended: wakes the fiber that waits for the last one. */
void heddle_runners_check_end(heddle_sockets *sockets);
/* Ends the runners that wait for work. */
void heddle_runners_end_resting(heddle_sockets *sockets);

#endif
