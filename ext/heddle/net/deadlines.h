#pragma once

/*
 * A time limit. It is embedded in a connection, an exchange or another record, and is kept in the heap of its
 * heddle_sockets.
 */

#include "scheduler/timer_heap.h"

/*
 * In ns. Deadlines are rounded up to a multiple of this, so that the loop does not wake up for each connection
 * separately.
 */
#define HEDDLE_DUE_INTERVAL INT64_C(64000000)

typedef struct heddle_sockets heddle_sockets;
typedef struct heddle_due heddle_due;
struct heddle_due {
    heddle_timer timer; /* its deadline may be earlier than `at` */
    int64_t at;         /* CLOCK_MONOTONIC, ns; < 0: no limit */
    /* Called in the loop when the time has passed, about 64 ms late at most. May free the record that contains this. */
    void (*passed)(heddle_due *due);
};

/* Sets a new time limit, which replaces the earlier one. `at` < 0 means no limit. */
void heddle_due_set(heddle_sockets *sockets, heddle_due *due, int64_t at);
/* Removes the time limit, if one is set. Must be called before the record that contains it is freed. */
void heddle_due_remove(heddle_sockets *sockets, heddle_due *due);
