#ifndef HEDDLE_IDLE_WHEEL_H
#define HEDDLE_IDLE_WHEEL_H

/*
 * Deadlines of very many records that mostly are not met: a hashed timer wheel. To put a record in and to take it
 * out is O(1). A record whose deadline moves on, as that of a connection does at each request, stays where it is: when
 * its slot comes up, its owner says the new deadline. No Ruby here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HEDDLE_IDLE_WHEEL_SLOTS = 1024, /* one revolution: 65.5 s; later deadlines go round again */
};

#define HEDDLE_IDLE_WHEEL_TICK INT64_C(64000000) /* ns */

typedef struct heddle_idle_entry heddle_idle_entry;
struct heddle_idle_entry {
    heddle_idle_entry *next;
    heddle_idle_entry **link; /* the link that points to it; NULL: not in the wheel */
    int64_t tick;             /* when it is due, in ticks, rounded up */
};

typedef struct {
    heddle_idle_entry *slots[HEDDLE_IDLE_WHEEL_SLOTS];
    uint64_t used[HEDDLE_IDLE_WHEEL_SLOTS / 64]; /* a bit for each slot that may have entries */
    size_t count;
    int64_t tick; /* all before it is done */
} heddle_idle_wheel;

/*
 * Called for a record whose time has come; it is out of the wheel. The new deadline (ns), or -1: it stays out. It may
 * put in and take out other records.
 */
typedef int64_t heddle_idle_fn(heddle_idle_entry *entry, void *data);

/* `now` and deadlines: CLOCK_MONOTONIC, nanoseconds. */
void heddle_idle_wheel_start(heddle_idle_wheel *wheel, int64_t now);
void heddle_idle_wheel_add(heddle_idle_wheel *wheel, heddle_idle_entry *entry, int64_t deadline);
void heddle_idle_wheel_remove(heddle_idle_wheel *wheel, heddle_idle_entry *entry); /* one not in it is fine */
/* When to advance next, or -1: the wheel is empty. Never later than a deadline that was put in, by a tick. */
int64_t heddle_idle_wheel_find_next(const heddle_idle_wheel *wheel);
/* Calls `fn` for all that are due. */
void heddle_idle_wheel_advance(heddle_idle_wheel *wheel, int64_t now, heddle_idle_fn *fn, void *data);

static inline bool heddle_idle_wheel_has(const heddle_idle_entry *entry)
{
    return entry->link != NULL;
}

#endif
