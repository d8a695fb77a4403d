#pragma once

/*
 * A reserve is a standby worker, which accepts nothing while any other worker runs. When all of them are blocked, it
 * starts to accept clients, and connections that the watch threads of the blocked workers hand off. As soon as another
 * worker runs again, the reserve stops accepting and hands off its idle connections to running workers.
 *
 * A reserve does not start a request with a label (method and path without IDs) that blocks a worker now, because this
 * request could block the reserve, too. It keeps such requests in a separate list. When it stops serving, it hands them
 * off with the bytes that it has read.
 */

#include "net/ready_list.h"
#include "scheduler/loop.h"

/*
 * In ns. How long a worker must be blocked before a reserve is started, and how long all workers must be blocked before
 * a reserve serves.
 */
#define HEDDLE_RESERVE_AFTER INT64_C(100000000)
/* The interval in ns at which a reserve that serves reads the scoreboard, even without a notification. */
#define HEDDLE_RESERVE_CHECK_INTERVAL INT64_C(20000000)
/* The interval in ns at which a reserve that has stopped serving tries to hand off its remaining connections. */
#define HEDDLE_RESERVE_RETURN_INTERVAL INT64_C(200000000)

typedef struct {
    uint32_t rank; /* its rank among the reserves, 1 or more; 0: this worker is not a reserve, or is no longer one */
    bool serves;   /* it accepts and serves clients now */
    heddle_timer again;
    /* requests that it must not start, because a request with the same label blocks a worker */
    heddle_ready_list deferred;
    uint64_t activations; /* how often it has started to serve */
} heddle_reserve;

/* Makes this worker a reserve. Called before it listens. */
void heddle_reserve_enable(heddle_sockets *sockets, uint32_t rank);
/*
 * Makes this worker an ordinary one, if it is a reserve. Called when the worker drains, because it must then serve all
 * its requests.
 */
void heddle_reserve_disable(heddle_sockets *sockets);
/* Starts or stops serving, depending on whether the scoreboard shows all other workers as blocked. */
void heddle_reserve_check(heddle_sockets *sockets);

/* Returns whether this worker is a reserve that does not serve now. */
static inline bool heddle_reserve_parked(const heddle_reserve *reserve)
{
    return reserve->rank && !reserve->serves;
}

/*
 * Defers the work item if a request with its label blocks a worker. If so, returns true: the item is then in the list
 * `deferred`, or was rejected and may be freed.
 */
bool heddle_reserve_defer(heddle_sockets *sockets, heddle_work *work);
