/* sources: selector/{selector,fd_table,wakeup,uring,uring_ring,epoll,kqueue,select}.c */
/* wrap: calloc realloc eventfd epoll_create1 epoll_ctl syscall mmap pselect epoll_wait fstat kqueue */
#include "selector_helper.h"

#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>

/* Every allocation and system call of the selectors fails once, in turn: nothing may leak, hang or be lost. */

static bool counting;
static int calls, fail_at, failed_with;

static bool fails(int error)
{
    if (!counting || ++calls != fail_at)
        return false;
    failed_with = errno = error;
    return true;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return fails(ENOMEM) ? NULL : __real_calloc(count, size);
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    return fails(ENOMEM) ? NULL : __real_realloc(old, size);
}

void *__real_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    return fails(ENOMEM) ? MAP_FAILED : __real_mmap(address, size, protection, flags, fd, offset);
}

int __real_eventfd(unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags)
{
    return fails(EMFILE) ? -1 : __real_eventfd(value, flags);
}

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags)
{
    return fails(EMFILE) ? -1 : __real_epoll_create1(flags);
}

int __real_epoll_ctl(int set, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int set, int operation, int fd, struct epoll_event *event)
{
    return fails(ENOMEM) ? -1 : __real_epoll_ctl(set, operation, fd, event);
}

int __real_epoll_wait(int set, struct epoll_event *events, int count, int timeout);
int __wrap_epoll_wait(int set, struct epoll_event *events, int count, int timeout)
{
    return fails(EINTR) ? -1 : __real_epoll_wait(set, events, count, timeout);
}

int __real_pselect(int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *limit, const sigset_t *);
int __wrap_pselect(int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *limit,
                   const sigset_t *mask)
{
    return fails(ENOMEM) ? -1 : __real_pselect(count, in, out, except, limit, mask);
}

int __real_fstat(int fd, struct stat *status);
int __wrap_fstat(int fd, struct stat *status)
{
    return fails(EIO) ? -1 : __real_fstat(fd, status);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    return fails(ENOMEM) ? -1 : __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#ifdef HEDDLE_LIBKQUEUE
int __real_kqueue(void);
int __wrap_kqueue(void)
{
    return fails(EMFILE) ? -1 : __real_kqueue();
}

/* kevent itself is wrapped in libkqueue_shim.c. */
bool check_fails(int error);
bool check_fails(int error)
{
    return fails(error);
}
#endif

static void fail_the(int call)
{
    calls = 0;
    failed_with = 0;
    fail_at = call;
    counting = true;
}

/* Did it come to the call that was to fail? */
static bool stop_failing(void)
{
    counting = false;
    return calls >= fail_at;
}

/* By a thread that keeps nothing for its next one. */
static void *close_elsewhere(void *opened)
{
    operations->close(opened);
    return NULL;
}

static void failed_open_leaves_nothing(void)
{
    int failures = 0;
    for (int call = 1;; call++) {
        int descriptors = check_open_descriptors();
        heddle_selector *opened = NULL;
        fail_the(call);
        int result = operations->open(&opened);
        bool met = stop_failing();
        if (result < 0) {
            CHECK_EQUAL(-failed_with, result);
            CHECK(opened == NULL);
            failures++;
        } else {
            run_in_a_thread(close_elsewhere, opened);
        }
        CHECK_DESCRIPTORS(descriptors);
        if (!met)
            break;
    }
    CHECK(failures >= 2);
}

/* Arming that fails leaves the waiter alone, and the next try works. */
static void failed_arm_leaves_nothing(void)
{
    for (int call = 1;; call++) {
        int fds[2], near[2];
        open_selector();
        make_pair(near);
        make_pair(fds);
        int far = (int)MUST(fcntl(fds[0], F_DUPFD, 3000));
        noting_waiter first = waiter_for(near[0], HEDDLE_READABLE), waiter = waiter_for(far, HEDDLE_READABLE);
        arm(&first);

        fail_the(call);
        int result = operations->arm(selector, &waiter.base);
        bool met = stop_failing();
        CHECK(result <= 0);
        CHECK_EQUAL(result == 0, waiter.base.armed);
        settle();
        CHECK_EQUAL(0, waiter.calls);
        if (!waiter.base.armed)
            arm(&waiter);
        put_byte(fds[1]);
        put_byte(near[1]);
        TURN_UNTIL(waiter.calls && first.calls);
        CHECK_EQUAL(HEDDLE_READABLE, waiter.result);

        close(far);
        close_both(fds);
        close_both(near);
        close_selector();
        if (!met)
            break;
    }
}

/* 3,000 waiters: slots and queues grow and are submitted while the call fails. */
static void arming_many_while_a_call_fails(void)
{
    enum { COUNT = 3000 };
    noting_waiter *waiters = calloc(COUNT, sizeof(*waiters));
    for (int call = 1; call < 40; call++) {
        int fds[2], refused = 0;
        open_selector();
        make_pair(fds);
        fail_the(call);
        for (int i = 0; i < COUNT; i++) {
            waiters[i] = waiter_for(fds[0], HEDDLE_READABLE);
            if (operations->arm(selector, &waiters[i].base) < 0) {
                CHECK(!waiters[i].base.armed);
                refused++;
            }
        }
        stop_failing();
        CHECK(refused <= 1);
        put_byte(fds[1]);
        for (int i = 0; i < COUNT; i++)
            TURN_UNTIL(!waiters[i].base.armed);
        close_both(fds);
        close_selector();
    }
    free(waiters);
}

/* A wait that fails says so or returns early; what was ready is told afterwards, or the waiter hears of the error. */
static void failed_wait_loses_no_event(void)
{
    for (int call = 1; call < 12; call++) {
        int fds[2];
        open_selector();
        make_pair(fds);
        noting_waiter reader = waiter_for(fds[0], HEDDLE_READABLE), writer = waiter_for(fds[0], HEDDLE_WRITABLE);
        arm(&reader);
        arm(&writer);
        fail_the(call);
        for (int i = 0; i < 4; i++) {
            int result = operations->poll(selector);
            CHECK(result == 0 || result == -failed_with);
            result = operations->wait(selector, MILLISECOND);
            CHECK(result == 0 || result == -failed_with);
            operations->harvest(selector);
        }
        stop_failing();
        put_byte(fds[1]);
        TURN_UNTIL(reader.calls && writer.calls);
        CHECK(reader.result == HEDDLE_READABLE || reader.result == -failed_with);
        CHECK_EQUAL(HEDDLE_WRITABLE, writer.result);
        heddle_selector_wake(selector);
        turn(-1);
        close_both(fds);
        close_selector();
    }
}

static void failed_probe_gives_a_reason(void)
{
    for (int call = 1;; call++) {
        int descriptors = check_open_descriptors();
        char reason[200] = "";
        fail_the(call);
        int result = operations->probe(reason, sizeof(reason));
        bool met = stop_failing();
        CHECK(result == 0 || (result == -failed_with && reason[0]));
        CHECK_DESCRIPTORS(descriptors);
        if (!met)
            break;
    }
}

static const behaviour BEHAVIOURS[] = {
    {"failed open leaves nothing", failed_open_leaves_nothing},
    {"failed arm leaves nothing", failed_arm_leaves_nothing},
    {"arming many while a call fails", arming_many_while_a_call_fails},
    {"failed wait loses no event", failed_wait_loses_no_event},
    {"failed probe gives a reason", failed_probe_gives_a_reason},
};

int main(int argc, char **argv)
{
    return RUN_BEHAVIOURS(BEHAVIOURS);
}
