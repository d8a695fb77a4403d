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

/* Above this many threads for calls that wait, another is only started for one that was queued for a while. */
enum { SOFT_LIMIT = 64 };

/* Beyond the limit, for what is prompt: else nobody could open a file while all threads wait for a lock. */
enum { RESERVED = 8 };

/* A thread that had nothing to do for so long ends. */
static const time_t IDLE_SECONDS = 5;

/* A job that was taken for a computing one is looked at after so long: does it sleep? */
static const int64_t JUDGED_AFTER = 20 * 1000 * 1000;

static pthread_cond_t work;
static heddle_job_queue waiting, computing, prompt; /* by what the jobs are known to do */
static _Atomic unsigned queued;  /* in all of them, for who looks without the lock */
static unsigned slow;            /* running jobs that are not prompt, of which there may be as many as the limit says */
static bool spinning;            /* a thread does, one at most: it takes the next job without being woken */
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

/* Only the forking thread goes on: the others, and what they ran, exist no more. */
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

/* How many of the queued jobs a thread could take now. */
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

/* Has each of so many more jobs a core of its own, and the thread that spins, too? */
static bool may_spin(unsigned more)
{
    return counts.running + more < counts.cores;
}

/* The oldest one that may run. */
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

/* Is one of those that sleep to be woken? Best done without the lock, which is the first thing that it takes. */
static bool find_thread_to_wake(void)
{
    return count_runnable() > spinning;
}

/* True: those who are queued need one more thread. */
static bool needs_thread(bool limited)
{
    if (slow >= counts.limit && count_queued() > prompt.count)
        counts.full++;
    if (count_runnable() <= counts.idle + starting || counts.threads + starting >= counts.limit + RESERVED)
        return false;
    if (limited && counts.threads + starting >= counts.soft_limit + counts.cores)
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
    bool wake = find_thread_to_wake(), more = needs_thread(true);
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

/* Those that turn out to wait give their core back. */
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

/* Has the first one been overdue for a while, with nobody asking for a thread? */
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
        more = needs_thread(false);
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
        heddle_threads_not_started(); /* what it was to run is overdue soon, and gets another */
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

/* Under the lock before and after, without it meanwhile. */
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
    while (thread->interrupting)
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
        job->notify(job); /* its fiber goes on only after it took the lock: from here on nobody touches the job */
}

/* Under the lock before and after, without it meanwhile. True: there is something to do. */
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

/* Until there may be something to do. False: there was nothing for a while. */
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
        pthread_cond_signal(&work); /* it may have been woken for a job that another has to take now */
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

void heddle_threads_limit(unsigned limit)
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
