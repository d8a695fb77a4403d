#pragma once

/*
 * Work sharing. A worker that computes without a pause hands off waiting requests to a worker whose loop is idle. While
 * its gate is closed (request_gate.h), the busy worker also hands off requests to a worker with a shorter queue. A
 * process with several loops shares no work.
 *
 * New connections go to workers with little load (scoreboard.h). But a connection remains with its worker, and after a
 * reload or a refork most clients are connected to one worker. So the load is shared by request as well.
 */

#include "net/connection.h"
#include "net/work_item.h"

/* In ns. A loop hands off a request after it was busy for this long, and the next one after the same time or later. */
#define HEDDLE_WORK_SHARING_AFTER INT64_C(4000000)

/*
 * Hands off the item's connection if another worker could serve the item sooner. `now` is from the coarse clock. The
 * item must not be in a list. Returns whether the connection was handed off. A connection that is not at rest (owner.h)
 * can't be handed off.
 */
bool heddle_work_share(heddle_sockets *sockets, heddle_work *work, int64_t now);
