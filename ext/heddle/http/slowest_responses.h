#pragma once

/*
 * A list of fixed size with the slowest responses of the last minutes. A response that does not enter the list costs
 * two comparisons. Nothing is ever allocated.
 */

#include "system.h"

enum {
    HEDDLE_SLOWEST = 16,
    HEDDLE_SLOWEST_TEXT = 200, /* bytes of a method, a space and a target */
};

/* In ns. Responses that took no longer than this are never listed. */
#define HEDDLE_SLOWEST_LEAST INT64_C(1000000)
/* How long an entry is kept, in ns. */
#define HEDDLE_SLOWEST_KEPT INT64_C(300000000000)

typedef struct {
    int64_t at, taken; /* when the response was complete, and its duration, in ns */
    int status;
    uint16_t size; /* bytes in `text` */
    char text[HEDDLE_SLOWEST_TEXT];
} heddle_slow;

typedef struct {
    int64_t floor; /* ns; until the time `until`, only longer durations enter the list */
    /*
     * When the next entry of a full list expires; INT64_MAX while the list is not full. `floor` and `until` are 0 at
     * first, so that the first response sets them.
     */
    int64_t until;
    unsigned count;
    heddle_slow list[HEDDLE_SLOWEST]; /* unordered */
} heddle_slowest;

/* Might the response enter the list? */
static inline bool heddle_slowest_concerns(const heddle_slowest *slowest, int64_t now, int64_t taken)
{
    return taken > slowest->floor || now >= slowest->until;
}

/* Call this if heddle_slowest_concerns returns true. `now`: CLOCK_MONOTONIC, ns. */
void heddle_slowest_note(heddle_slowest *slowest, int64_t now, int64_t taken, int status, const char *method,
                         uint32_t method_size, const char *target, uint32_t target_size);
/* Removes entries that are too old. */
void heddle_slowest_expire(heddle_slowest *slowest, int64_t now);
