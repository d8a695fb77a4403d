#pragma once

/*
 * The gate decides when the next request begins. If every request began on arrival, requests that only compute would
 * take turns: none would end early, and each would keep its memory until nearly all of them end. So a request begins
 * only in one of three cases:
 *
 * - All requests that have begun have ended.
 * - At the end of a tick, after the loop has polled, no fiber is ready whose request has begun and is within its
 *   quantum (quantum.h). So all begun requests wait for something, or have computed for longer than most requests do.
 *   A fiber that is ready because its wait for the client has ended does not count. Otherwise many clients that read
 *   at the same time would keep the gate closed.
 * - The gate has been closed for HEDDLE_GATE_TIMEOUT. Without this timeout it could stay closed: CPU time counts
 *   towards the quantum only when a time slice is used up, so requests with many short waits may never use up their
 *   quantum, and one of them may be ready whenever the loop polls.
 *
 * The loop judges the gate once in each tick while requests wait. The decision is valid for the next tick: if the gate
 * is open, that tick may serve many requests, one after another, as long as they don't wait. Uses no Ruby.
 */

#include "system.h"

/*
 * In ns of CPU time of the loop's thread, so that the timeout is longer on a busy machine. It is two quanta
 * (scheduler/quantum.h).
 */
#define HEDDLE_GATE_TIMEOUT INT64_C(200000000)

typedef struct {
    bool closed;   /* the last decision: no request may begin */
    uint64_t tick; /* the last tick in which requests may begin */
    int64_t closed_at; /* when the gate was closed, in CPU time of the loop's thread, ns */
} heddle_gate;

/*
 * Decides whether requests may begin in `next_tick`, and returns the decision. `held` says that a fiber is ready whose
 * request has begun and is within its quantum. `cpu` is the CPU time of the loop's thread in ns; it is used only if
 * `held` is true.
 */
static inline bool heddle_gate_judge(heddle_gate *gate, bool held, int64_t cpu, uint64_t next_tick)
{
    if (held && !gate->closed)
        gate->closed_at = cpu;
    gate->closed = held && cpu - gate->closed_at < HEDDLE_GATE_TIMEOUT;
    if (!gate->closed)
        gate->tick = next_tick;
    return !gate->closed;
}

/* Returns whether a request may begin now. `begun` is the number of requests that have begun and not ended. */
static inline bool heddle_gate_admits(const heddle_gate *gate, size_t begun, uint64_t tick)
{
    return begun == 0 || gate->tick == tick;
}
