#pragma once

/* Native threads that never run Ruby code, and condition variables for them. */

#include "system.h"

#include <fcntl.h>
#include <signal.h>

#ifdef __APPLE__
#define HEDDLE_CONDITION_CLOCK CLOCK_REALTIME /* timed waits on macOS always use this clock */
#else
#define HEDDLE_CONDITION_CLOCK CLOCK_MONOTONIC
#endif

/* Initializes a condition variable whose timed waits use HEDDLE_CONDITION_CLOCK. */
static inline void heddle_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
#ifndef __APPLE__
    pthread_condattr_setclock(&attributes, HEDDLE_CONDITION_CLOCK);
#endif
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Starts a thread that blocks all signals, because Ruby's threads handle them. Returns 0 or an error number. */
static inline int heddle_native_thread_start(pthread_t *thread, void *(*run)(void *))
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

/*
 * Returns the state of a thread of this process as the letter that proc_pid_stat(5) describes, or 0 if it is unknown.
 * `number` is the kernel's ID of the thread (gettid).
 */
static inline char heddle_native_thread_state(int number)
{
    char path[64], text[256];
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", number);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t size = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[size > 0 ? size : 0] = '\0';
    const char *name_end = strrchr(text, ')'); /* the thread's name ends here; a space and the state follow */
    return name_end && name_end[1] == ' ' ? name_end[2] : 0;
}

/* Defines two handlers for pthread_atfork: one locks the mutex before a fork, the other unlocks it in the parent. */
#define HEDDLE_HOLD_DURING_FORK(mutex)                                                                                 \
    static void before_fork(void)                                                                                      \
    {                                                                                                                  \
        pthread_mutex_lock(mutex);                                                                                     \
    }                                                                                                                  \
    static void after_fork_in_parent(void)                                                                             \
    {                                                                                                                  \
        pthread_mutex_unlock(mutex);                                                                                   \
    }
