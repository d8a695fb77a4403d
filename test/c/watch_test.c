/* sources: watch/watch.c watch/lost_time.c scheduler/layer_hooks.c */
/* wrap: clock_gettime nanosleep pread read */
#include "check.h"
#include "watch/watch.h"

#include <pthread.h>
#include <semaphore.h>

/* What takes a loop's thread too long is found late; what the machine took from it is not. */

#pragma GCC diagnostic ignored "-Wunused-parameter"

static const int64_t MS = 1000000;
static const clockid_t CPU_CLOCK = 1 << 20;

static _Atomic int64_t clock_time = 1000000000, cpu_time, queued_time, asked_pause;
static sem_t sleeps, wakes;
static _Atomic bool ending;
static heddle_heartbeat *heartbeat;

int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
    int64_t now = id == CLOCK_MONOTONIC ? clock_time : cpu_time;
    *time = (struct timespec){.tv_sec = now / 1000000000, .tv_nsec = now % 1000000000};
    return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *unused)
{
    asked_pause = time->tv_nsec;
    sem_post(&sleeps);
    if (!ending)
        sem_wait(&wakes);
    return 0;
}

ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset)
{
    return snprintf(bytes, size, "1 %lld 1\n", (long long)queued_time);
}

/* The thread's state in /proc. */
static _Atomic char state = 'S';

ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    return snprintf(bytes, size, "1 (test) %c 1\n", state);
}

static bool collects(void)
{
    return false;
}

static _Atomic int asked;

static void ask(void)
{
    asked++;
}

static void wait_for_look(void)
{
    sem_wait(&sleeps);
}

/* The watch looks again, so much later than it asked for; meanwhile the thread computed, or waited for a core. */
static void pass(int64_t late, int64_t cpu, int64_t queued)
{
    clock_time += asked_pause + late;
    cpu_time += cpu;
    queued_time += queued;
    sem_post(&wakes);
    wait_for_look();
}

static void start(void)
{
    static const heddle_watch_settings settings = {
        .slice = 10000000, .threshold = 50000000, .handoff = 15000000, .collects = collects, .ask = ask};
    sem_init(&sleeps, 0, 0);
    sem_init(&wakes, 0, 0);
    clock_time = 1000000000;
    heartbeat = heddle_heartbeat_acquire(&heartbeat, 1);
    heartbeat->cpu_clock = CPU_CLOCK;
    asked = 0;
    CHECK_EQUAL(0, heddle_watch_set_purposes(HEDDLE_WATCH_STALLS | HEDDLE_WATCH_HANDOFF, &settings));
    wait_for_look();
}

static void finish(void)
{
    /* From here on the thread does not sleep: it looks on until it is told to end. */
    ending = true;
    sem_post(&wakes);
    heddle_watch_set_purposes(0, NULL);
    ending = false;
    heddle_heartbeat_release(heartbeat);
}

static bool is_late(void)
{
    return atomic_load(&heartbeat->verdict) == HEDDLE_LATE;
}

static void computing_thread_is_late(void)
{
    start();
    for (int i = 0; i < 20; i++)
        pass(0, asked_pause, 0);
    CHECK(!is_late());
    for (int i = 0; i < 20; i++)
        pass(0, asked_pause, 0);
    CHECK(is_late());
    finish();
}

static void thread_that_waits_in_native_code_is_late(void)
{
    start();
    for (int i = 0; i < 40; i++)
        pass(0, 0, 0);
    CHECK(is_late());
    finish();
}

static void stopped_process_is_not_late(void)
{
    start();
    pass(0, 0, 0);
    pass(300 * MS, 0, 0);
    CHECK(!is_late());
    CHECK(!heartbeat->stuck);
    for (int i = 0; i < 40; i++)
        pass(0, 0, 0);
    CHECK(is_late()); /* what comes after that counts */
    CHECK(heartbeat->late_lost >= 300 * MS && heartbeat->late_lost < 310 * MS);
    finish();
}

static void thread_that_waits_for_a_core_is_not_late(void)
{
    start();
    for (int i = 0; i < 100; i++)
        pass(0, asked_pause / 10, asked_pause - asked_pause / 10);
    CHECK(!is_late());
    for (int i = 0; i < 400; i++)
        pass(0, asked_pause / 10, asked_pause - asked_pause / 10);
    CHECK(is_late()); /* 80 ms of its own by now */
    finish();
}

/* The system tells how long the thread waits in its queue only when it runs again. */
static void loop_that_waits_for_a_core_is_not_stuck(void)
{
    start();
    state = 'R';
    pass(0, 0, 0);
    for (int i = 0; i < 40; i++) {
        pass(0, 0, 0);
        CHECK(!heartbeat->stuck);
    }
    CHECK_EQUAL(0, asked);
    CHECK_EQUAL(20 * MS, asked_pause); /* samples would take the core from it */
    pass(0, MS, 900 * MS);
    CHECK(!heartbeat->stuck && !is_late());
    for (int i = 0; i < 20; i++)
        pass(0, asked_pause, 0);
    CHECK(heartbeat->stuck && asked > 0);
    state = 'S';
    finish();
}

static void stuck_loop_that_loses_its_core_stays_stuck(void)
{
    start();
    for (int i = 0; i < 20; i++)
        pass(0, asked_pause, 0);
    CHECK(heartbeat->stuck);
    state = 'R';
    for (int i = 0; i < 20; i++) {
        pass(0, 0, 0);
        CHECK(heartbeat->stuck);
    }
    state = 'S';
    finish();
}

static void loop_that_waits_for_a_core_after_its_selector_is_not_stuck(void)
{
    start();
    atomic_store(&heartbeat->word, atomic_load(&heartbeat->word) + 1);
    atomic_store(&heartbeat->gvl, HEDDLE_GVL_WANTED);
    state = 'R';
    for (int i = 0; i < 40; i++)
        pass(0, 0, 0);
    CHECK(!heartbeat->stuck && !is_late());
    CHECK_EQUAL(0, asked);
    state = 'S';
    finish();
}

static void thread_that_takes_the_core_of_the_watch_thread_is_late(void)
{
    start();
    pass(0, asked_pause, 0);
    pass(300 * MS, 300 * MS, 0);
    CHECK(is_late());
    CHECK(heartbeat->late_lost < 10 * MS);
    finish();
}

static void slightly_late_watch_thread_does_not_excuse_a_late_loop(void)
{
    start();
    for (int i = 0; i < 15; i++)
        pass(5 * MS, 0, 0);
    CHECK(is_late());
    CHECK_EQUAL(0, heartbeat->late_lost);
    finish();
}

#define RUN(test) check_run("watch", #test, test)

int main(int count, char **arguments)
{
    check_filter = count > 1 ? arguments[1] : NULL;
    RUN(computing_thread_is_late);
    RUN(thread_that_waits_in_native_code_is_late);
    RUN(stopped_process_is_not_late);
    RUN(thread_that_waits_for_a_core_is_not_late);
    RUN(loop_that_waits_for_a_core_is_not_stuck);
    RUN(stuck_loop_that_loses_its_core_stays_stuck);
    RUN(loop_that_waits_for_a_core_after_its_selector_is_not_stuck);
    RUN(thread_that_takes_the_core_of_the_watch_thread_is_late);
    RUN(slightly_late_watch_thread_does_not_excuse_a_late_loop);
    return check_end();
}
