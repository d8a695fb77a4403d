#pragma once

/*
 * Timers of a loop: a 4-ary heap of records that the waiting code owns (mostly on a fiber's stack). Each record
 * contains its index in the heap, so removing it costs O(log n). Timers with equal deadlines expire in the order in
 * which they were pushed. Uses no Ruby.
 */

#include "system.h"

typedef struct heddle_timer heddle_timer;
typedef void heddle_timer_fn(heddle_timer *timer);

struct heddle_timer {
    int64_t deadline;    /* CLOCK_MONOTONIC, nanoseconds */
    heddle_timer_fn *fn; /* called once, after the timer has left the heap; must not block, raise or switch fibers */
    size_t slot;         /* index in the heap + 1; 0 while the timer is not in the heap */
    uint64_t number;     /* set by push: the number of earlier pushes */
};

typedef struct {
    heddle_timer **entries;
    size_t count, size;
    uint64_t pushes;
} heddle_timer_heap;

int heddle_timer_heap_push(heddle_timer_heap *heap, heddle_timer *timer); /* 0 or -ENOMEM */
void heddle_timer_heap_remove(heddle_timer_heap *heap, heddle_timer *timer); /* the timer need not be in the heap */
/* Returns the nearest deadline, or -1 if the heap is empty. */
int64_t heddle_timer_heap_next(const heddle_timer_heap *heap);
/* Removes each timer whose deadline is at or before `now`, and calls its `fn`. Returns the number of these timers. */
size_t heddle_timer_heap_expire(heddle_timer_heap *heap, int64_t now);
void heddle_timer_heap_free(heddle_timer_heap *heap);
