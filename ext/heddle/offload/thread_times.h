#ifndef HEDDLE_OFFLOAD_THREAD_TIMES_H
#define HEDDLE_OFFLOAD_THREAD_TIMES_H

/* The system's figures of how a thread spends its time. */

#include <stdbool.h>
#include <stdint.h>

/* How often a thread waited for something, and how often it had to give up its core to others. */
typedef struct {
    long waited, made_to_wait;
} heddle_thread_pauses;

/* Of the calling thread. */
heddle_thread_pauses heddle_thread_pauses_now(void);
/*
 * How much of the wall time the calling thread has computed since `before`, in ns, when it had a core for `cpu` of it;
 * -1: nothing can be said, because the machine was busy.
 */
int64_t heddle_thread_computed(int64_t cpu, int64_t wall, heddle_thread_pauses before);
/* Does the thread with the kernel's number sleep? One that waits for a core does not, however busy the machine is. */
bool heddle_thread_sleeps(long id);

#endif
