#ifndef HEDDLE_RESERVE_H
#define HEDDLE_RESERVE_H

/*
 * A reserve is a worker that accepts nothing while the others run. When all of them are held up it steps in: it
 * accepts, and accepts what their watch threads hand off. It steps back as soon as one of the others runs, and gives that
 * one the connections that are idle.
 *
 * A reserve does not start a request whose label holds up some worker: it could be the next one that is held up. It
 * keeps such requests in a list of their own until it steps back, and then gives them back as it read them.
 */

#include "net/ready_list.h"
#include "scheduler/loop.h"

/* How long all others are held up before a reserve steps in, ns. */
#define HEDDLE_RESERVE_PATIENCE INT64_C(100000000)
/* How often a reserve that serves looks at the scoreboard if nobody pokes it, ns. */
#define HEDDLE_RESERVE_AGAIN INT64_C(20000000)
/* How often one that has stepped back looks whether connections that it still has are idle, ns. */
#define HEDDLE_RESERVE_RETURN INT64_C(200000000)

typedef struct {
    uint32_t rank; /* among the reserves, from 1 on; 0: this is none, or is one no more */
    bool serves;   /* it has stepped in */
    heddle_timer again;
    heddle_ready_list held; /* those that it does not start */
    uint64_t steps_in, held_back;
} heddle_reserve;

/* This worker is a reserve. Before it listens. */
void heddle_reserve_begin(heddle_sockets *sockets, uint32_t rank);
/* It serves whatever it has, and is no reserve any more: it drains. Idempotent. */
void heddle_reserve_end(heddle_sockets *sockets);
/* Steps in or back, as the scoreboard says. */
void heddle_reserve_check(heddle_sockets *sockets);

/* May it have more to do now? An ordinary worker always may. */
static inline bool heddle_reserve_parked(const heddle_reserve *reserve)
{
    return reserve->rank && !reserve->serves;
}

/*
 * Does the reserve hold back this work item, which a runner was about to start? Then it is in the list of those, or was
 * rejected and may be gone.
 */
bool heddle_reserve_holds_back(heddle_sockets *sockets, heddle_work *work);

#endif
