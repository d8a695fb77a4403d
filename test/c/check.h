#ifndef HEDDLE_TEST_CHECK_H
#define HEDDLE_TEST_CHECK_H

/*
 * A tiny test harness for C. Each test runs in a process of its own, so that a crash, a sanitizer's report, a leak
 * or a hang fails that test alone. A test also fails when it leaves descriptors open.
 */

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CHECK_SECONDS_A_TEST = 60,
    CHECK_SKIPPED = 77,
};

static int check_passed, check_failed, check_skipped;
static const char *check_filter;

#define CHECK(condition)                                                                                              \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            printf("    %s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                      \
            fflush(stdout);                                                                                           \
            _exit(1);                                                                                                 \
        }                                                                                                             \
    } while (0)

#define CHECK_EQUAL(expected, actual)                                                                                 \
    do {                                                                                                              \
        long long check_expected = (expected), check_actual = (actual);                                               \
        if (check_expected != check_actual) {                                                                         \
            printf("    %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #actual, check_actual, check_expected);   \
            fflush(stdout);                                                                                           \
            _exit(1);                                                                                                 \
        }                                                                                                             \
    } while (0)

/* For system calls of the test itself. */
#define MUST(call)                                                                                                    \
    ({                                                                                                                \
        long check_result = (long)(call);                                                                             \
        if (check_result < 0) {                                                                                       \
            printf("    %s:%d: %s: %s\n", __FILE__, __LINE__, #call, strerror(errno));                                \
            fflush(stdout);                                                                                           \
            _exit(1);                                                                                                 \
        }                                                                                                             \
        check_result;                                                                                                 \
    })

/* Ends the test: this machine or this selector can't do what it needs. */
#define SKIP(reason)                                                                                                  \
    do {                                                                                                              \
        printf("    %s\n", reason);                                                                                   \
        fflush(stdout);                                                                                               \
        _exit(CHECK_SKIPPED);                                                                                         \
    } while (0)

static inline int64_t check_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int check_open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 65536; fd++) {
        if (lseek(fd, 0, SEEK_CUR) >= 0 || errno != EBADF)
            count++;
    }
    return count;
}

#ifdef HEDDLE_LIBKQUEUE /* its own thread closes what belongs to a closed queue, some time later */
#define CHECK_DESCRIPTORS(expected) ((void)(expected))
#else
#define CHECK_DESCRIPTORS(expected) CHECK_EQUAL(expected, check_open_descriptors())
#endif

static inline void check_run(const char *group, const char *name, void (*test)(void))
{
    if (check_filter && !strstr(name, check_filter) && !strstr(group, check_filter))
        return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHECK_SECONDS_A_TEST);
        int before = check_open_descriptors();
        test();
        CHECK_DESCRIPTORS(before);
        exit(0); /* not _exit: the leak check runs here */
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        check_passed++;
        printf("  ok %s %s\n", group, name);
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == CHECK_SKIPPED) {
        check_skipped++;
        printf("  skipped %s %s\n", group, name);
    } else {
        check_failed++;
        const char *why = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "";
        printf("  FAILED %s %s %s\n", group, name, why);
    }
}

static inline int check_end(void)
{
    printf("%d passed, %d failed, %d skipped\n", check_passed, check_failed, check_skipped);
    return check_failed ? 1 : 0;
}

#endif
