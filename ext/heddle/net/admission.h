#pragma once

/*
 * Limits how many work items are served at once. Further items wait on the ready list, first come first served, for a
 * bounded time; when the queue is full, a new request gets 503 at once. Connections are accepted even then, because
 * clients and health checks would get no response in the kernel's queue. Ruby sets the limits.
 */

#include "system.h"

/* Health checks beyond these numbers, waiting and running ones together, are treated like other requests. */
enum {
    HEDDLE_MOST_PROBES = 256,
    HEDDLE_PROBES_OF_ADDRESS = 32,
};

typedef struct {
    size_t limit;          /* how many items are served at once; 0: any number */
    size_t queue_limit;    /* how many items may wait beyond the limit */
    int64_t queue_timeout; /* how long an item may wait, ns; < 0: forever */
    uint64_t rejected_full, rejected_late;
} heddle_admission;

/* Why an item is rejected. */
typedef enum {
    HEDDLE_QUEUE_FULL,
    HEDDLE_QUEUED_TOO_LONG,
    HEDDLE_CLIENT_LEFT,
    HEDDLE_QUEUE_ENDS, /* the server stops */
} heddle_overload;
