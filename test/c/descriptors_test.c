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

static void closes_at_once_without_calls(void)
{
    int fd = open_null();
    CHECK_EQUAL(0, heddle_descriptor_close(fd));
    CHECK(!is_open(fd));
    CHECK_EQUAL(-1, heddle_descriptor_close(fd));
    CHECK_EQUAL(EBADF, errno);
}

static void the_last_call_closes(void)
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

static void a_call_that_leaves_before_the_close_hears_nothing(void)
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
static void what_a_child_closes_after_vfork_is_its_own(void)
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

static void a_forked_child_closes_what_its_parent_has_closed(void)
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

static void another_thread_closes(void)
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
    check_run("descriptors", "closes at once without calls", closes_at_once_without_calls);
    check_run("descriptors", "the last call closes", the_last_call_closes);
    check_run("descriptors", "a call that leaves before the close hears nothing",
              a_call_that_leaves_before_the_close_hears_nothing);
    check_run("descriptors", "what a child closes after vfork is its own", what_a_child_closes_after_vfork_is_its_own);
    check_run("descriptors", "a forked child closes what its parent has closed",
              a_forked_child_closes_what_its_parent_has_closed);
    check_run("descriptors", "another thread closes", another_thread_closes);
    return check_end();
}
