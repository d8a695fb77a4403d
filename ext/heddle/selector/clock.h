#pragma once

/* Clocks in nanoseconds, for any thread. */

#include "system.h"

enum {
    HEDDLE_SECOND = 1000000000,
};

static inline int64_t heddle_clock_read(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * HEDDLE_SECOND + now.tv_nsec;
}

/* CLOCK_MONOTONIC */
static inline int64_t heddle_clock_now(void)
{
    return heddle_clock_read(CLOCK_MONOTONIC);
}

/* CLOCK_MONOTONIC with a resolution of a few milliseconds, at almost no cost. */
static inline int64_t heddle_clock_coarse(void)
{
#ifdef CLOCK_MONOTONIC_COARSE
    return heddle_clock_read(CLOCK_MONOTONIC_COARSE);
#else
    return heddle_clock_now();
#endif
}

/*
 * The time at which `duration` will have passed, in the form of pthread_cond_timedwait, by the clock of the condition.
 */
static inline struct timespec heddle_clock_after(clockid_t clock, int64_t duration)
{
    int64_t end = heddle_clock_read(clock) + duration;
    return (struct timespec){.tv_sec = (time_t)(end / HEDDLE_SECOND), .tv_nsec = (long)(end % HEDDLE_SECOND)};
}
