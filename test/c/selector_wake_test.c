/* sources: selector/{selector,fd_table,wakeup,uring,uring_ring,epoll,kqueue,select}.c */
#include "selector_helper.h"

#include <pthread.h>
#include <stdatomic.h>

/* Time limits, wake-ups from other threads, signals. */

static int64_t waited(int64_t timeout)
{
    int64_t before = check_now();
    turn(timeout);
    return check_now() - before;
}

static void wait_with_timeout_zero_returns_at_once(void)
{
    open_selector();
    for (int i = 0; i < 100; i++)
        turn(0);
    close_selector();
}

static void time_limit_does_not_expire_early(void)
{
    const int64_t limits[] = {1, 1000, 50000, MILLISECOND, 3 * MILLISECOND + 1, 20 * MILLISECOND};
    open_selector();
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        int64_t took = waited(limits[i]);
        CHECK(took >= limits[i]);
        CHECK(took < 10ll * SECOND);
    }
    close_selector();
}

/* Timers are kept in nanoseconds; a backend that rounds to milliseconds would take 1 ms for each of these. */
static void short_time_limits_expire_soon(void)
{
    enum { ROUNDS = 50 };
    int64_t best = INT64_MAX;
    open_selector();
    for (int i = 0; i < ROUNDS; i++) {
        int64_t took = waited(10000);
        if (took < best)
            best = took;
    }
    CHECK(best < 900000);
    close_selector();
}

static void longest_time_limit_is_accepted(void)
{
    open_selector();
    heddle_selector_wake(selector);
    turn(INT64_MAX);
    heddle_selector_wake(selector);
    turn(-1);
    close_selector();
}

static void wake_up_before_a_wait_ends_it_at_once(void)
{
    open_selector();
    heddle_selector_wake(selector);
    turn(-1);
    CHECK(waited(30 * MILLISECOND) >= 30 * MILLISECOND); /* one wake-up, one return */
    close_selector();
}

static void many_wake_ups_before_a_wait_count_as_one(void)
{
    open_selector();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++)
            heddle_selector_wake(selector);
        turn(-1);
        CHECK(waited(30 * MILLISECOND) >= 30 * MILLISECOND);
    }
    close_selector();
}

/* More than a pipe holds (64 KiB), unread. */
static void wake_up_never_blocks(void)
{
    open_selector();
    for (int i = 0; i < 70000; i++)
        heddle_selector_wake(selector);
    turn(-1);
    CHECK(waited(30 * MILLISECOND) >= 30 * MILLISECOND);
    close_selector();
}

static void wake_up_after_a_wait_ends_the_next_wait(void)
{
    int fds[2];
    open_selector();
    make_pipe(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    put_byte(fds[1]);
    CHECK_EQUAL(0, operations->wait(selector, -1));
    heddle_selector_wake(selector);
    operations->harvest(selector);
    CHECK_EQUAL(1, waiter.calls);
    turn(-1);
    CHECK(waited(30 * MILLISECOND) >= 30 * MILLISECOND);
    close_both(fds);
    close_selector();
}

/* A counting gate between two threads (macOS has no sem_init). */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count;
} gate;

static gate asked = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
static gate answered = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static void gate_open(gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->count++;
    pthread_cond_signal(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_pass(gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    while (gate->count == 0)
        pthread_cond_wait(&gate->changed, &gate->lock);
    gate->count--;
    pthread_mutex_unlock(&gate->lock);
}

static void *wake_when_asked(void *rounds)
{
    for (int i = 0; i < *(int *)rounds; i++) {
        gate_pass(&asked);
        heddle_selector_wake(selector);
        gate_open(&answered);
    }
    return NULL;
}

/* Each round waits for ever: a lost wake-up hangs, a doubled one shows at the end. */
static void another_thread_may_wake_the_wait(void)
{
    int rounds = 20000;
    pthread_t thread;
    open_selector();
    pthread_create(&thread, NULL, wake_when_asked, &rounds);
    for (int i = 0; i < rounds; i++) {
        gate_open(&asked);
        turn(-1);
        gate_pass(&answered);
    }
    pthread_join(thread, NULL);
    CHECK(waited(30 * MILLISECOND) >= 30 * MILLISECOND);
    close_selector();
}

static atomic_int handled, over;
static pthread_t waiting_thread;

static void handler(int number)
{
    (void)number;
    handled = 1;
}

static void *interrupt(void *unused)
{
    (void)unused;
    /* Not until it was handled: that may have been just before the wait. */
    while (!over) {
        pthread_kill(waiting_thread, SIGUSR1);
        nanosleep(&(struct timespec){.tv_nsec = MILLISECOND}, NULL);
    }
    return NULL;
}

static void signal_ends_the_wait(void)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    pthread_t thread;
#ifdef __SANITIZE_THREAD__
    SKIP("ThreadSanitizer holds signals back during system calls");
#endif
    open_selector();
    waiting_thread = pthread_self();
    sigaction(SIGUSR1, &action, NULL);
    over = 0;
    pthread_create(&thread, NULL, interrupt, NULL);
    while (!handled)
        turn(-1);
    over = 1;
    pthread_join(thread, NULL);
    close_selector();
}

static void *put_a_byte(void *fd)
{
    put_byte(*(int *)fd);
    return NULL;
}

static void data_ends_a_running_wait(void)
{
    int fds[2];
    pthread_t thread;
    open_selector();
    make_pipe(fds);
    for (int i = 0; i < 100; i++) {
        noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
        arm(&waiter);
        pthread_create(&thread, NULL, put_a_byte, &fds[1]);
        while (!waiter.calls)
            turn(-1);
        pthread_join(thread, NULL);
        drain(fds[0]);
    }
    close_both(fds);
    close_selector();
}

static const behaviour BEHAVIOURS[] = {
    {"wait with timeout zero returns at once", wait_with_timeout_zero_returns_at_once},
    {"time limit does not expire early", time_limit_does_not_expire_early},
    {"short time limits expire soon", short_time_limits_expire_soon},
    {"longest time limit is accepted", longest_time_limit_is_accepted},
    {"wake up before a wait ends it at once", wake_up_before_a_wait_ends_it_at_once},
    {"many wake ups before a wait count as one", many_wake_ups_before_a_wait_count_as_one},
    {"wake up never blocks", wake_up_never_blocks},
    {"wake up after a wait ends the next wait", wake_up_after_a_wait_ends_the_next_wait},
    {"another thread may wake the wait", another_thread_may_wake_the_wait},
    {"signal ends the wait", signal_ends_the_wait},
    {"data ends a running wait", data_ends_a_running_wait},
};

int main(int argc, char **argv)
{
    return RUN_BEHAVIOURS(BEHAVIOURS);
}
