#ifndef HEDDLE_TEST_SELECTOR_HELPER_H
#define HEDDLE_TEST_SELECTOR_HELPER_H

/* Runs one table of behaviours against every selector that this machine has. */

#include "check.h"
#include "selector/selector.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { SECOND = 1000000000, MILLISECOND = 1000000 };

static const heddle_selector_operations *operations;
static heddle_selector *selector;

/* A waiter that notes what it was told. */
typedef struct {
    heddle_waiter base;
    int calls;
    int result;
    uint32_t flags;
} noting_waiter;

static inline void note(heddle_waiter *waiter, int result, uint32_t flags)
{
    noting_waiter *self = (noting_waiter *)waiter;
    self->calls++;
    self->result = result;
    self->flags = flags;
}

static inline noting_waiter waiter_for(int fd, uint8_t events)
{
    return (noting_waiter){.base = {.fn = note, .fd = fd, .events = events}};
}

static inline noting_waiter persistent_waiter_for(int fd, uint8_t events)
{
    return (noting_waiter){.base = {.fn = note, .fd = fd, .events = events, .mode = HEDDLE_PERSISTENT}};
}

static inline void open_selector(void)
{
    CHECK_EQUAL(0, operations->open(&selector));
}

static inline void close_selector(void)
{
    operations->close(selector);
    selector = NULL;
}

/* Ready or failed at once is noted like an event. */
static inline void arm(noting_waiter *waiter)
{
    int result = operations->arm(selector, &waiter->base);
    CHECK_EQUAL(result == 0, waiter->base.armed);
    if (result != 0)
        note(&waiter->base, result, 0);
}

static inline void disarm(noting_waiter *waiter)
{
    if (waiter->base.armed)
        operations->disarm(selector, &waiter->base);
    CHECK(!waiter->base.armed);
}

static inline void turn(int64_t timeout)
{
    CHECK_EQUAL(0, operations->wait(selector, timeout));
    operations->harvest(selector);
}

/* Turns until it holds; the test's alarm ends it if it never does. */
#define TURN_UNTIL(condition)                                                                                         \
    do {                                                                                                              \
        while (!(condition))                                                                                          \
            turn(SECOND);                                                                                             \
    } while (0)

/* Turns often enough for anything that is due to come. */
static inline void settle(void)
{
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(0, operations->poll(selector));
        turn(MILLISECOND);
    }
}

static inline void make_pipe(int fds[2])
{
    MUST(pipe(fds));
    for (int i = 0; i < 2; i++)
        MUST(fcntl(fds[i], F_SETFL, O_NONBLOCK));
}

static inline void make_pair(int fds[2])
{
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    for (int i = 0; i < 2; i++)
        MUST(fcntl(fds[i], F_SETFL, O_NONBLOCK));
}

static inline void close_both(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

static inline void put_byte(int fd)
{
    CHECK_EQUAL(1, write(fd, "x", 1));
}

static inline void drain(int fd)
{
    char buffer[4096];
    while (read(fd, buffer, sizeof(buffer)) > 0)
        continue;
}

/* In a process of its own: libkqueue starts a thread, which the children that run the tests would lack. */
static inline bool probe(void)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char reason[256] = "";
        int result = operations->probe(reason, sizeof(reason));
        if (result < 0)
            printf("  skipped %s: %s\n", operations->name, reason);
        fflush(stdout);
        _exit(result < 0);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

typedef struct {
    const char *name;
    void (*run)(void);
    bool completions; /* for selectors that have them */
} behaviour;

/* usage: program [filter]; HEDDLE_SELECTOR chooses one selector. */
static inline void run_in_a_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    CHECK_EQUAL(0, pthread_create(&thread, NULL, run, argument));
    CHECK_EQUAL(0, pthread_join(thread, NULL));
}

static void (*current_run)(void);

static inline void *run_current(void *unused)
{
    current_run();
    return unused;
}

/* In a thread of its own: with it ends what a selector leaves there for the next one. */
static inline void run_behaviour(void)
{
    run_in_a_thread(run_current, NULL);
}

static inline int run_behaviours(int argc, char **argv, const behaviour *table, size_t count)
{
    const char *only = getenv("HEDDLE_SELECTOR");
    struct rlimit limit;
    check_filter = argc > 1 ? argv[1] : NULL;
    /* 5,000 pairs: the usual soft limit of 1,024 is for programs that use select carelessly. */
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 20000) {
        limit.rlim_cur = limit.rlim_max < 20000 ? limit.rlim_max : 20000;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; heddle_selectors[i]; i++) {
        operations = heddle_selectors[i];
        if (only && strcmp(only, operations->name) != 0)
            continue;
        if (!probe()) {
            check_skipped++;
            continue;
        }
        for (size_t k = 0; k < count; k++) {
            current_run = table[k].run;
            if (operations->submit || !table[k].completions)
                check_run(operations->name, table[k].name, run_behaviour);
        }
    }
    return check_end();
}

#define RUN_BEHAVIOURS(table) run_behaviours(argc, argv, table, sizeof(table) / sizeof((table)[0]))

/* The child of a fork runs the action, and must end well. */
static inline void run_in_a_child(void (*action)(void))
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHECK_SECONDS_A_TEST);
        action();
        _exit(0);
    }
    CHECK_EQUAL(child, waitpid(child, &status, 0));
    CHECK_EQUAL(0, status);
}

#endif
