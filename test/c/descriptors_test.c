/* sources: offload/descriptors.c */
#include "check.h"

#include "offload/descriptors.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

/* A number that is closed while calls use it stays taken until they have left; and what other processes do of it. */

static _Atomic int told;

static void notify(heddle_descriptor_call *call)
{
    (void)call;
    told++;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static int open_null(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void descriptor_is_closed_at_once_without_calls(void)
{
    int fd = open_null();
    CHECK_EQUAL(0, heddle_descriptor_close(fd));
    CHECK(!is_open(fd));
    CHECK_EQUAL(-1, heddle_descriptor_close(fd));
    CHECK_EQUAL(EBADF, errno);
}

static void descriptor_is_closed_by_the_last_call_that_uses_it(void)
{
    int fd = open_null(), other = open_null();
    heddle_descriptor_call first = {.fd = fd, .notify = notify}, second = first, late = first;
    CHECK(heddle_descriptor_enter(&first) && heddle_descriptor_enter(&second));
    CHECK_EQUAL(0, heddle_descriptor_close(other));
    CHECK_EQUAL(0, told);
    CHECK_EQUAL(0, heddle_descriptor_close(fd));
    CHECK_EQUAL(2, told);
    CHECK_EQUAL(-1, heddle_descriptor_close(fd)); /* once only */
    CHECK_EQUAL(EBADF, errno);
    CHECK_EQUAL(2, told);
    CHECK(!heddle_descriptor_enter(&late));
    CHECK(heddle_descriptor_leave(&first));
    CHECK(is_open(fd));
    CHECK(heddle_descriptor_leave(&second));
    CHECK(!is_open(fd));
}

static void call_that_has_ended_is_not_notified_of_a_close(void)
{
    int fd = open_null();
    heddle_descriptor_call call = {.fd = fd, .notify = notify};
    CHECK(heddle_descriptor_enter(&call));
    CHECK(heddle_descriptor_in_use(fd));
    CHECK(!heddle_descriptor_leave(&call));
    CHECK(!heddle_descriptor_in_use(fd));
    CHECK_EQUAL(0, heddle_descriptor_close(fd));
    CHECK_EQUAL(0, told);
}

/* It runs in its parent's memory until it executes a program. */
static void close_in_a_vfork_child_does_not_affect_the_parent(void)
{
    int fd = open_null(), status = 0;
    heddle_descriptor_call call = {.fd = fd, .notify = notify};
    CHECK(heddle_descriptor_enter(&call));
    pid_t child = vfork();
    if (child == 0)
        _exit(heddle_descriptor_close(fd) == 0 && !is_open(fd) ? 0 : 1);
    CHECK_EQUAL(child, waitpid(child, &status, 0));
    CHECK_EQUAL(0, status);
    CHECK_EQUAL(0, told);
    CHECK(!heddle_descriptor_leave(&call));
    CHECK(is_open(fd));
    close(fd);
}

static void forked_child_closes_descriptors_that_the_parent_was_closing(void)
{
    int fd = open_null(), status = 0;
    heddle_descriptor_call call = {.fd = fd, .notify = notify};
    CHECK(heddle_descriptor_enter(&call));
    CHECK_EQUAL(0, heddle_descriptor_close(fd));
    pid_t child = fork();
    if (child == 0)
        _exit(!is_open(fd) && !heddle_descriptor_in_use(fd) && heddle_descriptor_leave(&call) ? 0 : 1);
    CHECK_EQUAL(child, waitpid(child, &status, 0));
    CHECK_EQUAL(0, status);
    CHECK(heddle_descriptor_leave(&call));
}

static void *close_elsewhere(void *data)
{
    CHECK_EQUAL(0, heddle_descriptor_close(*(int *)data));
    return NULL;
}

static void descriptor_closed_by_another_thread_stays_open_during_a_call(void)
{
    for (int round = 0; round < 500; round++) {
        int fd = open_null();
        pthread_t thread;
        heddle_descriptor_call call = {.fd = fd, .notify = notify};
        told = 0;
        CHECK(heddle_descriptor_enter(&call));
        CHECK_EQUAL(0, pthread_create(&thread, NULL, close_elsewhere, &fd));
        bool closed = heddle_descriptor_leave(&call);
        CHECK_EQUAL(closed, told);
        pthread_join(thread, NULL);
        CHECK(!is_open(fd));
    }
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    heddle_descriptors_setup();
    check_run("descriptors", "descriptor is closed at once without calls", descriptor_is_closed_at_once_without_calls);
    check_run("descriptors", "descriptor is closed by the last call that uses it",
              descriptor_is_closed_by_the_last_call_that_uses_it);
    check_run("descriptors", "call that has ended is not notified of a close",
              call_that_has_ended_is_not_notified_of_a_close);
    check_run("descriptors", "close in a vfork child does not affect the parent",
              close_in_a_vfork_child_does_not_affect_the_parent);
    check_run("descriptors", "forked child closes descriptors that the parent was closing",
              forked_child_closes_descriptors_that_the_parent_was_closing);
    check_run("descriptors", "descriptor closed by another thread stays open during a call",
              descriptor_closed_by_another_thread_stays_open_during_a_call);
    return check_end();
}
