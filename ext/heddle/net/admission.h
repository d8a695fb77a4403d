#ifndef HEDDLE_ADMISSION_H
#define HEDDLE_ADMISSION_H

/*
 * How many are served at once. The others wait on the ready list, first come first served, for a bounded time; at its
* end is closed: a request that arrives then gets 503 at once. Before that, new connections stay in the kernel's queue.
 * Ruby sets the limit.
 */

#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t limit;          /* how many are served at once; 0: any number */
    size_t queue_limit;    /* how many may wait when so many are served */
    int64_t queue_timeout; /* how long, ns; < 0: for ever */
    uint64_t rejected_full, rejected_late;
} heddle_admission;

/* Why one that waits, or was about to, is not served. */
typedef enum {
    HEDDLE_QUEUE_FULL,
    HEDDLE_QUEUED_TOO_LONG,
    HEDDLE_QUEUE_ENDS, /* the sockets are about to close */
} heddle_overload;

#endif
