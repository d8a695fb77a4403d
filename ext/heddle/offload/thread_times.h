#pragma once

/* Reads from the system how a thread has spent its time. */

#include "system.h"

/* How often a thread has waited, and how often the kernel gave its core to another one. */
typedef struct {
    long waited, made_to_wait;
} heddle_thread_pauses;

/* The counts of the calling thread. */
heddle_thread_pauses heddle_thread_pauses_now(void);
/*
 * How many of the `wall` ns since `before` the calling thread has computed. It had a core for `cpu` of them. Returns -1
 * if that is unknown because the machine was busy.
 */
int64_t heddle_thread_computed(int64_t cpu, int64_t wall, heddle_thread_pauses before);
/* Does the thread with this kernel id sleep? A thread that waits for a core does not, however busy the machine is. */
bool heddle_thread_sleeps(long id);
