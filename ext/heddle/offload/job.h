#ifndef HEDDLE_OFFLOAD_JOB_H
#define HEDDLE_OFFLOAD_JOB_H

/*
 * One native call that an offload thread runs for a fiber. It lies on that fiber's own stack, so the fiber leaves only
 * when nobody else holds it any more: see call.c. Nothing here needs Ruby.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct heddle_job heddle_job;
typedef struct heddle_offload_thread heddle_offload_thread;

typedef enum {
    HEDDLE_JOB_QUEUED,
    HEDDLE_JOB_RUNNING,
    HEDDLE_JOB_CALLING_BACK, /* its thread waits until the fiber has run a function of Ruby's for it */
    HEDDLE_JOB_ENDED,
} heddle_job_state;

/* As rb_unblock_function_t. The two of Ruby's own are -1: a signal that makes system calls return. */
typedef void heddle_unblock(void *data);
#define HEDDLE_UNBLOCK_BY_SIGNAL ((heddle_unblock *)-1)

struct heddle_job {
    void *(*function)(void *data);
    void *data;
    heddle_unblock *unblock; /* makes it end early, or NULL: then it runs to its end */
    void *unblock_data;
    bool core;     /* the function is Ruby's own */
    bool on_descriptor; /* it uses fd */
    int fd;
    bool prompt;   /* Ruby's own, as to open a file: rarely waits, so a few run beside the limit */
    bool computes; /* it is known to burn CPU: no more of those run at once than there are cores */
    bool brief;    /* it is known to take some microseconds: too few to measure what it does with them */
    bool expected; /* … and has a core of its own, so its end is worth spinning for; see spin.h */

    /* Takes what the function left in the thread's queue of OpenSSL's errors; or NULL. On the job's thread. */
    struct heddle_openssl_errors *(*take_errors)(void);
    struct heddle_openssl_errors *errors;

    void *result;
    int error;                   /* errno afterwards */
    int64_t queued, began, wall; /* CLOCK_MONOTONIC, ns */
    int64_t cpu;                 /* of its thread, ns; < 0: unknown, the job was brief or the machine busy */

    _Atomic int state;
    heddle_offload_thread *thread;
    heddle_job *next, *previous; /* in the queue */
    /* Something happened: it ended, or calls back. On its thread, under the lock of the threads. */
    void (*notify)(heddle_job *job);

    void *(*callback)(void *data);
    void *callback_data, *callback_result;
    bool answered;  /* the callback was run */
    bool raised;    /* … and has raised */
    bool unblocked; /* the unblocking function was called */
    bool abandoned; /* nobody waits for it any more */
};

#endif
