#ifndef HEDDLE_HTTP_SLOWEST_H
#define HEDDLE_HTTP_SLOWEST_H

/*
 * The slowest answers of the last minutes, a bounded list. An answer that does not belong there costs two comparisons;
 * nothing is ever allocated.
 */

#include <stdbool.h>
#include <stdint.h>

enum {
    HEDDLE_SLOWEST = 16,
    HEDDLE_SLOWEST_TEXT = 200, /* bytes of a method, a space and a target */
};

/* A request that took less is never slow. */
#define HEDDLE_SLOWEST_LEAST INT64_C(1000000)
/* How long one stays on the list. */
#define HEDDLE_SLOWEST_KEPT INT64_C(300000000000)

typedef struct {
    int64_t at, taken; /* when it was answered, and how long that took: ns */
    int status;
    uint16_t size; /* of the text */
    char text[HEDDLE_SLOWEST_TEXT];
} heddle_slow;

typedef struct {
    int64_t floor; /* what took less does not come on the list … */
    int64_t until; /* … before this, when somebody leaves it; both 0 at first, so that the first one sets them */
    unsigned count;
    heddle_slow list[HEDDLE_SLOWEST]; /* in no order */
} heddle_slowest;

static inline bool heddle_slowest_concerns(const heddle_slowest *slowest, int64_t now, int64_t taken)
{
    return taken > slowest->floor || now >= slowest->until;
}

/* To be called for one that concerns the list; `now`: CLOCK_MONOTONIC, ns. */
void heddle_slowest_note(heddle_slowest *slowest, int64_t now, int64_t taken, int status, const char *method,
                         uint32_t method_size, const char *target, uint32_t target_size);
/* Those that have been on it for too long leave. */
void heddle_slowest_expire(heddle_slowest *slowest, int64_t now);

#endif
