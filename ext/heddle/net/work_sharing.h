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

/* In ns. How long a loop must be busy before it hands off a request, and the minimum time between two such handoffs. */
#define HEDDLE_WORK_SHARING_AFTER INT64_C(4000000)

/*
 * Hands off the item's connection if another worker could serve the item sooner. `now` is from the coarse clock. The
 * item must not be in a list. Returns whether the connection was handed off. This is not possible, for example, if the
 * connection is not at rest (owner.h).
 */
bool heddle_work_share(heddle_sockets *sockets, heddle_work *work, int64_t now);
