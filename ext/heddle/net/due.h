#ifndef HEDDLE_DUE_H
#define HEDDLE_DUE_H

/* A time limit in the timer wheel of a Sockets, embedded in a connection, an exchange and so on. */

#include "net/idle_wheel.h"

#include <stdint.h>

typedef struct heddle_sockets heddle_sockets;
typedef struct heddle_due heddle_due;
struct heddle_due {
    heddle_idle_entry entry;
    int64_t at; /* CLOCK_MONOTONIC, ns; < 0: never */
    /* In the loop, up to two ticks of the wheel late. The record may be freed in it. */
    void (*passed)(heddle_due *due);
};

/* A new time limit, in place of the one before; `at` < 0: none. */
void heddle_due_set(heddle_sockets *sockets, heddle_due *due, int64_t at);
/* Takes it out of the wheel. Idempotent; to be called before its record is freed. */
void heddle_due_remove(heddle_sockets *sockets, heddle_due *due);

#endif
