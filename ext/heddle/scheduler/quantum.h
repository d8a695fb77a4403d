#ifndef HEDDLE_QUANTUM_H
#define HEDDLE_QUANTUM_H

/*
 * How much a request has computed, in time slices of preemption. A switch of fibers reads no clock for it. The fiber
 * that serves the request and the fibers that this one starts share one record. Uses no Ruby.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * How many slices of 10 ms a request may compute before the next one begins: 0.1 s, as long as Ruby lets a thread run
 * while others wait.
 */
enum {
    HEDDLE_QUANTUM_SLICES = 10,
};

typedef struct {
    unsigned request; /* the number of the current request */
    unsigned slices;  /* how many it has used up */
    bool counts;      /* it has begun and not ended, and its kind waits at the gate (net/gate.h) */
} heddle_quantum;

/* Of the fibers with this record, those of an earlier request count for none: they have outlived it. */
static inline bool heddle_quantum_is_left(const heddle_quantum *quantum, unsigned request)
{
    return quantum && quantum->counts && quantum->request == request && quantum->slices < HEDDLE_QUANTUM_SLICES;
}

static inline void heddle_quantum_use_slice(heddle_quantum *quantum, unsigned request)
{
    if (quantum && quantum->request == request && quantum->slices < HEDDLE_QUANTUM_SLICES)
        quantum->slices++;
}

#endif
