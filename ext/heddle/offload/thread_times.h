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
 * Returns how long the calling thread has computed in the `wall` ns since `before`. `cpu` is its CPU time since then.
 * Returns `cpu` if that is more than 70% of `wall`. Otherwise returns `wall` if the thread has not waited at all: then
 * it was ready to compute all the time, but sometimes had no core. In all other cases returns `cpu`, or -1 (unknown) if
 * the kernel has also given the thread's core to another thread.
 */
int64_t heddle_thread_computed(int64_t cpu, int64_t wall, heddle_thread_pauses before);
/* Does the thread with this kernel id sleep? A thread that only waits for a core does not sleep. */
bool heddle_thread_sleeps(long id);
