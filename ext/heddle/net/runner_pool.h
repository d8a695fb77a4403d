#pragma once

/*
 * The fibers that serve work items. A runner takes one ready item after another and waits while none is ready. When the
 * application waits in one runner, another one serves the ready items: it is summoned at the end of the tick.
 *
 * To summon a runner is to wake an idle one, or else to start a new one. It is *coming* until it reads the ready list.
 */

#include "net/connection.h"

enum {
    HEDDLE_RUNNER_USES = 1000,   /* how many items a fiber serves before it is replaced */
    HEDDLE_RUNNERS_MIN_IDLE = 4,     /* the number of idle runners that are always kept */
};

/* How long a runner serves before the loop's other fibers and events get their turn, ns. */
#define HEDDLE_RUNNER_SHARE INT64_C(20000000)

/* The interval at which runners that were not needed are ended, ns. */
#define HEDDLE_RUNNERS_TRIM INT64_C(250000000)

/* When to try again after no fiber could be made, ns. */
#define HEDDLE_RUNNERS_RETRY INT64_C(50000000)

typedef struct heddle_runner heddle_runner;

typedef struct {
    /* the runners that wait for work; the latest comes first, because its stack is still in the processor's caches */
    heddle_runner *idle;
    size_t idle_count;
    size_t least_idle; /* the smallest idle_count since the timer `trim` was set: that many runners were never needed */
    heddle_runner *serving;
    size_t serving_count;
    size_t probing_count;  /* how many of the serving runners serve a health check */
    size_t excess_count;   /* what addresses have begun beyond their share, when the limit was higher or none */
    VALUE waiting_for_end; /* the fiber to wake when no connection and no work is left, or 0 */
    size_t coming;         /* runners that were summoned and have not read the ready list yet */
    heddle_timer trim, retry;
} heddle_runners;

/* Summons a runner unless one is coming. Never raises. */
void heddle_runners_summon(heddle_sockets *sockets);
/* Publishes this worker's load on the scoreboard: waiting requests count like begun ones. */
void heddle_runners_publish_load(heddle_sockets *sockets);
/* The fibers of the serving runners, an Array. */
VALUE heddle_runners_list_fibers(heddle_sockets *sockets);
/* Pairs of a serving runner's fiber and the description of its item, if the item's protocol has one. */
VALUE heddle_runners_list_work(heddle_sockets *sockets);
/* Is there no connection, and does no runner serve an item? */
bool heddle_runners_are_done(const heddle_sockets *sockets);
/* Called when a connection or an item has ended: if none is left, wakes the fiber `waiting_for_end`. */
void heddle_runners_wake_if_done(heddle_sockets *sockets);
/* Ends all idle runners. */
void heddle_runners_end_idle(heddle_sockets *sockets);
