/* sources: selector/{selector,fd_table,wakeup,uring,uring_ring,epoll,kqueue,select}.c */
#include "selector_helper.h"

/* In a child after fork the selector is abandoned; the parent's must not notice. */

/* Runs in the child: gives up the parent's selector and uses one of its own. */
static void use_a_selector_in_the_child(void)
{
    int fds[2];
    operations->abandon(selector);
    open_selector();
    make_pipe(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    put_byte(fds[1]);
    TURN_UNTIL(waiter.calls);
    heddle_selector_wake(selector);
    turn(-1);
    close_both(fds);
    close_selector();
}

static void check_that_the_parent_works(noting_waiter *one_shot, noting_waiter *persistent, const int fds[2],
                                        const int pair[2])
{
    int calls = persistent->calls;
    settle();
    CHECK_EQUAL(0, one_shot->calls);
    put_byte(fds[1]);
    put_byte(pair[1]);
    TURN_UNTIL(one_shot->calls && persistent->calls > calls);
    CHECK_EQUAL(HEDDLE_READABLE, one_shot->result);
    CHECK_EQUAL(HEDDLE_READABLE, persistent->result);
    CHECK(persistent->base.armed);
    heddle_selector_wake(selector);
    turn(-1);
    drain(pair[0]);
}

static void parent_continues_after_a_child_has_abandoned_the_selector(void)
{
    int fds[2], pair[2];
    open_selector();
    make_pipe(fds);
    make_pair(pair);
    noting_waiter one_shot = waiter_for(fds[0], HEDDLE_READABLE);
    noting_waiter persistent = persistent_waiter_for(pair[0], HEDDLE_READABLE);
    arm(&one_shot);
    arm(&persistent);
    run_in_a_child(use_a_selector_in_the_child); /* the parent's selector knows of them only in its own memory */
    settle();
    run_in_a_child(use_a_selector_in_the_child); /* and now the kernel knows too */
    check_that_the_parent_works(&one_shot, &persistent, fds, pair);
    disarm(&persistent);
    close_both(fds);
    close_both(pair);
    close_selector();
}

static void pending_wake_up_stays_with_the_parent(void)
{
    open_selector();
    heddle_selector_wake(selector);
    run_in_a_child(use_a_selector_in_the_child);
    turn(-1);
    close_selector();
}

static void abandon_only(void)
{
    int before = check_open_descriptors();
    operations->abandon(selector);
    CHECK(check_open_descriptors() < before);
}

static void abandon_closes_the_descriptors_of_the_child(void)
{
    open_selector();
    run_in_a_child(abandon_only);
    heddle_selector_wake(selector);
    turn(-1);
    close_selector();
}

static int child_fds[2];
static char *child_buffer;

static void abandon_with_a_read_under_way(void)
{
    use_a_selector_in_the_child();
    free(child_buffer);
}

static void completion_stays_with_the_parent(void)
{
    open_selector();
    MUST(pipe(child_fds));
    child_buffer = calloc(1, 8);
    noting_waiter waiter = {.base.fn = note};
    heddle_operation operation = {false, child_fds[0], child_buffer, 8, -1};
    CHECK_EQUAL(0, operations->submit(selector, &waiter.base, &operation));
    run_in_a_child(abandon_with_a_read_under_way);
    settle();
    run_in_a_child(abandon_with_a_read_under_way);
    settle();
    CHECK_EQUAL(0, waiter.calls);
    put_byte(child_fds[1]);
    TURN_UNTIL(waiter.calls);
    CHECK_EQUAL(1, waiter.result);
    CHECK_EQUAL('x', child_buffer[0]);
    free(child_buffer);
    close_both(child_fds);
    close_selector();
}

static const behaviour BEHAVIOURS[] = {
    {"parent continues after a child has abandoned the selector",
     parent_continues_after_a_child_has_abandoned_the_selector},
    {"pending wake up stays with the parent", pending_wake_up_stays_with_the_parent},
    {"abandon closes the descriptors of the child", abandon_closes_the_descriptors_of_the_child},
    {"a completion stays the parent's", completion_stays_with_the_parent, true},
};

int main(int argc, char **argv)
{
    return RUN_BEHAVIOURS(BEHAVIOURS);
}
