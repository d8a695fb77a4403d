/* sources: selector/{selector,fd_table,wakeup,uring,uring_ring,uring_spare,epoll,kqueue,select}.c */
#include "selector_helper.h"

#include <sys/wait.h>

/*
 * A thread that opens one selector after the other may get the same one; nobody notices but by the time that it takes.
 */

/* It wakes, hears of what is readable, and does not hear of what its last owner has waited for. */
static void check_that_it_works(void)
{
    int fds[2];
    make_pipe(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    put_byte(fds[1]);
    TURN_UNTIL(waiter.calls);
    operations->wake(selector);
    turn(-1);
    close_both(fds);
}

static void reused_ring_works_like_a_new_one(void)
{
    for (int i = 0; i < 3; i++) {
        open_selector();
        check_that_it_works();
        close_selector();
    }
}

static void wake_up_of_the_last_loop_does_not_reach_the_next_one(void)
{
    open_selector();
    operations->wake(selector);
    close_selector();
    open_selector();
    check_that_it_works();
    close_selector();
}

static void waiters_of_the_last_loop_are_forgotten(void)
{
    int fds[2];
    make_pair(fds);
    open_selector();
    noting_waiter waiter = persistent_waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    settle();
    close_selector();
    open_selector();
    put_byte(fds[1]);
    check_that_it_works();
    CHECK_EQUAL(0, waiter.calls);
    close_selector();
    close_both(fds);
}

static void two_selectors_at_a_time_have_two_rings(void)
{
    open_selector();
    close_selector();
    heddle_selector *first, *second;
    CHECK_EQUAL(0, operations->open(&first));
    CHECK_EQUAL(0, operations->open(&second));
    CHECK(first != second);
    operations->close(first);
    operations->close(second);
    open_selector();
    check_that_it_works();
    close_selector();
}

static void use_one_and_exit(void)
{
    open_selector();
    check_that_it_works();
    close_selector();
}

#ifndef HEDDLE_LIBKQUEUE /* in a child its kqueue() fails with ESRCH now and then */
static void forked_child_opens_its_own_ring(void)
{
    int status;
    open_selector();
    close_selector();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHECK_SECONDS_A_TEST);
        use_one_and_exit();
        _exit(0);
    }
    CHECK_EQUAL(child, waitpid(child, &status, 0));
    CHECK_EQUAL(0, status);
    use_one_and_exit();
}
#endif

static void *open_and_close(void *unused)
{
    heddle_selector *own;
    CHECK_EQUAL(0, operations->open(&own));
    operations->close(own);
    return unused;
}

static void *close_it(void *others)
{
    operations->close(others);
    return NULL;
}

static void spare_ring_is_closed_when_its_thread_ends(void)
{
    int before = check_open_descriptors();
    run_in_a_thread(open_and_close, NULL);
    CHECK_DESCRIPTORS(before);
}

static void ring_closed_by_another_thread_is_not_kept(void)
{
    int before = check_open_descriptors();
    open_selector();
    run_in_a_thread(close_it, selector);
    CHECK_DESCRIPTORS(before);
}

#ifdef __linux__
static void ring_is_opened_once_for_many_loops(void)
{
    use_one_and_exit();
    int before = check_open_descriptors();
    heddle_selector *first, *second;
    CHECK_EQUAL(0, operations->open(&first));
    operations->close(first);
    CHECK_EQUAL(0, operations->open(&second));
    CHECK(first == second);
    operations->close(second);
    CHECK_DESCRIPTORS(before);
}
#endif

static const behaviour BEHAVIOURS[] = {
    {"reused ring works like a new one", reused_ring_works_like_a_new_one},
    {"wake up of the last loop does not reach the next one", wake_up_of_the_last_loop_does_not_reach_the_next_one},
    {"waiters of the last loop are forgotten", waiters_of_the_last_loop_are_forgotten},
    {"two selectors at a time have two rings", two_selectors_at_a_time_have_two_rings},
#ifndef HEDDLE_LIBKQUEUE
    {"forked child opens its own ring", forked_child_opens_its_own_ring},
#endif
    {"spare ring is closed when its thread ends", spare_ring_is_closed_when_its_thread_ends},
    {"ring closed by another thread is not kept", ring_closed_by_another_thread_is_not_kept},
#ifdef __linux__
    {"ring is opened once for many loops", ring_is_opened_once_for_many_loops, true},
#endif
};

int main(int argc, char **argv)
{
    return RUN_BEHAVIOURS(BEHAVIOURS);
}
