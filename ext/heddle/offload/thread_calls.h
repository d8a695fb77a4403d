#pragma once

/*
 * Calls between a job's fiber and the offload thread that runs the job: callbacks and interruptions. Used only by
 * threads.c and thread_calls.c.
 */

#include "offload/threads.h"

#include <setjmp.h>

struct heddle_offload_thread {
    pthread_t native; /* set by heddle_threads_serve */
    long id; /* the kernel's thread id */
    /* signalled when a callback has returned or raised, the job was abandoned, or an interruption has ended */
    pthread_cond_t answered;
    heddle_job *job;
    bool leave; /* heddle_threads_serve must return */
    bool interrupting; /* a thread calls the unblocking function of its job; the job must not end meanwhile */
    jmp_buf left;          /* where longjmp goes when a callback has raised, or when the job was abandoned in one */
    heddle_native_frames frames;
    heddle_offload_thread *next, *previous;
};

extern pthread_mutex_t heddle_threads_lock; /* Protects jobs, their queues and their threads. */

/*
 * Like heddle_threads_interrupt, for a caller that holds the lock. Releases the lock while the job's unblocking
 * function runs, because that may wait for a lock of the native library it belongs to. As in Ruby, the unblocking
 * function is called only once. If the job has HEDDLE_UNBLOCK_BY_SIGNAL instead, each interruption sends a signal.
 */
void heddle_threads_interrupt_locked(heddle_job *job);

/*
 * Runs the job's function on this thread. Also returns NULL if a callback has raised, or the job was abandoned in one.
 */
void *heddle_thread_run_function(heddle_offload_thread *thread, heddle_job *job);
