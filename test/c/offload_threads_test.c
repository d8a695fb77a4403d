/* sources: offload/threads.c offload/thread_calls.c offload/thread_delay.c offload/thread_times.c */
#include "check.h"

#include "scheduler/spin.h"
#include "offload/threads.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

/* Plain threads stand for Ruby's, and the test for the fiber that waits. */

static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told_changed = PTHREAD_COND_INITIALIZER;

typedef struct {
    heddle_job job;
    int told; /* how often it was told of */
} waiting_job;

static void tell(heddle_job *job)
{
    pthread_mutex_lock(&told_lock);
    ((waiting_job *)job)->told++;
    pthread_cond_broadcast(&told_changed);
    pthread_mutex_unlock(&told_lock);
}

static void wait_told(waiting_job *waiting, int times)
{
    pthread_mutex_lock(&told_lock);
    while (waiting->told < times)
        pthread_cond_wait(&told_changed, &told_lock);
    pthread_mutex_unlock(&told_lock);
}

static void *thread_main(void *data)
{
    heddle_offload_thread *thread = heddle_threads_attach();
    *(heddle_offload_thread **)data = thread;
    heddle_threads_serve(thread);
    heddle_threads_detach(thread);
    return NULL;
}

enum { MOST = 120 };
static pthread_t native[MOST];
static heddle_offload_thread *served[MOST];
static int native_count;

static void start_thread(void)
{
    CHECK(native_count < MOST);
    CHECK_EQUAL(0, pthread_create(&native[native_count], NULL, thread_main, &served[native_count]));
    native_count++;
}

static void end_threads(void)
{
    while (heddle_threads_read_statistics().threads < (unsigned)native_count)
        sched_yield();
    for (int i = 0; i < native_count; i++)
        heddle_threads_leave(served[i]);
    for (int i = 0; i < native_count; i++)
        pthread_join(native[i], NULL);
    native_count = 0;
}

static void submit(waiting_job *waiting, void *(*function)(void *), void *data)
{
    *waiting = (waiting_job){.job = {.function = function, .data = data, .notify = tell}};
    if (heddle_threads_submit(&waiting->job))
        start_thread();
}

static void finish(waiting_job *waiting)
{
    wait_told(waiting, 1);
    heddle_threads_settle();
    CHECK_EQUAL(HEDDLE_JOB_ENDED, atomic_load(&waiting->job.state));
}

/*
 * -- functions that jobs run ----------------------------------------------------------------------------------------
 */

static void *give_errno(void *data)
{
    errno = *(int *)data;
    return data;
}

static pthread_mutex_t meeting_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t meeting_changed = PTHREAD_COND_INITIALIZER;
static int inside, cancelled;

/* Returns when so many are inside at once, or when it is cancelled. */
static void *meet(void *data)
{
    pthread_mutex_lock(&meeting_lock);
    inside++;
    pthread_cond_broadcast(&meeting_changed);
    while (inside < *(int *)data && !cancelled)
        pthread_cond_wait(&meeting_changed, &meeting_lock);
    pthread_mutex_unlock(&meeting_lock);
    return NULL;
}

static void cancel(void *data)
{
    (void)data;
    pthread_mutex_lock(&meeting_lock);
    cancelled = 1;
    pthread_cond_broadcast(&meeting_changed);
    pthread_mutex_unlock(&meeting_lock);
}

static void wait_inside(int number)
{
    pthread_mutex_lock(&meeting_lock);
    while (inside < number)
        pthread_cond_wait(&meeting_changed, &meeting_lock);
    pthread_mutex_unlock(&meeting_lock);
}

static void *ask(void *data)
{
    (void)data;
    return data;
}

static void *call_back(void *data)
{
    return heddle_threads_call_back(heddle_threads_current(), ask, data);
}

/*
 * -- tests
 * --------------------------------------------------------------------------------------------------------------
 */

static void job_returns_its_result_and_errno(void)
{
    int error = 42;
    waiting_job job;
    heddle_threads_setup();
    submit(&job, give_errno, &error);
    finish(&job);
    CHECK(job.job.result == &error);
    CHECK_EQUAL(42, job.job.error);
    CHECK(heddle_threads_current() == NULL);
    end_threads();
    CHECK_EQUAL(0, heddle_threads_read_statistics().threads);
}

static void jobs_that_wait_for_later_jobs_end(void)
{
    enum { NUMBER = 100 };
    static waiting_job jobs[NUMBER];
    int number = NUMBER;
    heddle_threads_setup();
    for (int i = 0; i < NUMBER; i++)
        submit(&jobs[i], meet, &number);
    /* Above the limit a queued job has to say that it waits: the oldest one gets a thread. */
    for (int i = 0; i < NUMBER; i++) {
        if (atomic_load(&jobs[i].job.state) == HEDDLE_JOB_QUEUED && heddle_threads_check_overdue(&jobs[i].job))
            start_thread();
        while (i > 60 && i + 1 < NUMBER && atomic_load(&jobs[i].job.state) == HEDDLE_JOB_QUEUED)
            sched_yield();
    }
    for (int i = 0; i < NUMBER; i++)
        finish(&jobs[i]);
    CHECK(heddle_threads_read_statistics().grown > 0);
    end_threads();
}

static void job_behind_an_abandoned_job_gets_a_thread(void)
{
    enum { NUMBER = 120 };
    static waiting_job jobs[NUMBER];
    int number = NUMBER;
    heddle_threads_setup();
    for (int i = 0; i < NUMBER; i++)
        submit(&jobs[i], meet, &number);
    while (heddle_threads_read_statistics().running < (unsigned)native_count)
        sched_yield();
    int last = NUMBER - 1;
    CHECK_EQUAL(HEDDLE_JOB_QUEUED, atomic_load(&jobs[last].job.state));
    while (!heddle_threads_check_overdue(&jobs[last].job))
        sched_yield();
    start_thread();
    CHECK_EQUAL(1, heddle_threads_read_statistics().grown);
    cancel(NULL);
    for (int i = 0; i < NUMBER; i++)
        finish(&jobs[i]);
    end_threads();
}

static void job_that_has_not_begun_is_withdrawn(void)
{
    int number = 2;
    waiting_job job = {.job = {.function = meet, .data = &number, .notify = tell}};
    heddle_threads_setup();
    CHECK(heddle_threads_submit(&job.job));
    heddle_threads_report_unstarted();
    CHECK(heddle_threads_withdraw(&job.job));
    CHECK(!heddle_threads_withdraw(&job.job));
    CHECK_EQUAL(0, heddle_threads_read_statistics().queued);
    CHECK_EQUAL(0, job.told);
}

static void running_job_is_unblocked(void)
{
    int number = 2;
    waiting_job job;
    heddle_threads_setup();
    job = (waiting_job){.job = {.function = meet, .data = &number, .unblock = cancel, .notify = tell}};
    CHECK(heddle_threads_submit(&job.job));
    start_thread();
    wait_inside(1);
    CHECK(!heddle_threads_withdraw(&job.job));
    heddle_threads_interrupt(&job.job);
    finish(&job);
    heddle_threads_interrupt(&job.job); /* too late: nothing happens */
    end_threads();
}

static void callback_runs_in_the_waiting_thread(void)
{
    int value;
    waiting_job job;
    heddle_threads_setup();
    submit(&job, call_back, &value);
    wait_told(&job, 1);
    CHECK_EQUAL(HEDDLE_JOB_CALLING_BACK, atomic_load(&job.job.state));
    CHECK(job.job.callback == ask && job.job.callback_data == &value);
    heddle_threads_answer(&job.job, &job, false);
    wait_told(&job, 2);
    heddle_threads_settle();
    CHECK(job.job.result == &job);
    end_threads();
}

static void abandoned_job_posts_no_completion(void)
{
    int number = 2;
    waiting_job job, asking;
    heddle_threads_setup();
    submit(&job, meet, &number);
    submit(&asking, call_back, &number);
    wait_inside(1);
    wait_told(&asking, 1);
    heddle_threads_abandon(&job.job);
    heddle_threads_abandon(&asking.job);
    cancel(NULL);
    while (atomic_load(&job.job.state) != HEDDLE_JOB_ENDED || atomic_load(&asking.job.state) != HEDDLE_JOB_ENDED)
        sched_yield();
    end_threads();
    CHECK_EQUAL(0, job.told);
    CHECK_EQUAL(1, asking.told);
}

static void forked_child_has_an_empty_queue_and_no_threads(void)
{
#ifdef __SANITIZE_THREAD__
    SKIP("ThreadSanitizer starts no threads in a child");
#endif
    int number = 2, error = 3;
    waiting_job job;
    heddle_threads_setup();
    unsigned before = heddle_threads_count_forks();
    submit(&job, meet, &number);
    wait_inside(1);
    pid_t child = fork();
    if (child == 0) {
        waiting_job own;
        native_count = 0;
        heddle_threads_statistics counts = heddle_threads_read_statistics();
        bool empty = counts.threads == 0 && counts.running == 0 && heddle_threads_count_forks() != before;
        submit(&own, give_errno, &error);
        finish(&own);
        _exit(empty && own.job.error == 3 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQUAL(before, heddle_threads_count_forks());
    cancel(NULL);
    finish(&job);
    end_threads();
}

static void many_jobs_post_one_completion_each(void)
{
    enum { NUMBER = 2000 };
    static waiting_job jobs[NUMBER];
    static int errors[NUMBER];
    heddle_threads_setup();
    for (int i = 0; i < NUMBER; i++) {
        errors[i] = i;
        submit(&jobs[i], give_errno, &errors[i]);
    }
    for (int i = 0; i < NUMBER; i++) {
        while (atomic_load(&jobs[i].job.state) == HEDDLE_JOB_QUEUED && heddle_threads_check_overdue(&jobs[i].job) &&
               native_count < MOST)
            start_thread();
        finish(&jobs[i]);
        CHECK_EQUAL(i, jobs[i].job.error);
        CHECK_EQUAL(1, jobs[i].told);
    }
    CHECK_EQUAL(NUMBER, heddle_threads_read_statistics().jobs);
    end_threads();
}

static void brief_jobs_in_sequence_post_one_completion_each(void)
{
    enum { NUMBER = 20000 };
    int error = 7, expected = 0;
    heddle_threads_setup();
    for (int i = 0; i < NUMBER; i++) {
        waiting_job job = {.job = {.function = give_errno, .data = &error, .brief = true, .notify = tell}};
        if (heddle_threads_submit(&job.job))
            start_thread();
        expected += job.job.worth_spinning;
        while (atomic_load(&job.job.state) != HEDDLE_JOB_ENDED)
            sched_yield();
        finish(&job);
        CHECK_EQUAL(1, job.told);
        CHECK_EQUAL(7, job.job.error);
        CHECK_EQUAL(-1, job.job.cpu);
    }
    CHECK_EQUAL(heddle_threads_read_statistics().cores > 1 ? NUMBER : 0, expected);
    CHECK_EQUAL(NUMBER, heddle_threads_read_statistics().jobs);
    end_threads();
}

static void no_thread_spins_for_a_job_among_others(void)
{
    int number = MOST;
    waiting_job jobs[MOST], job;
    heddle_threads_setup();
    unsigned cores = heddle_threads_read_statistics().cores;
    if (cores >= MOST)
        SKIP("more cores than jobs");
    for (unsigned i = 0; i < cores; i++)
        submit(&jobs[i], meet, &number);
    wait_inside((int)cores);
    job = (waiting_job){.job = {.function = give_errno, .data = &number, .brief = true, .notify = tell}};
    if (heddle_threads_submit(&job.job))
        start_thread();
    CHECK(!job.job.worth_spinning);
    finish(&job);
    cancel(NULL);
    for (unsigned i = 0; i < cores; i++)
        finish(&jobs[i]);
    end_threads();
}

static int times_left_out(heddle_spin *spin)
{
    int times = 0;
    while (!heddle_spin_due(spin))
        times++;
    return times;
}

static void unsuccessful_spinning_is_skipped_for_longer_each_time(void)
{
    heddle_spin spin = {0};
    CHECK_EQUAL(0, times_left_out(&spin));
    for (int times = 1; times <= 1023; times = times * 2 + 1) {
        heddle_spin_ended(&spin, false);
        CHECK_EQUAL(times, times_left_out(&spin));
    }
    heddle_spin_ended(&spin, false);
    CHECK_EQUAL(1023, times_left_out(&spin));
}

static void spinning_resumes_after_several_successes(void)
{
    heddle_spin spin = {0};
    for (int i = 0; i < 5; i++)
        heddle_spin_ended(&spin, false);
    CHECK_EQUAL(31, times_left_out(&spin));
    for (int i = 0; i < 7; i++)
        heddle_spin_ended(&spin, true);
    heddle_spin_ended(&spin, false);
    CHECK_EQUAL(63, times_left_out(&spin)); /* seven are too few */
    for (int i = 0; i < 8; i++)
        heddle_spin_ended(&spin, true);
    heddle_spin_ended(&spin, false);
    CHECK_EQUAL(1, times_left_out(&spin));
}

static int unblocked;

/* It may wait for what another thread does: here it takes the threads' own lock. */
static void unblock_under_the_lock(void *data)
{
    unblocked += heddle_threads_read_statistics().running > 0;
    cancel(data);
}

static void unblocking_function_is_called_once_and_without_the_lock(void)
{
    int number = 2;
    waiting_job job = {.job = {.function = meet, .data = &number, .notify = tell, .unblock = unblock_under_the_lock}};
    heddle_threads_setup();
    if (heddle_threads_submit(&job.job))
        start_thread();
    wait_inside(1);
    for (int i = 0; i < 3; i++)
        heddle_threads_interrupt(&job.job);
    finish(&job);
    CHECK_EQUAL(1, unblocked);
    end_threads();
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("offload threads", "job returns its result and errno", job_returns_its_result_and_errno);
    check_run("offload threads", "unblocking function is called once and without the lock",
              unblocking_function_is_called_once_and_without_the_lock);
    check_run("offload threads", "jobs that wait for later jobs end", jobs_that_wait_for_later_jobs_end);
    check_run("offload threads", "job behind an abandoned job gets a thread",
              job_behind_an_abandoned_job_gets_a_thread);
    check_run("offload threads", "job that has not begun is withdrawn", job_that_has_not_begun_is_withdrawn);
    check_run("offload threads", "running job is unblocked", running_job_is_unblocked);
    check_run("offload threads", "callback runs in the waiting thread", callback_runs_in_the_waiting_thread);
    check_run("offload threads", "abandoned job posts no completion", abandoned_job_posts_no_completion);
    check_run("offload threads", "forked child has an empty queue and no threads",
              forked_child_has_an_empty_queue_and_no_threads);
    check_run("offload threads", "many jobs post one completion each", many_jobs_post_one_completion_each);
    check_run("offload threads", "brief jobs in sequence post one completion each",
              brief_jobs_in_sequence_post_one_completion_each);
    check_run("offload threads", "no thread spins for a job among others", no_thread_spins_for_a_job_among_others);
    check_run("offload threads", "unsuccessful spinning is skipped for longer each time",
              unsuccessful_spinning_is_skipped_for_longer_each_time);
    check_run("offload threads", "spinning resumes after several successes", spinning_resumes_after_several_successes);
    return check_end();
}
