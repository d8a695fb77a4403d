#ifndef HEDDLE_POOL_SHARES_H
#define HEDDLE_POOL_SHARES_H

/*
 * Limits of pools over all workers, in the memory behind the scoreboard's slots. A pool has as many shares as its limit,
 * and each resource needs one. A share is taken by compare-and-swap and belongs to the slot of its worker; when the
 * worker has ended, the master releases what its slot has. No Ruby here. Any thread may call these.
 */

#include "net/scoreboard.h"

/* A worker that waits says so again within this time, ns; one that does not is held up or stopped, and nobody defers to it. */
#define HEDDLE_POOL_PATIENCE INT64_C(300000000)

/* The pool of this name, by a hash of it. -1: the scoreboard has no room for one more. */
int heddle_pool_open(const heddle_scoreboard *scoreboard, uint64_t key, uint32_t total);
/* False: none is free, or those that are belong to workers that have fewer and wait, or wait for longer. */
bool heddle_pool_take(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot, int64_t now);
/* Does nothing if the slot has none. */
void heddle_pool_return(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot);
/* This worker waits for a share: others that have more return one. Again and again until it has one. */
void heddle_pool_wait(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot, int64_t now);
void heddle_pool_end_wait(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot);
/* How many shares that other worker has which waits for one and has fewest; -1: no other waits. */
int heddle_pool_least_waiting(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot, int64_t now);
/* Shares that are taken, by all workers. */
uint32_t heddle_pool_taken(const heddle_scoreboard *scoreboard, uint32_t pool);
/* The worker of this slot has ended. By the master. */
void heddle_pool_release_slot(const heddle_scoreboard *scoreboard, uint32_t slot);

#endif
