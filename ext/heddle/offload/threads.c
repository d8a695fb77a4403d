#include "offload/threads.h"

#include "offload/thread_delay.h"
#include "scheduler/spin.h"
#include "offload/thread_calls.h"
#include "offload/thread_times.h"
#include "selector/clock.h"
#include "selector/list.h"
#include "selector/native_thread.h"

#include <sched.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

/*
 * When there are SOFT_LIMIT threads and one more for each core, further ones are started only for a job that has been
 * queued for HEDDLE_OVERDUE_NS.
 */
enum { SOFT_LIMIT = 64 };

/*
 * The number of threads that may be started beyond the limit, for `prompt` jobs, such as opening a file, which rarely
 * wait. Without them, no file could be opened while all threads wait for a lock.
 */
enum { RESERVED = 8 };

/* If the last request for a thread is older than this (ns), requested threads that have not begun count as killed. */
static const int64_t START_LIMIT = HEDDLE_SECOND;

/* A thread ends after it was idle for this time. */
static const time_t IDLE_SECONDS = 5;

/*
 * How long a job that is expected to compute must have run before Heddle checks whether its thread sleeps instead, ns.
 */
static const int64_t RECHECK_AFTER = 20 * 1000 * 1000;

static pthread_cond_t job_available;
typedef struct {
    heddle_job *first, *last;
    unsigned count;
} job_queue;

/*
 * The queued jobs, by kind: `computing` has jobs that are expected to compute, `prompt` has prompt jobs, `waiting` has
 * all others.
 */
static struct {
    job_queue waiting, computing, prompt;
} queues;
static _Atomic unsigned queued_count; /* the number of jobs in all three queues; read without the lock */
static unsigned running_limited; /* the number of running jobs that are not prompt; the limit applies to these */
static bool spinning;    /* one thread (never more) spins, so it takes the next job without being woken */
static heddle_spin spins;
static heddle_offload_thread *threads;
static heddle_threads_statistics statistics;
static unsigned starting; /* threads that were requested and have not begun */
static int64_t requested_at; /* when a thread was last requested */
static int64_t grown_at;  /* when a thread was last requested because a job was overdue */
static _Atomic unsigned forks; /* the number of forks between the first process and this one */

static _Thread_local heddle_job *current;

/* -- life ---------------------------------------------------------------------------------------------------------- */

static void reset_state(void)
{
    heddle_condition_init(&job_available);
    queues.waiting = queues.computing = queues.prompt = (job_queue){0};
    running_limited = 0;
    atomic_store(&queued_count, 0);
    spinning = false;
    spins = (heddle_spin){0};
    threads = NULL;
    starting = 0;
    unsigned cores = statistics.cores, limit = statistics.limit;
    statistics = (heddle_threads_statistics){.cores = cores, .limit = limit};
}

HEDDLE_HOLD_DURING_FORK(&heddle_threads_lock)

/*
 * In a forked child only the thread that called fork exists, so there are no offload threads, and the jobs don't run.
 */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&heddle_threads_lock, NULL);
    reset_state();
    current = NULL;
    atomic_fetch_add(&forks, 1);
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
    statistics.cores = count_available_cores();
    statistics.limit = HEDDLE_THREADS_DEFAULT_LIMIT;
    reset_state();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

unsigned heddle_threads_count_forks(void)
{
    return atomic_load(&forks);
}

/* -- the queue ----------------------------------------------------------------------------------------------------- */

static job_queue *find_queue(const heddle_job *job)
{
    return job->prompt ? &queues.prompt : job->computes ? &queues.computing : &queues.waiting;
}

static void append_job(heddle_job *job)
{
    job_queue *queue = find_queue(job);
    HEDDLE_QUEUE_APPEND(queue, job);
    queue->count++;
    atomic_fetch_add_explicit(&queued_count, 1, memory_order_relaxed);
}

static void unlink_job(heddle_job *job)
{
    job_queue *queue = find_queue(job);
    HEDDLE_QUEUE_REMOVE(queue, job);
    queue->count--;
    atomic_fetch_sub_explicit(&queued_count, 1, memory_order_relaxed);
}

static unsigned count_free_cores(void)
{
    return statistics.computing < statistics.cores ? statistics.cores - statistics.computing : 0;
}

/* Returns how many of the queued jobs could start now. */
static unsigned count_runnable(void)
{
    unsigned cores = count_free_cores();
    unsigned room = running_limited < statistics.limit ? statistics.limit - running_limited : 0;
    unsigned others = queues.waiting.count + (queues.computing.count < cores ? queues.computing.count : cores);
    return queues.prompt.count + (others < room ? others : room);
}

/* Are there enough cores for the running jobs, for `more` other threads, and for the thread that would spin? */
static bool may_spin(unsigned more)
{
    return statistics.running + more < statistics.cores;
}

/* Removes and returns the oldest job that may run, or returns NULL. */
static heddle_job *take_job(void)
{
    bool room = running_limited < statistics.limit;
    heddle_job *job = room ? queues.waiting.first : NULL;
    heddle_job *others[] = {room && count_free_cores() ? queues.computing.first : NULL, queues.prompt.first};
    for (int i = 0; i < 2; i++) {
        if (others[i] && (!job || others[i]->queued_at < job->queued_at))
            job = others[i];
    }
    if (job)
        unlink_job(job);
    return job;
}

/*
 * Returns true if the queued jobs need one more thread, which is counted in `starting` from here on. The caller must
 * start it.
 */
static bool claim_thread(bool obey_soft_limit)
{
    /* For the metrics: a job remains queued because the limit is reached. */
    if (running_limited >= statistics.limit && atomic_load(&queued_count) > queues.prompt.count)
        statistics.full++;
    if (count_runnable() <= statistics.idle + starting || statistics.threads + starting >= statistics.limit + RESERVED)
        return false;
    if (obey_soft_limit && statistics.threads + starting >= SOFT_LIMIT + statistics.cores)
        return false;
    starting++;
    requested_at = heddle_clock_now();
    return true;
}

bool heddle_threads_submit(heddle_job *job)
{
    job->queued_at = heddle_clock_now();
    atomic_store(&job->state, HEDDLE_JOB_QUEUED);
    pthread_mutex_lock(&heddle_threads_lock);
    append_job(job);
    /* if the loop spins, it needs a core of its own in addition to the cores for the queued jobs */
    job->worth_spinning = job->brief && may_spin(atomic_load(&queued_count));
    /*
     * The spinning thread, if there is one, takes one job without a wake-up. A sleeping thread is woken after the lock
     * was released, because it needs the lock at once.
     */
    bool wake = count_runnable() > spinning, needs_thread = claim_thread(true);
    pthread_mutex_unlock(&heddle_threads_lock);
    if (wake)
        pthread_cond_signal(&job_available);
    return needs_thread;
}

void heddle_threads_report_unstarted(void)
{
    pthread_mutex_lock(&heddle_threads_lock);
    if (starting)
        starting--;
    pthread_mutex_unlock(&heddle_threads_lock);
}

/* Looks for jobs that were expected to compute, but sleep. They are no longer counted as computing. */
static void recheck_computing(void)
{
    int64_t now = heddle_clock_now();
    for (heddle_offload_thread *thread = threads; thread; thread = thread->next) {
        heddle_job *job = thread->job;
        if (!job || !job->computes || now - job->began < RECHECK_AFTER || !heddle_thread_sleeps(thread->id))
            continue;
        job->computes = false;
        statistics.computing--;
    }
}

/*
 * Has the first job of this queue waited for longer than 3 * HEDDLE_OVERDUE_NS, and was no thread requested for an
 * overdue job in the last 3 * HEDDLE_OVERDUE_NS? Then the loop of that job is blocked and requests no thread, so a
 * later job of the queue requests one.
 */
static bool is_overdue(const job_queue *queue)
{
    int64_t before = heddle_clock_now() - 3 * HEDDLE_OVERDUE_NS;
    return queue->first->queued_at < before && grown_at < before;
}

bool heddle_threads_check_overdue(heddle_job *job)
{
    bool needs_thread = false;
    pthread_mutex_lock(&heddle_threads_lock);
    if (atomic_load(&job->state) == HEDDLE_JOB_QUEUED &&
        (find_queue(job)->first == job || is_overdue(find_queue(job)))) {
        if (job->computes)
            recheck_computing();
        if (heddle_clock_now() - requested_at > START_LIMIT)
            starting = 0;
        pthread_cond_signal(&job_available);
        needs_thread = claim_thread(false);
        if (needs_thread) {
            statistics.grown++;
            grown_at = heddle_clock_now();
        }
    }
    pthread_mutex_unlock(&heddle_threads_lock);
    return needs_thread;
}

bool heddle_threads_withdraw(heddle_job *job)
{
    pthread_mutex_lock(&heddle_threads_lock);
    bool still_queued = atomic_load(&job->state) == HEDDLE_JOB_QUEUED;
    if (still_queued) {
        unlink_job(job);
        atomic_store(&job->state, HEDDLE_JOB_ENDED);
    }
    pthread_mutex_unlock(&heddle_threads_lock);
    return still_queued;
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

/* A thread that has ended a job may still hold the lock, while it calls `notify`. */
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
        heddle_threads_report_unstarted(); /* another thread is started when the job is overdue */
        return NULL;
    }
    heddle_condition_init(&thread->answered);
    pthread_mutex_lock(&heddle_threads_lock);
    if (starting)
        starting--;
    statistics.threads++;
    HEDDLE_LIST_ADD(threads, thread);
    pthread_mutex_unlock(&heddle_threads_lock);
    return thread;
}

void heddle_threads_detach(heddle_offload_thread *thread)
{
    pthread_mutex_lock(&heddle_threads_lock);
    statistics.threads--;
    HEDDLE_LIST_REMOVE(threads, thread);
    pthread_mutex_unlock(&heddle_threads_lock);
    pthread_cond_destroy(&thread->answered);
    free(thread);
}

/* Called with the lock held, after `result` or `left` of the job was set. */
static void end_job(heddle_offload_thread *thread, heddle_job *job)
{
    while (thread->interrupting) /* `answered` is also signalled when an interruption has ended */
        pthread_cond_wait(&thread->answered, &heddle_threads_lock);
    thread->job = NULL;
    thread->leave |= job->last;
    statistics.running--;
    running_limited -= !job->prompt;
    statistics.jobs++;
    if (job->computes)
        statistics.computing--;
    bool abandoned = job->abandoned;
    atomic_store(&job->state, HEDDLE_JOB_ENDED);
    /*
     * A job that was not abandoned exists until its fiber has acquired the lock, which this thread still holds. So
     * `notify` may use the job, but later code must not. An abandoned job may no longer exist once its state is ENDED.
     */
    if (!abandoned)
        job->notify(job);
}

/* Called with the lock held; releases it while the job runs. */
static void run_job(heddle_offload_thread *thread, heddle_job *job)
{
    job->thread = thread;
    thread->frames = (heddle_native_frames){.end = __builtin_frame_address(0)};
    thread->job = job;
    statistics.running++;
    running_limited += !job->prompt;
    if (job->computes)
        statistics.computing++;
    job->began = heddle_clock_now();
    atomic_store(&job->state, HEDDLE_JOB_RUNNING);
    pthread_mutex_unlock(&heddle_threads_lock);

    heddle_debug_delay();
    heddle_thread_pauses before = {0};
    int64_t cpu_before = 0;
    if (!job->brief) {
        before = heddle_thread_pauses_now();
        cpu_before = heddle_clock_read(CLOCK_THREAD_CPUTIME_ID);
    }
    current = job;
    errno = 0;
    void *result = heddle_thread_run_function(thread, job);
    int error = errno;
    current = NULL;
    if (job->take_errors)
        job->errors = job->take_errors();
    int64_t wall = heddle_clock_now() - job->began;
    int64_t cpu = -1; /* unknown */
    if (!job->brief)
        cpu = heddle_thread_computed(heddle_clock_read(CLOCK_THREAD_CPUTIME_ID) - cpu_before, wall, before);
    heddle_debug_delay();

    pthread_mutex_lock(&heddle_threads_lock);
    job->result = result;
    job->error = error;
    job->wall = wall;
    job->cpu = cpu;
    end_job(thread, job);
}

bool heddle_threads_end_left_job(heddle_offload_thread *thread, uintptr_t exception)
{
    pthread_mutex_lock(&heddle_threads_lock);
    heddle_job *job = thread->job;
    current = NULL;
    if (job) {
        job->left = true;
        job->exception = exception;
        end_job(thread, job);
    }
    pthread_mutex_unlock(&heddle_threads_lock);
    return job != NULL;
}

/*
 * Polls for a job for a short time (scheduler/spin.h). Called with the lock held; releases it meanwhile. Returns true
 * if there is a job to run.
 */
static bool spin_for_job(void)
{
    int64_t until = heddle_clock_now() + HEDDLE_SPIN_NS;
    spinning = true;
    pthread_mutex_unlock(&heddle_threads_lock);
    while (!atomic_load_explicit(&queued_count, memory_order_relaxed) && heddle_clock_now() < until)
        heddle_spin_pause();
    pthread_mutex_lock(&heddle_threads_lock);
    spinning = false;
    heddle_spin_ended(&spins, count_runnable());
    return count_runnable();
}

/*
 * Waits for a job, or until the thread must leave. Returns false if neither happens within IDLE_SECONDS. Called with
 * the lock held; releases it meanwhile.
 */
static bool wait_for_job(heddle_offload_thread *thread)
{
    statistics.idle++;
    bool due = !spinning && may_spin(1 /* the loop */) && heddle_spin_due(&spins) && spin_for_job();
    if (!due && !thread->leave) {
        struct timespec limit = heddle_clock_after(HEDDLE_CONDITION_CLOCK, (int64_t)IDLE_SECONDS * HEDDLE_SECOND);
        due = pthread_cond_timedwait(&job_available, &heddle_threads_lock, &limit) != ETIMEDOUT || count_runnable();
    }
    statistics.idle--;
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
        /* if this thread was woken for a job, another thread must take the job now */
        pthread_cond_signal(&job_available);
    pthread_mutex_unlock(&heddle_threads_lock);
    return spare;
}

void heddle_threads_leave(heddle_offload_thread *thread)
{
    pthread_mutex_lock(&heddle_threads_lock);
    thread->leave = true;
    if (thread->job)
        heddle_threads_interrupt_locked(thread->job);
    pthread_cond_broadcast(&job_available);
    pthread_mutex_unlock(&heddle_threads_lock);
}

heddle_job *heddle_threads_current(void)
{
    return current;
}

void heddle_threads_set_limit(unsigned limit)
{
    pthread_mutex_lock(&heddle_threads_lock);
    statistics.limit = limit;
    pthread_mutex_unlock(&heddle_threads_lock);
}

bool heddle_threads_are_full(void)
{
    pthread_mutex_lock(&heddle_threads_lock);
    bool full = running_limited >= statistics.limit;
    pthread_mutex_unlock(&heddle_threads_lock);
    return full;
}

heddle_threads_statistics heddle_threads_read_statistics(void)
{
    pthread_mutex_lock(&heddle_threads_lock);
    heddle_threads_statistics now = statistics;
    now.queued = atomic_load(&queued_count);
    pthread_mutex_unlock(&heddle_threads_lock);
    return now;
}
