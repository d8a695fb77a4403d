#pragma once

/* A time limit in the timer wheel of a Sockets, embedded in a connection, an exchange and so on. */

#include "net/idle_wheel.h"

typedef struct heddle_sockets heddle_sockets;
typedef struct heddle_due heddle_due;
struct heddle_due {
    heddle_idle_entry entry;
    int64_t at; /* CLOCK_MONOTONIC, ns; < 0: none */
    /* Called in the loop, up to two ticks of the wheel late. May free the record. */
    void (*passed)(heddle_due *due);
};

/* Sets a new time limit, which replaces the earlier one. `at` < 0 means none. */
void heddle_due_set(heddle_sockets *sockets, heddle_due *due, int64_t at);
/* Removes the time limit. Idempotent; must be called before the record is freed. */
void heddle_due_remove(heddle_sockets *sockets, heddle_due *due);
