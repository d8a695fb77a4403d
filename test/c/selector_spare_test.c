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

static void the_next_one_works_as_the_first(void)
{
    for (int i = 0; i < 3; i++) {
        open_selector();
        check_that_it_works();
        close_selector();
    }
}

static void a_wake_up_before_the_end_does_no_harm(void)
{
    open_selector();
    operations->wake(selector);
    close_selector();
    open_selector();
    check_that_it_works();
    close_selector();
}

static void waiters_of_the_last_one_are_forgotten(void)
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

static void two_at_once_are_two(void)
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
static void a_child_makes_its_own(void)
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

static void it_ends_with_its_thread(void)
{
    int before = check_open_descriptors();
    run_in_a_thread(open_and_close, NULL);
    CHECK_DESCRIPTORS(before);
}

static void one_that_another_thread_closes_is_not_kept(void)
{
    int before = check_open_descriptors();
    open_selector();
    run_in_a_thread(close_it, selector);
    CHECK_DESCRIPTORS(before);
}

#ifdef __linux__
static void a_ring_is_opened_once_for_many(void)
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
    {"the next one works as the first", the_next_one_works_as_the_first},
    {"a wake-up before the end does no harm", a_wake_up_before_the_end_does_no_harm},
    {"waiters of the last one are forgotten", waiters_of_the_last_one_are_forgotten},
    {"two at once are two", two_at_once_are_two},
#ifndef HEDDLE_LIBKQUEUE
    {"a child makes its own", a_child_makes_its_own},
#endif
    {"it ends with its thread", it_ends_with_its_thread},
    {"one that another thread closes is not kept", one_that_another_thread_closes_is_not_kept},
#ifdef __linux__
    {"a ring is opened once for many", a_ring_is_opened_once_for_many, true},
#endif
};

int main(int argc, char **argv)
{
    return RUN_BEHAVIOURS(BEHAVIOURS);
}
