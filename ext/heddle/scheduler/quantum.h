#pragma once

/*
 * How much a request has computed. It is counted where a fiber has used up its time slice, so that a switch of fibers
 * reads no clock for it. The fiber that serves the request and the fibers that this one starts share one record. Uses
 * no Ruby.
 */

#include "system.h"

/* ns that a request may compute before the next one begins: as long as Ruby lets a thread run while others wait. */
#define HEDDLE_QUANTUM INT64_C(100000000)
/* The most that counts of one slice, ns. */
#define HEDDLE_QUANTUM_SLICE INT64_C(10000000)

typedef struct {
    unsigned request; /* the number of the current request */
    bool counts;      /* it has begun and not ended, and its kind waits at the gate (net/gate.h) */
    int64_t used;     /* CPU time, ns */
} heddle_quantum;

/* Fibers with this record that an earlier request has left behind count for none. */
static inline bool heddle_quantum_is_left(const heddle_quantum *quantum, unsigned request)
{
    return quantum && quantum->counts && quantum->request == request && quantum->used < HEDDLE_QUANTUM;
}

/* A slice has ended; `cpu`: what the thread has computed since the last one ended, in all fibers, ns. */
static inline void heddle_quantum_use_slice(heddle_quantum *quantum, unsigned request, int64_t cpu)
{
    if (quantum && quantum->request == request)
        quantum->used += cpu < HEDDLE_QUANTUM_SLICE ? cpu : HEDDLE_QUANTUM_SLICE;
}
