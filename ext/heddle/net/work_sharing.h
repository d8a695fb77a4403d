#pragma once

/*
 * A worker that computes without a pause hands waiting requests off to a worker whose loop sleeps, or, while its own
 * gate is closed, to a worker with a shorter queue.
 *
 * New connections go to the worker with the fewest connections. But a client that keeps its connection stays with its
 * worker. After a reload or a refork, most clients are in one worker. So the load is shared by request as well.
 */

#include "net/connection.h"
#include "net/work_item.h"

/* How long a loop has to be awake before it shares, and how long it waits until it shares again, ns. */
#define HEDDLE_WORK_SHARING_AFTER INT64_C(4000000)

/*
 * Hands the item's connection off if another worker should serve it; `now` is from the coarse clock. The item must be
 * in no list. Returns true if the connection is gone, and false if it stays, for example because it is not at rest.
 */
bool heddle_work_share(heddle_sockets *sockets, heddle_work *work, int64_t now);
