#pragma once

/*
 * A job: one native call that an offload thread runs for a fiber. The record lies on the fiber's own stack, so the
 * fiber must not return from the call while another thread uses the record (see call.c). Uses no Ruby.
 */

#include "system.h"

typedef struct heddle_job heddle_job;
typedef struct heddle_offload_thread heddle_offload_thread;

typedef enum {
    HEDDLE_JOB_QUEUED,
    HEDDLE_JOB_RUNNING,
    HEDDLE_JOB_CALLING_BACK, /* its thread waits until the fiber has run a callback for it */
    HEDDLE_JOB_ENDED,
} heddle_job_state;

/*
 * Like rb_unblock_function_t, Ruby's type for a function that ends a native call early. The value -1 stands for Ruby's
 * two predefined functions (RUBY_UBF_IO, RUBY_UBF_PROCESS), which send a signal that makes system calls return.
 */
typedef void heddle_unblock(void *data);
#define HEDDLE_UNBLOCK_BY_SIGNAL ((heddle_unblock *)-1)

struct heddle_job {
    void *(*function)(void *data);
    void *data;
    heddle_unblock *unblock; /* ends the function early; NULL: the function always runs to its end */
    void *unblock_data;
    bool core;     /* the function is one of Ruby's own, a "core function" */
    bool on_descriptor; /* the function uses fd */
    int fd;
    /*
     * the function is a core function that rarely waits, such as opening a file; a few such jobs may run in addition to
     * the limit
     */
    bool prompt;
    bool computes; /* the function is expected to compute; at most one such job runs for each processor */
    bool brief;    /* the function is expected to take a few microseconds, so its CPU time is not measured */
    /* the job is brief, and a processor is free for it; so the loop spins until the job ends (scheduler/spin.h) */
    bool worth_spinning;

    /*
     * Removes and returns the errors that the function left in OpenSSL's queue for this thread (openssl_errors.h).
     * Called on the job's thread. May be NULL.
     */
    struct heddle_openssl_errors *(*take_errors)(void);
    struct heddle_openssl_errors *errors;

    void *result;
    int error;                   /* errno after the function */
    int64_t queued_at, began;    /* CLOCK_MONOTONIC, ns */
    int64_t wall;                /* how long the function ran, ns */
    /*
     * How long the function computed, ns, as heddle_thread_computed (thread_times.h) finds it. < 0: unknown, or not
     * measured, because the job was brief
     */
    int64_t cpu;

    _Atomic int state;
    heddle_offload_thread *thread;
    heddle_job *next, *previous; /* the links of the queue */
    /* Called on the job's thread when the job has ended or calls back, under heddle_threads_lock. */
    void (*notify)(heddle_job *job);

    void *(*callback)(void *data);
    void *callback_data, *callback_result;
    /* the exception (a VALUE, which a stack with this record keeps alive) by which Ruby has left the function, or 0 */
    uintptr_t exception;
    bool answered;  /* the last callback has returned or raised */
    bool raised;    /* the last callback has raised */
    bool unblocked; /* the unblocking function was called */
    bool abandoned; /* no fiber waits for the job any more */
    bool left;      /* Ruby has left the function by longjmp (heddle_threads_end_left_job); `result` is not set */
    bool last;      /* its thread must return from heddle_threads_serve after the job */
};
