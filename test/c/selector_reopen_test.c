/* sources: selector/{selector,fd_table,wakeup,uring,uring_ring,epoll,kqueue,select}.c */
#include "selector_helper.h"

/* A thread that opens one selector after the other has nothing of the earlier ones. */

/* It wakes, hears of what is readable, and does not hear of what its last owner has waited for. */
static void check_that_it_works(void)
{
    int fds[2];
    make_pipe(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    put_byte(fds[1]);
    TURN_UNTIL(waiter.calls);
    heddle_selector_wake(selector);
    turn(-1);
    close_both(fds);
}

static void later_selector_works_like_the_first_one(void)
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
    heddle_selector_wake(selector);
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

static void two_selectors_at_a_time_work(void)
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
static void forked_child_opens_its_own(void)
{
    open_selector();
    close_selector();
    run_in_a_child(use_one_and_exit);
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

static void selector_of_an_ended_thread_leaves_no_descriptors(void)
{
    int before = check_open_descriptors();
    run_in_a_thread(open_and_close, NULL);
    CHECK_DESCRIPTORS(before);
}

static void selector_closed_by_another_thread_leaves_no_descriptors(void)
{
    int before = check_open_descriptors();
    open_selector();
    run_in_a_thread(close_it, selector);
    CHECK_DESCRIPTORS(before);
}

static const behaviour BEHAVIOURS[] = {
    {"later selector works like the first one", later_selector_works_like_the_first_one},
    {"wake up of the last loop does not reach the next one", wake_up_of_the_last_loop_does_not_reach_the_next_one},
    {"waiters of the last loop are forgotten", waiters_of_the_last_loop_are_forgotten},
    {"two selectors at a time work", two_selectors_at_a_time_work},
#ifndef HEDDLE_LIBKQUEUE
    {"forked child opens its own", forked_child_opens_its_own},
#endif
    {"selector of an ended thread leaves no descriptors", selector_of_an_ended_thread_leaves_no_descriptors},
    {"selector closed by another thread leaves no descriptors", selector_closed_by_another_thread_leaves_no_descriptors},
};

int main(int argc, char **argv)
{
    return RUN_BEHAVIOURS(BEHAVIOURS);
}
