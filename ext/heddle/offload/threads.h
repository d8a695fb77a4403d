#ifndef HEDDLE_OFFLOAD_THREADS_H
#define HEDDLE_OFFLOAD_THREADS_H

/*
 * The offload threads: a queue, and who serves it. They are threads of Ruby's, each of which stays in one call without
 * the GVL, so that what it runs may allocate by xmalloc (which may collect garbage) and call back into Ruby. Making
 * them is the caller's part; nothing here needs Ruby, and all functions are safe from any thread unless they say
 * otherwise.
 *
 * A queued job may be what ends those under way, so beyond a soft limit more threads are started, but slowly, up to the
 * limit. There jobs stay queued; they can be taken back.
 */

#include "offload/job.h"

#include <setjmp.h>
#include <stddef.h>

/* Once, before anything else. */
void heddle_threads_setup(void);

/* How many jobs may run at once, each on its thread. A few that are prompt run beside them. */
enum { HEDDLE_THREADS_LIMIT = 512 };
void heddle_threads_limit(unsigned limit);
/* Do as many? */
bool heddle_threads_full(void);
/* Is there one, which will take a queued job some time? */
bool heddle_threads_any(void);

/* Queues the job. True: the caller must start one more thread, and say so if it can't. */
bool heddle_threads_submit(heddle_job *job);
void heddle_threads_not_started(void);

/*
 * A queued job has waited for so long, again. True: the caller must start one more thread. It is the first in the
 * queue that gets one; when nobody asks for that one, its loop being held up, the others do.
 */
#define HEDDLE_OVERDUE_NS ((int64_t)20 * 1000 * 1000)
bool heddle_threads_overdue(heddle_job *job);

/* Takes back a job that has not begun. False: it has. */
bool heddle_threads_withdraw(heddle_job *job);
/*
 * Asks a running job to end. To be repeated: it may have been about to make the call that has to be interrupted. The
 * library's own unblocking function is called the first time only. For the job's fiber, or its thread's end.
 */
void heddle_threads_interrupt(heddle_job *job);
/* Its callback was run, or has raised: then the native function is left. */
void heddle_threads_answer(heddle_job *job, void *result, bool raised);
/* No completion is posted for the job any more. The job and its memory must stay until its state is ENDED. */
void heddle_threads_abandon(heddle_job *job);
/* After this no other thread touches a job that has ended. */
void heddle_threads_settle(void);

/* The thread's life; NULL when there is not the memory for one. */
heddle_offload_thread *heddle_threads_attach(void);
/* Runs jobs until the pool ends the thread (false) or needs no thread for a while (true). Without the GVL. */
bool heddle_threads_serve(heddle_offload_thread *thread);
/* Makes `serve` return, and what it runs end early. */
void heddle_threads_leave(heddle_offload_thread *thread);
void heddle_threads_detach(heddle_offload_thread *thread);

/* The job that the calling thread runs, or NULL. */
heddle_job *heddle_threads_current(void);
/*
 * Has the job's fiber run the function, and waits for that. On the job's thread. Does not return if the function raised
 * or nobody runs it any more: the job's own function is left by longjmp, as Ruby leaves it.
 */
void *heddle_threads_call_back(heddle_job *job, void *(*function)(void *data), void *data);

/* For trials: every call is preceded and followed by a pause of up to so many ns; 0: none. */
void heddle_threads_set_delay(int64_t most, unsigned seed);

/* The frames of a native function on its thread's stack, which may hold values since its first callback. */
typedef struct {
    const void *start, *end; /* start is NULL before the first callback; the stack grows down */
    jmp_buf registers;
} heddle_native_frames;

/* Under the GVL, without which the thread can't end. */
heddle_native_frames heddle_threads_frames(const heddle_job *job);

/* Counts forks: in a child no job of before is ever answered. */
unsigned heddle_threads_generation(void);

typedef struct {
    unsigned threads, idle, queued, running, computing, cores, soft_limit, limit;
    /* jobs that ended; threads started above the soft limit, or beside computing ones that waited; threads that were
     * needed, but beyond the limit */
    uint64_t jobs, grown, full;
} heddle_threads_counts;

heddle_threads_counts heddle_threads_count(void);

#endif
