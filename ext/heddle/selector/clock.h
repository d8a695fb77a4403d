#pragma once

/* Clocks in nanoseconds. Any thread may call these functions. */

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

/* Reads CLOCK_MONOTONIC. */
static inline int64_t heddle_clock_now(void)
{
    return heddle_clock_read(CLOCK_MONOTONIC);
}

/* Reads CLOCK_MONOTONIC with a resolution of a few milliseconds. On Linux this costs almost nothing. */
static inline int64_t heddle_clock_coarse(void)
{
#ifdef CLOCK_MONOTONIC_COARSE
    return heddle_clock_read(CLOCK_MONOTONIC_COARSE);
#else
    return heddle_clock_now();
#endif
}

/*
 * Returns the time `duration` ns from now as an argument for pthread_cond_timedwait. `clock` is the clock of the
 * condition variable.
 */
static inline struct timespec heddle_clock_after(clockid_t clock, int64_t duration)
{
    int64_t end = heddle_clock_read(clock) + duration;
    return (struct timespec){.tv_sec = (time_t)(end / HEDDLE_SECOND), .tv_nsec = (long)(end % HEDDLE_SECOND)};
}
