#ifndef HEDDLE_THREAD_CALLS_H
#define HEDDLE_THREAD_CALLS_H

/* Calls between the fiber of a job and the offload thread that runs it, while it runs. For threads.c alone. */

#include "offload/threads.h"

#include <pthread.h>
#include <setjmp.h>

struct heddle_offload_thread {
    pthread_t native;
    long id; /* the kernel's */
    pthread_cond_t answered;
    heddle_job *job;
    bool leave;
    unsigned interrupting; /* others that call its job's unblocking function: the job must not end meanwhile */
    jmp_buf left;          /* where a native function is left whose callback has raised */
    heddle_native_frames frames;
    heddle_offload_thread *next, *previous;
};

extern pthread_mutex_t heddle_threads_lock; /* of jobs, their queues and their threads */

/*
 * Under the lock before and after; without it while the library's own function runs, which may wait for a lock of the
 * library's. As Ruby does, that one is called once, and a signal is sent again.
 */
void heddle_thread_interrupt(heddle_job *job);

/* Runs the job's function on this thread. NULL, too, where one of its callbacks has raised. */
void *heddle_thread_call(heddle_offload_thread *thread, heddle_job *job);

#endif
