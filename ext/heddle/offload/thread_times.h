#pragma once

/* Asks the system how a thread has spent its time. */

#include "system.h"

/* How often a thread has waited, and how often the kernel has given its core to another thread. */
typedef struct {
    long waited, made_to_wait;
} heddle_thread_pauses;

/* Returns the counts of the calling thread. */
heddle_thread_pauses heddle_thread_pauses_now(void);
/*
 * Returns how many of the `wall` ns since `before` the calling thread has spent on computing, including the time in
 * which it was ready to compute but had no core. `cpu`: how many of these ns it had a core. Returns -1 if the result is
 * unknown because the machine was busy.
 */
int64_t heddle_thread_computed(int64_t cpu, int64_t wall, heddle_thread_pauses before);
/* Does the thread with this kernel id sleep? A thread that only waits for a core does not sleep. */
bool heddle_thread_sleeps(long id);
