#include "offload/threads.h"

#include "offload/thread_delay.h"
#include "offload/job_queue.h"
#include "scheduler/spin.h"
#include "offload/thread_calls.h"
#include "offload/thread_times.h"
#include "selector/clock.h"
#include "selector/native_thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

/*
 * Beyond this number of threads, plus one for each core, another one is started only for a call that was queued for a
 * while.
 */
enum { SOFT_LIMIT = 64 };

/* Threads above the limit, for prompt jobs only: else no file could be opened while all threads wait for a lock. */
enum { RESERVED = 8 };

/* A thread that was idle for this time ends. */
static const time_t IDLE_SECONDS = 5;

/* When a job that is expected to compute is examined: does it sleep? */
static const int64_t JUDGED_AFTER = 20 * 1000 * 1000;

static pthread_cond_t work;
static heddle_job_queue waiting, computing, prompt; /* by what the jobs are expected to do */
static _Atomic unsigned queued;  /* in all three, read without the lock */
static unsigned slow;            /* running jobs that are not prompt; the limit is for these */
static bool spinning;            /* a thread spins, at most one: it takes the next job without being woken */
static heddle_spin spins;
static heddle_offload_thread *threads;
static heddle_threads_counts counts;
static unsigned starting;
static int64_t grown_at;
static _Atomic unsigned generation;

static _Thread_local heddle_job *current;

/* -- life ---------------------------------------------------------------------------------------------------------- */

static void reset_state(void)
{
    heddle_condition_init(&work);
    waiting = computing = prompt = (heddle_job_queue){0};
    slow = 0;
    atomic_store(&queued, 0);
    spinning = false;
    spins = (heddle_spin){0};
    threads = NULL;
    starting = 0;
    unsigned cores = counts.cores, limit = counts.limit;
    counts = (heddle_threads_counts){.cores = cores, .soft_limit = SOFT_LIMIT, .limit = limit};
}

static void before_fork(void)
{
    pthread_mutex_lock(&heddle_threads_lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&heddle_threads_lock);
}

/* In a child only the forking thread exists: not the offload threads or their jobs. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&heddle_threads_lock, NULL);
    reset_state();
    current = NULL;
    atomic_fetch_add(&generation, 1);
}

static unsigned count_available_cores(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

void heddle_threads_setup(void)
{
    counts.cores = count_available_cores();
    counts.limit = HEDDLE_THREADS_LIMIT;
    reset_state();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

unsigned heddle_threads_generation(void)
{
    return atomic_load(&generation);
}

/* -- the queue ----------------------------------------------------------------------------------------------------- */

static heddle_job_queue *queue_of(const heddle_job *job)
{
    return job->prompt ? &prompt : job->computes ? &computing : &waiting;
}

static void append_job(heddle_job *job)
{
    heddle_job_queue_append(queue_of(job), job);
    atomic_fetch_add_explicit(&queued, 1, memory_order_relaxed);
}

static void unlink_job(heddle_job *job)
{
    heddle_job_queue_remove(queue_of(job), job);
    atomic_fetch_sub_explicit(&queued, 1, memory_order_relaxed);
}

static unsigned count_free_cores(void)
{
    return counts.computing < counts.cores ? counts.cores - counts.computing : 0;
}

/* How many of the queued jobs could start now. */
static unsigned count_runnable(void)
{
    unsigned cores = count_free_cores(), room = slow < counts.limit ? counts.limit - slow : 0;
    unsigned others = waiting.count + (computing.count < cores ? computing.count : cores);
    return prompt.count + (others < room ? others : room);
}

static unsigned count_queued(void)
{
    return waiting.count + computing.count + prompt.count;
}

/* Would `more` further jobs and the thread that spins, the loop's or an idle one, each have a core of its own? */
static bool may_spin(unsigned more)
{
    return counts.running + more < counts.cores;
}

/* The oldest job that may run. */
static heddle_job *take_job(void)
{
    bool room = slow < counts.limit;
    heddle_job *job = room ? waiting.head : NULL;
    heddle_job *others[] = {room && count_free_cores() ? computing.head : NULL, prompt.head};
    for (int i = 0; i < 2; i++) {
        if (others[i] && (!job || others[i]->queued < job->queued))
            job = others[i];
    }
    if (job)
        unlink_job(job);
    return job;
}

/*
 * Must a sleeping thread be woken? A spinning thread takes one job. The wake-up is best done without the lock, which
 * the thread takes first.
 */
static bool find_thread_to_wake(void)
{
    return count_runnable() > spinning;
}

/* True: the queued jobs need one more thread, whose start is counted. */
static bool claim_thread(bool within_soft_limit)
{
    if (slow >= counts.limit && count_queued() > prompt.count)
        counts.full++;
    if (count_runnable() <= counts.idle + starting || counts.threads + starting >= counts.limit + RESERVED)
        return false;
    if (within_soft_limit && counts.threads + starting >= counts.soft_limit + counts.cores)
        return false;
    starting++;
    return true;
}

bool heddle_threads_submit(heddle_job *job)
{
    job->queued = heddle_clock_now();
    atomic_store(&job->state, HEDDLE_JOB_QUEUED);
    pthread_mutex_lock(&heddle_threads_lock);
    append_job(job);
    job->expected = job->brief && may_spin(count_queued());
    bool wake = find_thread_to_wake(), more = claim_thread(true);
    pthread_mutex_unlock(&heddle_threads_lock);
    if (wake)
        pthread_cond_signal(&work);
    return more;
}

void heddle_threads_not_started(void)
{
    pthread_mutex_lock(&heddle_threads_lock);
    if (starting)
        starting--;
    pthread_mutex_unlock(&heddle_threads_lock);
}

/* Jobs that turn out to wait are no longer counted as computing. */
static void judge_computing(void)
{
    int64_t now = heddle_clock_now();
    for (heddle_offload_thread *thread = threads; thread; thread = thread->next) {
        heddle_job *job = thread->job;
        if (!job || !job->computes || now - job->began < JUDGED_AFTER || !heddle_thread_sleeps(thread->id))
            continue;
        job->computes = false;
        counts.computing--;
    }
}

/* Has the first job of this queue been overdue for a while, without a request for a thread? */
static bool is_neglected(const heddle_job_queue *in)
{
    int64_t before = heddle_clock_now() - 3 * HEDDLE_OVERDUE_NS;
    return in->head->queued < before && grown_at < before;
}

bool heddle_threads_overdue(heddle_job *job)
{
    bool more = false;
    pthread_mutex_lock(&heddle_threads_lock);
    if (atomic_load(&job->state) == HEDDLE_JOB_QUEUED && (queue_of(job)->head == job || is_neglected(queue_of(job)))) {
        if (job->computes)
            judge_computing();
        pthread_cond_signal(&work);
        more = claim_thread(false);
        if (more) {
            counts.grown++;
            grown_at = heddle_clock_now();
        }
    }
    pthread_mutex_unlock(&heddle_threads_lock);
    return more;
}

bool heddle_threads_withdraw(heddle_job *job)
{
    pthread_mutex_lock(&heddle_threads_lock);
    bool queued = atomic_load(&job->state) == HEDDLE_JOB_QUEUED;
    if (queued) {
        unlink_job(job);
        atomic_store(&job->state, HEDDLE_JOB_ENDED);
    }
    pthread_mutex_unlock(&heddle_threads_lock);
    return queued;
}

void heddle_threads_abandon(heddle_job *job)
{
    pthread_mutex_lock(&heddle_threads_lock);
    job->abandoned = true;
    if (atomic_load(&job->state) == HEDDLE_JOB_QUEUED) {
        unlink_job(job);
        atomic_store(&job->state, HEDDLE_JOB_ENDED);
    } else if (job->thread && atomic_load(&job->state) == HEDDLE_JOB_CALLING_BACK) {
        pthread_cond_signal(&job->thread->answered);
    }
    pthread_mutex_unlock(&heddle_threads_lock);
}

void heddle_threads_settle(void)
{
    pthread_mutex_lock(&heddle_threads_lock);
    pthread_mutex_unlock(&heddle_threads_lock);
}

/* -- the threads' side --------------------------------------------------------------------------------------------- */

heddle_offload_thread *heddle_threads_attach(void)
{
    heddle_offload_thread *thread = calloc(1, sizeof(*thread));
    if (!thread) {
        heddle_threads_not_started(); /* the job it was started for becomes overdue soon, and gets another one */
        return NULL;
    }
    thread->native = pthread_self();
    heddle_condition_init(&thread->answered);
    pthread_mutex_lock(&heddle_threads_lock);
    if (starting)
        starting--;
    counts.threads++;
    thread->next = threads;
    if (threads)
        threads->previous = thread;
    threads = thread;
    pthread_mutex_unlock(&heddle_threads_lock);
    return thread;
}

void heddle_threads_detach(heddle_offload_thread *thread)
{
    pthread_mutex_lock(&heddle_threads_lock);
    counts.threads--;
    if (thread->previous)
        thread->previous->next = thread->next;
    else
        threads = thread->next;
    if (thread->next)
        thread->next->previous = thread->previous;
    pthread_mutex_unlock(&heddle_threads_lock);
    pthread_cond_destroy(&thread->answered);
    free(thread);
}

/* With the lock held before and after, not while the job runs. */
static void run_job(heddle_offload_thread *thread, heddle_job *job)
{
    job->thread = thread;
    thread->frames = (heddle_native_frames){.end = __builtin_frame_address(0)};
    thread->job = job;
    counts.running++;
    slow += !job->prompt;
    if (job->computes)
        counts.computing++;
    job->began = heddle_clock_now();
    atomic_store(&job->state, HEDDLE_JOB_RUNNING);
    pthread_mutex_unlock(&heddle_threads_lock);

    heddle_thread_delay();
    heddle_thread_pauses before = {0};
    int64_t cpu_before = 0;
    if (!job->brief) {
        before = heddle_thread_pauses_now();
        cpu_before = heddle_clock_read(CLOCK_THREAD_CPUTIME_ID);
    }
    current = job;
    errno = 0;
    void *result = heddle_thread_call(thread, job);
    int error = errno;
    current = NULL;
    if (job->take_errors)
        job->errors = job->take_errors();
    int64_t wall = heddle_clock_now() - job->began;
    int64_t cpu = -1;
    if (!job->brief)
        cpu = heddle_thread_computed(heddle_clock_read(CLOCK_THREAD_CPUTIME_ID) - cpu_before, wall, before);
    heddle_thread_delay();

    pthread_mutex_lock(&heddle_threads_lock);
    while (thread->interrupting) /* its end is signalled on the same condition */
        pthread_cond_wait(&thread->answered, &heddle_threads_lock);
    job->result = result;
    job->error = error;
    job->wall = wall;
    job->cpu = cpu;
    thread->job = NULL;
    counts.running--;
    slow -= !job->prompt;
    counts.jobs++;
    if (job->computes)
        counts.computing--;
    bool abandoned = job->abandoned;
    atomic_store(&job->state, HEDDLE_JOB_ENDED);
    if (!abandoned)
        /* the fiber continues only after it has taken the lock: from here on the job must not be touched */
        job->notify(job);
}

/* With the lock held before and after, not meanwhile. True: there is a job to run. */
static bool spin_for_job(void)
{
    int64_t until = heddle_clock_now() + HEDDLE_SPIN_NS;
    spinning = true;
    pthread_mutex_unlock(&heddle_threads_lock);
    while (!atomic_load_explicit(&queued, memory_order_relaxed) && heddle_clock_now() < until)
        heddle_spin_pause();
    pthread_mutex_lock(&heddle_threads_lock);
    spinning = false;
    heddle_spin_ended(&spins, count_runnable());
    return count_runnable();
}

/* Waits for a job. False: there was none for a while. */
static bool wait_for_job(heddle_offload_thread *thread)
{
    counts.idle++;
    bool due = !spinning && may_spin(1) && heddle_spin_due(&spins) && spin_for_job();
    if (!due && !thread->leave) {
        struct timespec limit = heddle_clock_after(HEDDLE_CONDITION_CLOCK, (int64_t)IDLE_SECONDS * HEDDLE_SECOND);
        due = pthread_cond_timedwait(&work, &heddle_threads_lock, &limit) != ETIMEDOUT || count_runnable();
    }
    counts.idle--;
    return due || thread->leave;
}

bool heddle_threads_serve(heddle_offload_thread *thread)
{
    bool spare = false;
    pthread_mutex_lock(&heddle_threads_lock);
    thread->native = pthread_self();
#ifdef __linux__
    thread->id = syscall(SYS_gettid);
#endif
    while (!thread->leave && !spare) {
        heddle_job *job = take_job();
        if (job) {
            run_job(thread, job);
        } else {
            spare = !wait_for_job(thread);
        }
    }
    thread->leave = false;
    if (!spare)
        pthread_cond_signal(&work); /* it may have been woken for a job that another thread has to take now */
    pthread_mutex_unlock(&heddle_threads_lock);
    return spare;
}

void heddle_threads_leave(heddle_offload_thread *thread)
{
    pthread_mutex_lock(&heddle_threads_lock);
    thread->leave = true;
    if (thread->job)
        heddle_thread_interrupt(thread->job);
    pthread_cond_broadcast(&work);
    pthread_mutex_unlock(&heddle_threads_lock);
}

heddle_job *heddle_threads_current(void)
{
    return current;
}

void heddle_threads_set_limit(unsigned limit)
{
    pthread_mutex_lock(&heddle_threads_lock);
    counts.limit = limit;
    pthread_mutex_unlock(&heddle_threads_lock);
}

bool heddle_threads_any(void)
{
    pthread_mutex_lock(&heddle_threads_lock);
    bool any = counts.threads > 0;
    pthread_mutex_unlock(&heddle_threads_lock);
    return any;
}

bool heddle_threads_full(void)
{
    pthread_mutex_lock(&heddle_threads_lock);
    bool full = slow >= counts.limit;
    pthread_mutex_unlock(&heddle_threads_lock);
    return full;
}

heddle_threads_counts heddle_threads_count(void)
{
    pthread_mutex_lock(&heddle_threads_lock);
    heddle_threads_counts now = counts;
    now.queued = count_queued();
    pthread_mutex_unlock(&heddle_threads_lock);
    return now;
}
