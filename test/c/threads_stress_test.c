/* sources: offload/threads.c offload/thread_calls.c offload/thread_delay.c offload/thread_times.c watch/watch.c watch/lost_time.c scheduler/layer_hooks.c */
#include "check.h"

#include "offload/threads.h"
#include "scheduler/inbox.h"
#include "watch/watch.h"

#include <pthread.h>
#include <signal.h>

/*
 * Loops, offload threads and the watch at once, for ThreadSanitizer above all: each loop submits jobs that end, call
 * back, are withdrawn or interrupted, hears of them through its inbox, and heartbeats while the watch looks at it. The
 * loops' waits stand for the selector, plain threads for Ruby's. handoff_test.c does the same for connections.
 */

enum {
    LOOPS = 3,
    JOBS_A_LOOP = 4000,
    AT_ONCE = 12,
    MOST_THREADS = 400,
};

/* -- what Ruby does for the watch --------------------------------------------------------------------------------- */

static _Atomic unsigned long asked, rescued, late;

static bool collects(void)
{
    return false;
}

static void ask(void)
{
    asked++;
}

static void block(heddle_rescue *rescue)
{
    (void)rescue;
    rescued++;
}

static void recover(heddle_rescue *rescue)
{
    (void)rescue;
}

static const heddle_watch_settings settings = {
    .slice = 100000, .threshold = 200000, .handoff = 100000, .collects = collects, .ask = ask};

/* -- a loop ------------------------------------------------------------------------------------------------------- */

typedef struct loop loop;
typedef struct {
    heddle_job job; /* first: the job of a call is a call */
    heddle_loop_message message;
    loop *owner;
    bool used, interrupted;
    int told;
    _Atomic bool stop;
} call;

struct loop {
    heddle_inbox inbox;
    pthread_mutex_t mutex;
    pthread_cond_t woken;
    bool wake;
    heddle_heartbeat *heartbeat;
    uint64_t heartbeats;
    unsigned random;
    call calls[AT_ONCE];
    unsigned ended, withdrawn, called_back, samples;
};

static pthread_t offload_threads[MOST_THREADS];
static heddle_offload_thread *joined[MOST_THREADS];
static _Atomic int started;

static void *offload_thread(void *data)
{
    heddle_offload_thread *thread = *(heddle_offload_thread **)data = heddle_threads_attach();
    while (heddle_threads_serve(thread))
        continue; /* it was idle for long: it stays, so that every thread can be told to leave at the end */
    heddle_threads_detach(thread);
    return NULL;
}

static void start_thread(void)
{
    int number = started++;
    CHECK(number < MOST_THREADS);
    CHECK_EQUAL(0, pthread_create(&offload_threads[number], NULL, offload_thread, &joined[number]));
}

static void opened(heddle_loop_message *message)
{
    ((call *)((char *)message - offsetof(call, message)))->told++;
}

/* On the job's thread, under the threads' lock. */
static void notify(heddle_job *job)
{
    call *self = (call *)job;
    loop *owner = self->owner;
    heddle_inbox_post(&owner->inbox, &self->message);
    pthread_mutex_lock(&owner->mutex);
    owner->wake = true;
    pthread_cond_signal(&owner->woken);
    pthread_mutex_unlock(&owner->mutex);
}

static void *answer(void *data)
{
    return (char *)data + 1;
}

static void *run_briefly(void *data)
{
    return data;
}

static void *run_callback(void *data)
{
    return heddle_threads_call_back(heddle_threads_current(), answer, data);
}

static void *run_until_stopped(void *data)
{
    struct timespec pause = {.tv_nsec = 50000};
    for (int i = 0; i < 40 && !((call *)data)->stop; i++)
        nanosleep(&pause, NULL);
    return data;
}

static void stop(void *data)
{
    ((call *)data)->stop = true;
}

static void submit(loop *self, call *one)
{
    static void *(*const functions[])(void *) = {run_briefly, run_callback, run_until_stopped};
    unsigned kind = rand_r(&self->random) % 3;
    *one = (call){.job = {.function = functions[kind],
                          .data = one,
                          .notify = notify,
                          .brief = kind == 0 && rand_r(&self->random) % 2,
                          .computes = rand_r(&self->random) % 4 == 0},
                  .message = {.open = opened},
                  .owner = self,
                  .used = true};
    if (kind == 2) {
        one->job.unblock = rand_r(&self->random) % 2 ? stop : HEDDLE_UNBLOCK_BY_SIGNAL;
        one->job.unblock_data = one;
    }
    if (heddle_threads_submit(&one->job))
        start_thread();
}

static void finish(loop *self, call *one)
{
    heddle_threads_settle();
    CHECK_EQUAL(HEDDLE_JOB_ENDED, atomic_load(&one->job.state));
    char *expected = (char *)one + (one->job.function == run_callback);
    CHECK(one->job.result == expected);
    one->used = false;
    self->ended++;
}

static void hear(loop *self, call *one)
{
    one->told = 0;
    if (atomic_load(&one->job.state) == HEDDLE_JOB_CALLING_BACK) {
        self->called_back++;
        heddle_threads_answer(&one->job, one->job.callback(one->job.callback_data), false);
    } else {
        finish(self, one);
    }
}

/* What a fiber does whose call was cancelled, or waits in the queue for too long. */
static void disturb(loop *self, call *one)
{
    switch (rand_r(&self->random) % 4) {
    case 0:
        if (heddle_threads_withdraw(&one->job)) {
            one->used = false;
            self->withdrawn++;
        }
        break;
    case 1:
        heddle_threads_interrupt(&one->job);
        break;
    default:
        if (heddle_threads_check_overdue(&one->job))
            start_thread();
    }
}

/* In the selector: even heartbeats. */
static void wait_woken(loop *self)
{
    atomic_store(&self->heartbeat->word, self->heartbeats + 1);
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += 2000000;
    limit.tv_sec += limit.tv_nsec / 1000000000;
    limit.tv_nsec %= 1000000000;
    pthread_mutex_lock(&self->mutex);
    if (!self->wake)
        pthread_cond_timedwait(&self->woken, &self->mutex, &limit);
    self->wake = false;
    pthread_mutex_unlock(&self->mutex);
    self->heartbeats += 2;
    atomic_store(&self->heartbeat->word, self->heartbeats);
    if (atomic_load(&heddle_watch_asleep))
        heddle_watch_rouse();
}

static void settle_beat(loop *self)
{
    if (atomic_load(&self->heartbeat->verdict) == HEDDLE_IN_TIME)
        return;
    late++;
    CHECK(self->heartbeat->late_at >= self->heartbeat->late_since);
    for (int activity = 0; activity < HEDDLE_ACTIVITIES; activity++)
        self->samples += self->heartbeat->found[activity]; /* as stalls.c reads them, while the watch may count on */
    self->samples += self->heartbeat->unanswered;
    atomic_store(&self->heartbeat->verdict, HEDDLE_IN_TIME);
    atomic_store(&self->heartbeat->next_sample, rand_r(&self->random) % 3);
}

/* The loop is held up, as by native code, for longer than the watch leaves between two looks at a calm loop. */
static void stall(loop *self)
{
    struct timespec pause = {.tv_nsec = 15000000};
    if (rand_r(&self->random) % 64 == 0)
        nanosleep(&pause, NULL);
    atomic_fetch_add(&self->heartbeat->answers, 1);
}

static void *run_loop(void *data)
{
    loop *self = data;
    unsigned submitted = 0, under_way = 0;
    heddle_rescue rescue = {.loop = self, .on_stuck = block, .on_recovered = recover};
    self->heartbeat = heddle_heartbeat_acquire(self, (uintptr_t)self);
    self->heartbeats = 1;
    heddle_watch_add(&rescue);
    do {
        under_way = 0;
        for (int i = 0; i < AT_ONCE; i++) {
            call *one = &self->calls[i];
            if (one->used && one->told)
                hear(self, one);
            else if (one->used && rand_r(&self->random) % 8 == 0)
                disturb(self, one);
            else if (!one->used && submitted < JOBS_A_LOOP && ++submitted)
                submit(self, one);
            under_way += one->used;
        }
        stall(self);
        if (heddle_inbox_empty(&self->inbox))
            wait_woken(self);
        self->heartbeats += 2;
        atomic_store_explicit(&self->heartbeat->word, self->heartbeats, memory_order_relaxed);
        settle_beat(self);
        heddle_inbox_open(&self->inbox);
    } while (under_way || submitted < JOBS_A_LOOP || !asked || !rescued || !late);
    heddle_watch_remove(&rescue);
    heddle_heartbeat_release(self->heartbeat);
    return NULL;
}

static void ignore(int number)
{
    (void)number;
}

static void loops_offload_threads_and_the_watch_thread_work_together(void)
{
    static loop loops[LOOPS];
    pthread_t threads[LOOPS];
    struct sigaction action = {.sa_handler = ignore};
    sigaction(SIGVTALRM, &action, NULL);
    heddle_threads_setup();
    CHECK_EQUAL(0, heddle_watch_set_purposes(HEDDLE_WATCH_PREEMPT | HEDDLE_WATCH_STALLS | HEDDLE_WATCH_HANDOFF, &settings));
    for (int i = 0; i < LOOPS; i++) {
        loops[i].random = (unsigned)i + 1;
        pthread_mutex_init(&loops[i].mutex, NULL);
        pthread_cond_init(&loops[i].woken, NULL);
        CHECK_EQUAL(0, pthread_create(&threads[i], NULL, run_loop, &loops[i]));
    }
    unsigned ended = 0, withdrawn = 0, called_back = 0;
    for (int i = 0; i < LOOPS; i++) {
        pthread_join(threads[i], NULL);
        ended += loops[i].ended;
        withdrawn += loops[i].withdrawn;
        called_back += loops[i].called_back;
    }
    CHECK_EQUAL(LOOPS * JOBS_A_LOOP, ended + withdrawn);
    CHECK(called_back > 0 && withdrawn > 0);
    CHECK_EQUAL(ended, heddle_threads_read_statistics().jobs);
    while (heddle_threads_read_statistics().threads < (unsigned)started)
        sched_yield();
    for (int i = 0; i < started; i++)
        heddle_threads_leave(joined[i]);
    for (int i = 0; i < started; i++)
        pthread_join(offload_threads[i], NULL);
    heddle_watch_set_purposes(0, NULL);
    CHECK_EQUAL(0, heddle_threads_read_statistics().threads);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("threads", "loops offload threads and the watch thread work together",
              loops_offload_threads_and_the_watch_thread_work_together);
    return check_end();
}
