#pragma once

/*
 * The offload threads and their queues of jobs. They are Ruby threads, each of which stays in a call without the GVL
 * and leaves it only to take an interrupt or to end, so that a job may allocate by xmalloc (which may collect garbage)
 * and call back into Ruby. The caller makes the threads; these functions use no Ruby, and may be called from any thread
 * unless they say otherwise.
 *
 * The running jobs may wait for a queued job, such as an unlock. So beyond a soft limit more threads are started, but
 * slowly, up to the limit. At the limit jobs stay queued; they can be withdrawn.
 */

#include "offload/job.h"

#include <setjmp.h>

/* Called once, before all other functions. */
void heddle_threads_setup(void);

/* How many jobs run at once, each on its own thread, unless another limit is set. A few prompt jobs run beside them. */
enum { HEDDLE_THREADS_DEFAULT_LIMIT = 512 };
void heddle_threads_set_limit(unsigned limit);
/* Has the number of running jobs reached the limit? */
bool heddle_threads_are_full(void);

/*
 * Queues the job. If it returns true, the caller must start one more thread, or call heddle_threads_report_unstarted if
 * it can't.
 */
bool heddle_threads_submit(heddle_job *job);
void heddle_threads_report_unstarted(void);

/*
 * Called each time a queued job has waited for HEDDLE_OVERDUE_NS. If it returns true, the caller must start one more
 * thread, which runs the oldest job that may run. It returns true only for the first job of a queue (threads.c has one
 * for each kind). If the loop of that job is stuck and never asks, a later job gets a thread after three times
 * HEDDLE_OVERDUE_NS.
 */
#define HEDDLE_OVERDUE_NS ((int64_t)20 * 1000 * 1000)
bool heddle_threads_check_overdue(heddle_job *job);

/* Removes a job that has not begun from the queue. Returns false if it has begun. */
bool heddle_threads_withdraw(heddle_job *job);
/*
 * Asks a running job to end. Repeat the call, because the job may just be about to make the system call that must be
 * interrupted. The library's own unblocking function is called only the first time. Called by the job's fiber, or when
 * its thread has to end.
 */
void heddle_threads_interrupt(heddle_job *job);
/* Called when the callback has returned or raised: then the native function continues or is left. */
void heddle_threads_answer(heddle_job *job, void *result, bool raised);
/* From now on the job posts no completion. Its record must exist until its state is ENDED. */
void heddle_threads_abandon(heddle_job *job);
/* Waits until no other thread touches a job that has ended. */
void heddle_threads_settle(void);

/* Makes the record of the calling thread; NULL if out of memory. */
heddle_offload_thread *heddle_threads_attach(void);
/*
 * Runs jobs until the thread is not needed for a while (returns true) or is interrupted (returns false). Then the
 * caller checks interrupts, and may call again. Called without the GVL.
 */
bool heddle_threads_serve(heddle_offload_thread *thread);
/* Makes `serve` return, and ends its job early. */
void heddle_threads_leave(heddle_offload_thread *thread);
/*
 * Called when Ruby has left heddle_threads_serve, and the function of its job, by longjmp: a callback that is not
 * intercepted has raised, or the thread was killed in it (`exception` is 0). Ends the job, whose fiber then raises.
 * Returns false if there is no job.
 */
bool heddle_threads_end_left_job(heddle_offload_thread *thread, uintptr_t exception);
void heddle_threads_detach(heddle_offload_thread *thread);

/* The job that the calling thread runs, or NULL. */
heddle_job *heddle_threads_current(void);
/*
 * Lets the job's fiber run the function, and waits for that. Called on the job's thread. Does not return if the
 * function has raised or no fiber waits for the job any more: then it leaves the job's own function by longjmp, as Ruby
 * does.
 */
void *heddle_threads_call_back(heddle_job *job, void *(*function)(void *data), void *data);

/* The frames of a native function on its thread's stack. From the first callback on they may hold Ruby values. */
typedef struct {
    const void *start, *end; /* start is NULL before the first callback; the stack grows down */
    jmp_buf registers;
} heddle_native_frames;

/* Called with the GVL, so the thread can't end meanwhile. */
heddle_native_frames heddle_threads_frames(const heddle_job *job);

/* Forks between the first process and this one. A child sees another number: its parent's jobs never end there. */
unsigned heddle_threads_count_forks(void);

typedef struct {
    unsigned threads, idle, queued, running, computing, cores;
    unsigned limit;
    /*
     * jobs that have ended; threads started because a queued job was overdue; how often a job was submitted or overdue
     * while the limit was reached
     */
    uint64_t jobs, grown, full;
} heddle_threads_statistics;

heddle_threads_statistics heddle_threads_read_statistics(void);
