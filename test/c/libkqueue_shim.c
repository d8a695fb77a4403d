/*
 * Between the kqueue selector and libkqueue 2.3.1, which unlike a kqueue refuses (EFAULT) to add a filter that is
 * there already, and a second filter on the same descriptor. Linked with --wrap=kevent; tests only.
 *
 * A filter that is added is deleted first, and write filters sit on a duplicate of their descriptor.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/event.h>
#include <unistd.h>

enum { DESCRIPTORS = 65536, DUPLICATES_FROM = 4000 };

static int duplicate_of[DESCRIPTORS]; /* 0: none */
static int original_of[DESCRIPTORS];
static bool one_shot[DESCRIPTORS]; /* by duplicate */

/* The failure tests define it: true when this call is to fail, with errno set. */
__attribute__((weak)) bool check_fails(int error);

int __real_kevent(int queue, const struct kevent *changes, int change_count, struct kevent *events, int event_count,
                  const struct timespec *limit);
int __wrap_kevent(int queue, const struct kevent *changes, int change_count, struct kevent *events, int event_count,
                  const struct timespec *limit);

static int apply(int queue, struct kevent change)
{
    return __real_kevent(queue, &change, 1, NULL, 0, NULL);
}

static int delete(int queue, int fd, int filter)
{
    struct kevent change;
    EV_SET(&change, fd, filter, EV_DELETE, 0, 0, 0);
    return apply(queue, change);
}

static void drop_duplicate(int fd)
{
    int duplicate = duplicate_of[fd];
    duplicate_of[fd] = 0;
    original_of[duplicate] = 0;
    close(duplicate);
}

static int change_read(int queue, const struct kevent *change)
{
    if (change->flags & EV_ADD)
        delete (queue, (int)change->ident, EVFILT_READ);
    return apply(queue, *change);
}

static int change_write(int queue, const struct kevent *change)
{
    int fd = (int)change->ident, duplicate = duplicate_of[fd];
    struct kevent changed = *change;

    if (duplicate) {
        int result = delete (queue, duplicate, EVFILT_WRITE);
        drop_duplicate(fd);
        if (change->flags & EV_DELETE)
            return result;
    }
    if (!(change->flags & EV_ADD)) {
        errno = ENOENT;
        return -1;
    }
    duplicate = fcntl(fd, F_DUPFD_CLOEXEC, DUPLICATES_FROM);
    if (duplicate < 0)
        return -1;
    duplicate_of[fd] = duplicate;
    original_of[duplicate] = fd;
    one_shot[duplicate] = change->flags & EV_ONESHOT;
    changed.ident = (uintptr_t)duplicate;
    int result = apply(queue, changed);
    if (result < 0)
        drop_duplicate(fd);
    return result;
}

int __wrap_kevent(int queue, const struct kevent *changes, int change_count, struct kevent *events, int event_count,
                  const struct timespec *limit)
{
    if (check_fails && check_fails(ENOMEM))
        return -1;
    if (change_count == 1 && changes->filter == EVFILT_READ)
        return change_read(queue, changes);
    if (change_count == 1 && changes->filter == EVFILT_WRITE)
        return change_write(queue, changes);

    int count = __real_kevent(queue, changes, change_count, events, event_count, limit);
    for (int i = 0; i < count; i++) {
        int duplicate = (int)events[i].ident;
        if (events[i].filter != EVFILT_WRITE || !original_of[duplicate])
            continue;
        events[i].ident = (uintptr_t)original_of[duplicate];
        if (one_shot[duplicate])
            drop_duplicate((int)events[i].ident);
    }
    return count;
}
