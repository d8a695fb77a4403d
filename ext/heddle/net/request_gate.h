#pragma once

/*
 * The gate decides when the next request begins. If all requests began on arrival, requests that only compute would run
 * in turns: each would keep its memory until nearly all of them end, and none would end sooner. So a request begins in
 * one of three cases:
 * - no request has begun, or
 * - at the end of a tick, after the loop has polled, no fiber of a begun request within its quantum is ready: the
 *   begun requests wait for something, or have computed for longer than most requests do. Requests that have waited for
 *   their clients do not count, because many clients that read at the same time would keep the gate closed. Or
 * - the gate was closed while the loop has computed for HEDDLE_GATE_TIMEOUT: begun requests that wait often and
 *   briefly use up no slice, and one of them may be ready whenever the loop polls.
 *
 * The loop judges the gate once a tick, while requests wait. Its decision holds for the next tick, in which requests
 * that don't wait are served one after another. Uses no Ruby.
 */

#include "system.h"

/* ns of the thread's CPU time, so that it lasts longer on a busy machine; two quanta (scheduler/quantum.h) */
#define HEDDLE_GATE_TIMEOUT INT64_C(200000000)

typedef struct {
    bool closed;   /* the result of the last judgement */
    uint64_t tick; /* the last tick in which requests may begin */
    int64_t closed_at; /* CPU time of the loop's thread */
} heddle_gate;

/*
 * `held`: a fiber of a begun request within its quantum is ready. `cpu`: of the loop's thread, ns. Returns whether
 * requests may begin in `next_tick`.
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

/* May a request begin now? `begun`: how many have begun and not ended. */
static inline bool heddle_gate_admits(const heddle_gate *gate, size_t begun, uint64_t tick)
{
    return begun == 0 || gate->tick == tick;
}
