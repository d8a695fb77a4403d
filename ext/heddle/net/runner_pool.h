#pragma once

/*
 * The fibers that serve work items. A runner serves one ready item after another, and waits while no item is ready. If
 * the application waits in one runner, another runner, which is summoned at the end of the tick, serves the ready
 * items.
 *
 * To summon a runner means to wake an idle one, or else to start a new one. A runner that was summoned is *coming*
 * until it reads the ready list.
 */

#include "net/connection.h"

enum {
    HEDDLE_RUNNER_USES = 1000,   /* the maximum number of work items that a fiber serves before it is replaced */
    HEDDLE_RUNNERS_MIN_IDLE = 4, /* the number of idle runners that trimming always keeps */
};

/* How long a runner serves before the loop's other fibers and events get their turn, in ns. */
#define HEDDLE_RUNNER_SHARE INT64_C(20000000)

/* In ns. Each time that this interval has passed, idle runners that were not needed during the interval are ended. */
#define HEDDLE_RUNNERS_TRIM INT64_C(250000000)

/* In ns. If no fiber could be made for a runner, this time passes before the next attempt. */
#define HEDDLE_RUNNERS_RETRY INT64_C(50000000)

typedef struct heddle_runner heddle_runner;

typedef struct {
    /*
     * The runners that wait for work. The runner that became idle last is first in the list, because its stack is
     * probably still in the processor's caches.
     */
    heddle_runner *idle;
    size_t idle_count;
    size_t least_idle; /* the smallest idle_count since the timer `trim` was set: this many runners were never needed */
    heddle_runner *serving;
    size_t serving_count;
    size_t probing_count;  /* how many of the serving runners serve a health check */
    /*
     * how many of the items that are being served exceed the share of the limit that one client address may use
     * (admission.c): they began while the limit was higher, or while there was no limit
     */
    size_t excess_count;
    VALUE waiting_for_end; /* the Fiber to wake when heddle_runners_are_done returns true, or 0 */
    size_t coming;         /* the number of runners that were summoned and have not read the ready list yet */
    heddle_timer trim, retry;
} heddle_runners;

/* Summons a runner, unless one is already coming. Never raises. */
void heddle_runners_summon(heddle_sockets *sockets);
/* Publishes this worker's load on the scoreboard (scoreboard.h). The load includes waiting work items. */
void heddle_runners_publish_load(heddle_sockets *sockets);
/* Returns an Array of the fibers of the serving runners. */
VALUE heddle_runners_list_fibers(heddle_sockets *sockets);
/*
 * Returns an Array of pairs: the fiber of a serving runner, and the description of its item. Leaves out items without a
 * description.
 */
VALUE heddle_runners_list_work(heddle_sockets *sockets);
/* Returns whether no connection is left, and no runner serves an item. */
bool heddle_runners_are_done(const heddle_sockets *sockets);
/* Called when a connection or an item has ended. If heddle_runners_are_done, wakes `waiting_for_end`. */
void heddle_runners_wake_if_done(heddle_sockets *sockets);
/* Ends all idle runners. */
void heddle_runners_end_idle(heddle_sockets *sockets);
