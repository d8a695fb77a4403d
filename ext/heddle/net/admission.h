#pragma once

/*
 * Limits how many work items (requests, and callbacks such as a WebSocket's events) are served at the same time.
 * Further items wait for a limited time in ready lists, whose order is fair between client addresses (ready_list.h).
 * When the queue is full, a new request gets 503 immediately. The server accepts connections even then, because clients
 * and health checks would get no response while they wait in the kernel's queue. Ruby code sets the limits.
 */

#include "system.h"

/*
 * The maximum number of health checks that wait or run: from all addresses together, and from one address. Further
 * health checks are treated like other requests.
 */
enum {
    HEDDLE_MOST_PROBES = 256,
    HEDDLE_PROBES_OF_ADDRESS = 32,
};

#define HEDDLE_UNLIMITED_ITEMS (SIZE_MAX / 2) /* two such numbers can be added */

typedef struct {
    size_t limit;          /* how many items may be served at the same time; 0: no limit */
    size_t queue_limit;    /* how many items may wait */
    int64_t queue_timeout; /* how long an item may wait, ns; < 0: no limit */
    uint64_t rejected_full, rejected_late;
} heddle_admission;

/* Why an item is rejected. */
typedef enum {
    HEDDLE_QUEUE_FULL,
    HEDDLE_QUEUED_TOO_LONG,
    HEDDLE_CLIENT_LEFT,
    HEDDLE_QUEUE_ENDS, /* the server stops */
} heddle_overload;
