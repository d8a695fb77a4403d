#pragma once

/* The calls between a job's fiber and the offload thread that runs it. For threads.c and thread_calls.c only. */

#include "offload/threads.h"

#include <setjmp.h>

struct heddle_offload_thread {
    pthread_t native;
    long id; /* the kernel's thread id */
    pthread_cond_t answered; /* a callback was answered, the job was abandoned, or an interruption has ended */
    heddle_job *job;
    bool leave; /* heddle_threads_serve has to return */
    /* how many threads call its job's unblocking function now; the job must not end meanwhile */
    unsigned interrupting;
    jmp_buf left;          /* where longjmp goes when a callback has raised */
    heddle_native_frames frames;
    heddle_offload_thread *next, *previous;
};

extern pthread_mutex_t heddle_threads_lock; /* Protects jobs, their queues and their threads. */

/*
 * Like heddle_threads_interrupt, for a caller that holds the lock. Releases the lock while the library's unblocking
 * function runs, because that may wait for a lock of the library. As in Ruby, that function is called once, and the
 * signal is sent repeatedly.
 */
void heddle_threads_interrupt_locked(heddle_job *job);

/* Runs the job's function on this thread. Also returns NULL when a callback has raised. */
void *heddle_thread_run_function(heddle_offload_thread *thread, heddle_job *job);
