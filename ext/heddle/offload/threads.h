#pragma once

/*
 * The offload threads and their queues of jobs (native calls: job.h). Offload threads are Ruby threads, so that a job
 * may use xmalloc (which may collect garbage) and call back into Ruby. Such a thread runs all its jobs within one call
 * without the GVL (heddle_threads_serve), and returns only to handle an interrupt or to end. The caller creates the
 * threads. These functions use no Ruby, and may be called on any thread unless their comments say otherwise.
 *
 * All running jobs may wait for something that a queued job does, such as releasing a lock. So beyond a soft limit,
 * more threads are still started for jobs that remain queued, but slowly, and only up to the limit. At the limit, jobs
 * remain queued; queued jobs can be withdrawn.
 */

#include "offload/job.h"

#include <setjmp.h>

/* Called once, before all other functions. */
void heddle_threads_setup(void);

/*
 * The default maximum number of jobs that run at once, each on its own thread. A few prompt jobs (job.h) may run in
 * addition.
 */
enum { HEDDLE_THREADS_DEFAULT_LIMIT = 512 };
void heddle_threads_set_limit(unsigned limit);
/* Has the number of running jobs, without the prompt ones, reached the limit? */
bool heddle_threads_are_full(void);

/*
 * Queues the job. Returns true if the caller must start one more thread; if it can't, it must call
 * heddle_threads_report_unstarted.
 */
bool heddle_threads_submit(heddle_job *job);
void heddle_threads_report_unstarted(void);

/* The interval in ns at which the fiber of a queued job calls heddle_threads_check_overdue. */
#define HEDDLE_OVERDUE_NS ((int64_t)20 * 1000 * 1000)
/*
 * Called each time that a queued job has waited for another HEDDLE_OVERDUE_NS. Returns true if the caller must start
 * one more thread, which then runs the oldest job that may run. Usually the result is true only for the first job of a
 * queue (threads.c has a queue for each kind of job). If the first job's loop is blocked, and so does not call this
 * function, the result may also be true for a later job, after three times HEDDLE_OVERDUE_NS.
 */
bool heddle_threads_check_overdue(heddle_job *job);

/* Removes a job from its queue. Returns false if the job has begun already. */
bool heddle_threads_withdraw(heddle_job *job);
/*
 * Interrupts a running job, so that it ends early: sends a signal, or calls the job's unblocking function, if it has
 * one of its own. The caller must repeat this, because a signal has no effect if the job is just about to make its
 * system call. The unblocking function is called only the first time. Called by the job's fiber.
 */
void heddle_threads_interrupt(heddle_job *job);
/*
 * Called when a callback has returned or raised. If it has returned, the native function continues with its result; if
 * it has raised, the thread leaves the native function.
 */
void heddle_threads_answer(heddle_job *job, void *result, bool raised);
/* From now on the job's end is not reported (`notify`). Its record must exist until its state is ENDED. */
void heddle_threads_abandon(heddle_job *job);
/* Waits until no other thread uses the record of a job that has ended. */
void heddle_threads_settle(void);

/* Creates the record of the calling thread. Returns NULL if out of memory. */
heddle_offload_thread *heddle_threads_attach(void);
/*
 * Runs jobs. Returns true when there was no job for a while. Returns false when the thread was interrupted or has ended
 * a job whose `last` is true (job.h): then the caller checks for interrupts, and may call this function again. Called
 * without the GVL.
 */
bool heddle_threads_serve(heddle_offload_thread *thread);
/* Called when Ruby interrupts the thread: makes heddle_threads_serve return, and interrupts the job that it runs. */
void heddle_threads_leave(heddle_offload_thread *thread);
/*
 * Called when Ruby has left the job's function and heddle_threads_serve by longjmp: a callback that ran on this thread,
 * and not through heddle_threads_call_back, has raised `exception`, or the thread was killed in it (`exception` is 0).
 * Ends the job; the job's fiber then raises the exception, or a ThreadError. Returns false if the thread had no job.
 */
bool heddle_threads_end_left_job(heddle_offload_thread *thread, uintptr_t exception);
void heddle_threads_detach(heddle_offload_thread *thread);

/* The job that the calling thread runs, or NULL. */
heddle_job *heddle_threads_current(void);
/*
 * Makes the job's fiber call the function (a callback), waits for it, and returns its result. Called on the job's
 * thread. If the callback has raised, or if no fiber waits for the job any more, does not return, but leaves the job's
 * own function by longjmp, as Ruby does.
 */
void *heddle_threads_call_back(heddle_job *job, void *(*function)(void *data), void *data);

/* The frames of a native function on its thread's stack. From the first callback on, they may contain Ruby values. */
typedef struct {
    const void *start, *end; /* start is the lower address, and NULL before the first callback */
    jmp_buf registers;
} heddle_native_frames;

/* Returns the frames of the job's function. Called with the GVL, so the thread can't end meanwhile. */
heddle_native_frames heddle_threads_frames(const heddle_job *job);

/*
 * Returns the number of forks between the first process and this one. If it has changed, this is a forked child, in
 * which the parent's jobs never end.
 */
unsigned heddle_threads_count_forks(void);

typedef struct {
    unsigned threads, idle, queued, running, computing, cores;
    unsigned limit;
    /*
     * `jobs`: jobs that have ended. `grown`: threads that were started because a queued job was overdue. `full`: how
     * often a job was submitted or overdue while the limit was reached
     */
    uint64_t jobs, grown, full;
} heddle_threads_statistics;

heddle_threads_statistics heddle_threads_read_statistics(void);
