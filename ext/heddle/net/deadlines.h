#pragma once

/* A time limit among those of a Sockets, embedded in a connection, an exchange and so on. */

#include "scheduler/timer_heap.h"

/* ns. Deadlines are rounded up to a multiple of this, so the loop does not wake up for each of many connections. */
#define HEDDLE_DUE_INTERVAL INT64_C(64000000)

typedef struct heddle_sockets heddle_sockets;
typedef struct heddle_due heddle_due;
struct heddle_due {
    heddle_timer timer; /* its deadline may be earlier than `at` */
    int64_t at;         /* CLOCK_MONOTONIC, ns; < 0: none */
    /* Called in the loop, up to 64 ms late. May free the record. */
    void (*passed)(heddle_due *due);
};

/* Sets a new time limit, which replaces the earlier one. `at` < 0 means none. */
void heddle_due_set(heddle_sockets *sockets, heddle_due *due, int64_t at);
/* Removes the time limit. Idempotent; must be called before the record is freed. */
void heddle_due_remove(heddle_sockets *sockets, heddle_due *due);
