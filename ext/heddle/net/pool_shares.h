#pragma once

/*
 * Limits a pool of resources (such as database connections) over all workers of a server. A pool's limit is its number
 * of shares. A worker needs one share for each resource that it opens. The shares are in shared memory, behind the
 * slots of the scoreboard (the shared memory with the load of each worker).
 *
 * A worker takes a share by compare-and-swap. The share then belongs to the worker's slot. When a worker has ended, the
 * master releases the shares of its slot. Uses no Ruby. Any thread may call these functions.
 */

#include "net/scoreboard.h"

/*
 * In ns. A worker that waits for a share calls heddle_pool_wait again within this time. If it has not called the
 * function for this long, it is stuck or stopped, and the other workers no longer wait behind it.
 */
#define HEDDLE_POOL_REPORT_TIMEOUT INT64_C(300000000)

/*
 * Returns the number of the pool with this hash of its name, and makes the pool if necessary. Sets its number of shares
 * to `total`, but at most HEDDLE_POOL_SHARES. Returns -1 if the scoreboard has no room for another pool.
 */
int heddle_pool_open(const heddle_scoreboard *scoreboard, uint64_t key, uint32_t total);
/*
 * Takes a share. Returns false if no share is free. Also returns false if waiting workers are to get the free shares
 * first: those with fewer shares than this worker, and those that have as many shares and have waited longer.
 */
bool heddle_pool_take(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot, int64_t now);
/* Gives one share back. Does nothing if the slot has no share. */
void heddle_pool_return(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot);
/*
 * Reports that this worker waits for a share, so that a worker with more shares gives one back. The worker repeats the
 * call until it has a share.
 */
void heddle_pool_wait(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot, int64_t now);
void heddle_pool_end_wait(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot);
/*
 * Returns the smallest number of shares that any other waiting worker has. Returns -1 if no other worker waits, or if a
 * share is free.
 */
int heddle_pool_least_waiting(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot, int64_t now);
/* Returns how many shares all workers have together. */
uint32_t heddle_pool_taken(const heddle_scoreboard *scoreboard, uint32_t pool);
/* Releases the shares of a slot whose worker has ended. Called by the master. */
void heddle_pool_release_slot(const heddle_scoreboard *scoreboard, uint32_t slot);
