/* Closes descriptors in forked children: see fork_guard.h. */

#include "net/fork_guard.h"

#include "selector/list.h"
#include "selector/native_thread.h"

#include <fcntl.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static heddle_fork_guard *guards;

HEDDLE_HOLD_DURING_FORK(&lock)

static void in_child(void)
{
    heddle_fork_guard *guard = guards;
    guards = NULL;
    while (guard) {
        heddle_fork_guard *next = guard->next;
        guard->next = guard->previous = NULL;
        guard->in_child(guard);
        guard = next;
    }
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, in_child);
}

void heddle_fork_guard_add(heddle_fork_guard *guard)
{
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    HEDDLE_LIST_ADD(guards, guard);
    pthread_mutex_unlock(&lock);
}

void heddle_fork_guard_remove(heddle_fork_guard *guard)
{
    pthread_mutex_lock(&lock);
    HEDDLE_LIST_REMOVE(guards, guard);
    pthread_mutex_unlock(&lock);
}

void heddle_fork_guard_replace(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return;
    if (dup2(null, fd) >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    close(null);
}
