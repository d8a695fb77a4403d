#pragma once

/*
 * A hashed timer wheel for very many deadlines, most of which never expire. Adding and removing is O(1). A record whose
 * deadline becomes later, as a connection's does at each request, stays in its slot. When the slot comes up, the
 * callback returns the new deadline. Uses no Ruby.
 */

#include "system.h"

enum {
    HEDDLE_IDLE_WHEEL_SLOTS = 1024, /* one revolution takes 65.5 s; records with a later deadline stay for several */
};

#define HEDDLE_IDLE_WHEEL_TICK INT64_C(64000000) /* ns */

typedef struct heddle_idle_entry heddle_idle_entry;
struct heddle_idle_entry {
    heddle_idle_entry *next;
    heddle_idle_entry **link; /* the pointer that refers to this entry; NULL: not in the wheel */
    int64_t tick;             /* its deadline, in ticks, rounded up */
};

typedef struct {
    heddle_idle_entry *slots[HEDDLE_IDLE_WHEEL_SLOTS];
    heddle_idle_entry *due; /* due entries that exceeded the limit of a call of heddle_idle_wheel_advance */
    uint64_t used[HEDDLE_IDLE_WHEEL_SLOTS / 64]; /* a bit for each slot that may have entries */
    size_t count;
    int64_t tick; /* all earlier ticks have expired */
} heddle_idle_wheel;

/*
 * Called for a record whose deadline has passed; it was removed from the wheel. Returns the new deadline (ns), or -1 if
 * there is none. May add and remove other records.
 */
typedef int64_t heddle_idle_fn(heddle_idle_entry *entry, void *data);

/* `now` and deadlines: CLOCK_MONOTONIC, nanoseconds. */
void heddle_idle_wheel_start(heddle_idle_wheel *wheel, int64_t now);
void heddle_idle_wheel_add(heddle_idle_wheel *wheel, heddle_idle_entry *entry, int64_t deadline);
/* does nothing if the entry is not in the wheel */
void heddle_idle_wheel_remove(heddle_idle_wheel *wheel, heddle_idle_entry *entry);
/*
 * Returns the time at which to advance next, at most one tick after the earliest deadline; 0: at once; -1: the wheel is
 * empty.
 */
int64_t heddle_idle_wheel_find_next(const heddle_idle_wheel *wheel);
/* Calls `fn` for at most `most` due entries. The next call continues with the others. */
void heddle_idle_wheel_advance(heddle_idle_wheel *wheel, int64_t now, unsigned most, heddle_idle_fn *fn, void *data);

static inline bool heddle_idle_wheel_has(const heddle_idle_entry *entry)
{
    return entry->link != NULL;
}
