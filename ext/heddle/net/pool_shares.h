#pragma once

/*
 * Limits of pools over all workers, in the shared memory behind the scoreboard's slots. A pool's limit is its number of
 * shares, and each of its resources needs one share. A share is taken by compare-and-swap and belongs to the slot of
 * its worker; when a worker has ended, the master releases the shares of its slot. Uses no Ruby. Any thread may call
 * these functions.
 */

#include "net/scoreboard.h"

/*
 * ns. A waiting worker reports again within this time. Otherwise it is stuck or stopped, and the others no longer let
 * it go first.
 */
#define HEDDLE_POOL_REPORT_TIMEOUT INT64_C(300000000)

/* Finds or makes the pool with this hash of its name. Returns -1 if the scoreboard has no room for another pool. */
int heddle_pool_open(const heddle_scoreboard *scoreboard, uint64_t key, uint32_t total);
/*
 * Takes a share. Returns false if no share is free, or if the free shares are for waiting workers that have fewer
 * shares or have waited longer.
 */
bool heddle_pool_take(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot, int64_t now);
/* Returns a share. Does nothing if the slot has none. */
void heddle_pool_return(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot);
/*
 * Reports that this worker waits for a share, so that workers with more shares return one. Repeat the call until the
 * worker has a share.
 */
void heddle_pool_wait(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot, int64_t now);
void heddle_pool_end_wait(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot);
/*
 * The smallest number of shares of any other worker that waits for one more; -1 if none waits, or a share is free.
 */
int heddle_pool_least_waiting(const heddle_scoreboard *scoreboard, uint32_t pool, uint32_t slot, int64_t now);
/* How many shares all workers have. */
uint32_t heddle_pool_taken(const heddle_scoreboard *scoreboard, uint32_t pool);
/* Releases the shares of a slot whose worker has ended. Called by the master. */
void heddle_pool_release_slot(const heddle_scoreboard *scoreboard, uint32_t slot);
