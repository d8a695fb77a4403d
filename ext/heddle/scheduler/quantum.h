#pragma once

/*
 * Counts the CPU time of a request. It is counted only when a fiber has used up its time slice, so switches of fibers
 * need not read a clock. The fiber that serves the request shares one heddle_quantum with the fibers that it starts.
 * Uses no Ruby.
 */

#include "system.h"

/* In ns. How long a request may compute before the next one begins. Equal to the time slice of Ruby's threads. */
#define HEDDLE_QUANTUM INT64_C(100000000)
/* The maximum CPU time that is counted for one slice, ns. */
#define HEDDLE_QUANTUM_SLICE INT64_C(10000000)

typedef struct {
    unsigned request; /* the number of the current request */
    bool counts; /* the request runs, and is of a kind that may have to wait before it begins (net/request_gate.h) */
    int64_t used;     /* CPU time, ns */
} heddle_quantum;

/*
 * Has the request any of its quantum left? Returns false if the request's time is not counted, or if the request has
 * ended, although the fiber still works for it.
 */
static inline bool heddle_quantum_is_left(const heddle_quantum *quantum, unsigned request)
{
    return quantum && quantum->counts && quantum->request == request && quantum->used < HEDDLE_QUANTUM;
}

/* Called when a slice has ended. `cpu`: CPU time of the thread, in all fibers, since the previous slice ended, ns. */
static inline void heddle_quantum_use_slice(heddle_quantum *quantum, unsigned request, int64_t cpu)
{
    if (quantum && quantum->request == request)
        quantum->used += cpu < HEDDLE_QUANTUM_SLICE ? cpu : HEDDLE_QUANTUM_SLICE;
}
