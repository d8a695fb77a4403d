#pragma once

/*
 * A worker that computes without a pause hands requests that wait for a runner off to a worker whose loop sleeps; or,
 * while its gate is closed, to one with a shorter queue.
 *
 * New connections go to the worker with the fewest. But a client that keeps its connection stays with its worker, and
 * after a reload or a refork most of them are in one worker. So the load is shared by request as well.
 */

#include "net/connection.h"
#include "net/work.h"

/* How long a loop has to be awake before it shares, and how long it waits until it shares again, ns. */
#define HEDDLE_WORK_SHARING_AFTER INT64_C(4000000)

/*
 * Hands the item's connection off if another worker should serve it; `now` is from the coarse clock. True: the
 * connection is gone. For an item in no list. False also if its connection is not at rest.
 */
bool heddle_work_share(heddle_sockets *sockets, heddle_work *work, int64_t now);
