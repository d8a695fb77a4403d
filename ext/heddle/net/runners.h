#ifndef HEDDLE_RUNNERS_H
#define HEDDLE_RUNNERS_H

/*
 * The fibers that serve connections. A runner takes one ready connection after another; while nothing is ready it
 * rests. As soon as one waits for something else, another takes over what is ready.
 */

#include "net/connection.h"

enum {
    HEDDLE_RUNNER_USES = 1000,   /* then its fiber is retired */
    HEDDLE_RUNNERS_AT_REST = 4,  /* that many are kept for ever, the others while they are used */
    HEDDLE_RUNNERS_AHEAD = 64,   /* that many are called at once at most */
};

/* How long a runner serves one after the other before it lets everything else have a turn. */
#define HEDDLE_RUNNER_SHARE INT64_C(20000000)

/* How often runners that nobody has needed since are let go. */
#define HEDDLE_RUNNERS_TRIM INT64_C(250000000)

/* When to try again after there was no room for another fiber. */
#define HEDDLE_RUNNERS_RETRY INT64_C(50000000)

typedef struct heddle_runner heddle_runner;

typedef struct {
    heddle_runner *resting; /* the last one to rest first: its stack is still in the caches */
    size_t resting_count, least_resting;
    heddle_runner *serving;
    size_t serving_count;
    VALUE awaiting; /* the fiber that is woken when nothing is left to be served, or 0 */
    size_t coming;          /* those that are about to look at the ready list */
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
/* The fibers of those that serve, an Array. */
VALUE heddle_runners_list_fibers(heddle_sockets *sockets);
/* The same, each with what its protocol says of what it serves. */
VALUE heddle_runners_list_work(heddle_sockets *sockets);
/* Is there no connection, and does nobody serve one? */
bool heddle_runners_are_done(const heddle_sockets *sockets);
/* A connection has ended: wakes who waits for the last one. */
void heddle_runners_check_end(heddle_sockets *sockets);
/* Those at rest end. */
void heddle_runners_dismiss(heddle_sockets *sockets);

#endif
