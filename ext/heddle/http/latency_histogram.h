#pragma once

/*
 * A histogram of durations. Each power of two has four buckets, so that the upper bound of a bucket is at most a
 * quarter above its lower bound. The first and the last bucket are wider. An observation costs a few instructions and
 * no memory.
 */

#include "system.h"

enum {
    HEDDLE_LATENCY_FIRST = 10, /* the first bucket ends at 2^10 ns, about a microsecond */
    HEDDLE_LATENCY_OCTAVES = 27, /* the second-last bucket ends at 2^37 ns, about 137 s; the last one has no end */
    HEDDLE_LATENCY_BUCKETS = HEDDLE_LATENCY_OCTAVES * 4 + 2,
};

typedef struct {
    uint64_t counts[HEDDLE_LATENCY_BUCKETS];
    uint64_t sum; /* ns */
} heddle_latency;

/* Returns the bucket of a duration. */
static inline unsigned heddle_latency_bucket(uint64_t ns)
{
    if (ns < UINT64_C(1) << HEDDLE_LATENCY_FIRST)
        return 0;
    unsigned power = 63 - (unsigned)__builtin_clzll(ns);
    unsigned bucket = (power - HEDDLE_LATENCY_FIRST) * 4 + (unsigned)(ns >> (power - 2) & 3) + 1;
    return bucket < HEDDLE_LATENCY_BUCKETS ? bucket : HEDDLE_LATENCY_BUCKETS - 1;
}

/* Returns the upper bound of a bucket in ns; UINT64_MAX for the last bucket. */
static inline uint64_t heddle_latency_end(unsigned bucket)
{
    if (bucket >= HEDDLE_LATENCY_BUCKETS - 1)
        return UINT64_MAX;
    return (UINT64_C(4) + bucket % 4) << (HEDDLE_LATENCY_FIRST - 2 + bucket / 4);
}

static inline void heddle_latency_add(heddle_latency *latency, int64_t ns)
{
    uint64_t taken = ns > 0 ? (uint64_t)ns : 0;
    latency->counts[heddle_latency_bucket(taken)]++;
    latency->sum += taken;
}
