#ifndef HEDDLE_WORK_SHARING_H
#define HEDDLE_WORK_SHARING_H

/*
 * A worker with too much to do hands requests that wait for a runner off to workers that have less.
 *
 * New connections go to the worker with the fewest. But a client that keeps its connection stays with its worker, and
 * after a reload or a refork most of them are in one worker. So the load is shared by request as well.
 */

#include "net/connection.h"
#include "net/work.h"

#include <stdint.h>

/* How long a loop has to be awake before it shares, ns: the coarse clock's step, and longer than most requests. */
#define HEDDLE_WORK_SHARING_AFTER INT64_C(4000000)

/* How long another worker has time to take what this one shared, ns. Then this one may take it back. */
#define HEDDLE_WORK_SHARING_PATIENCE INT64_C(20000000)

/*
 * Hands the item's connection off if this loop has computed for a while and another worker's loop sleeps. `now` is from
 * the coarse clock. True: the connection is gone. For an item in no list. False also if its connection is not at rest.
 */
bool heddle_work_share_busy(heddle_sockets *sockets, heddle_work *work, int64_t now);
/*
 * Hands the item's connection off if other workers may serve more requests than they do. True: the connection is gone.
 * For an item that this worker's limit keeps waiting, whose connection the loop owns.
 */
bool heddle_work_share_waiting(heddle_sockets *sockets, heddle_work *work);
/* May another worker still take what this one has shared? */
bool heddle_work_shared_lately(const heddle_sockets *sockets);

#endif
