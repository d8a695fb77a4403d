/* sources: selector/{selector,fd_table,wakeup,uring,uring_ring,epoll,kqueue,select}.c */
/* wrap: syscall */
#include "selector_helper.h"

#include <limits.h>
#include <stdarg.h>
#include <sys/syscall.h>

/* Linux before 5.11, and qemu-user: no epoll_pwait2, so that epoll's time limits are milliseconds. */

static int refused;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
#ifdef SYS_epoll_pwait2
    if (number == SYS_epoll_pwait2) {
        refused++;
        errno = ENOSYS;
        return -1;
    }
#endif
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void longest_time_limits_expire(void)
{
    const int64_t limits[] = {INT64_MAX, INT64_MAX - 999998, (INT_MAX + 1ll) * MILLISECOND,
                              INT_MAX * 1ll * MILLISECOND};
    open_selector();
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        heddle_selector_wake(selector);
        turn(limits[i]);
    }
    close_selector();
}

static void time_limit_does_not_expire_early(void)
{
    const int64_t limits[] = {1, MILLISECOND - 1, MILLISECOND, MILLISECOND + 1, 20 * MILLISECOND};
    open_selector();
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        int64_t before = check_now();
        turn(limits[i]);
        CHECK(check_now() - before >= limits[i]);
    }
    close_selector();
}

static void missing_system_call_is_tried_once(void)
{
    open_selector();
    for (int i = 0; i < 3; i++)
        turn(1);
    CHECK(refused <= 1);
    close_selector();
}

static const behaviour BEHAVIOURS[] = {
    {"longest time limits expire", longest_time_limits_expire},
    {"time limit does not expire early", time_limit_does_not_expire_early},
    {"missing system call is tried once", missing_system_call_is_tried_once},
};

int main(int argc, char **argv)
{
    return RUN_BEHAVIOURS(BEHAVIOURS);
}
