#pragma once

/*
 * A reserve is a worker that accepts nothing while the others run. When all of them are blocked, it starts to accept
 * clients, and connections that the watch threads of the others hand off. As soon as one of the others runs, the
 * reserve stops, and hands its idle connections off to that worker.
 *
 * A reserve does not start a request whose label blocks a worker, because that request could block the reserve, too. It
 * keeps such requests in a separate list. When it stops serving, it hands them off with the bytes that it has read.
 */

#include "net/ready_list.h"
#include "scheduler/loop.h"

/* ns. How long a worker must be blocked before a reserve is started, and all of them before one serves. */
#define HEDDLE_RESERVE_AFTER INT64_C(100000000)
/* The interval at which a serving reserve reads the scoreboard without a notification, ns. */
#define HEDDLE_RESERVE_CHECK_INTERVAL INT64_C(20000000)
/* A reserve that has stopped serving checks at this interval (ns) whether it still has idle connections to return. */
#define HEDDLE_RESERVE_RETURN_INTERVAL INT64_C(200000000)

typedef struct {
    uint32_t rank; /* its rank among the reserves, from 1 on; 0: this worker is not a reserve (any more) */
    bool serves;   /* it accepts and serves */
    heddle_timer again;
    heddle_ready_list deferred; /* requests that it must not start, because their label blocks a worker */
    uint64_t activations;
} heddle_reserve;

/* Makes this worker a reserve. Call this before it listens. */
void heddle_reserve_enable(heddle_sockets *sockets, uint32_t rank);
/*
 * Makes this reserve an ordinary worker. Called when it drains, because then it must serve all its requests.
 * Idempotent.
 */
void heddle_reserve_disable(heddle_sockets *sockets);
/* Starts or stops serving, as the scoreboard demands. */
void heddle_reserve_check(heddle_sockets *sockets);

/* Is this a reserve that does not serve now? */
static inline bool heddle_reserve_parked(const heddle_reserve *reserve)
{
    return reserve->rank && !reserve->serves;
}

/* Does the reserve defer this work item? Then the item is in the list `deferred`, or was rejected and may be freed. */
bool heddle_reserve_defer(heddle_sockets *sockets, heddle_work *work);
