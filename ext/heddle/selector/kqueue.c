#include "selector.h"

#ifdef HEDDLE_KQUEUE

#include "fd_table.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/event.h>
#include <sys/stat.h>

/*
 * The selector for macOS and the BSDs. A one-shot waiter has an EV_ONESHOT filter for each kind of event. The system
 * removes the filters of a descriptor when the descriptor is closed. A persistent waiter is the only waiter of its
 * descriptor, and its filters are edge-triggered (EV_CLEAR).
 *
 * Only macOS, OpenBSD and DragonFly have a filter for urgent data. On other systems this selector rejects a waiter for
 * urgent data alone. A waiter for urgent data and other events gets only the other events there.
 */

enum { EVENTS_A_WAIT = 256 };

/*
 * A value of an entry's `registered`: the kernel may still have a one-shot filter. EV_ADD would not change the flags of
 * that filter, so a persistent waiter deletes it first.
 */
enum { ONE_SHOT_LEFT = 1 };

typedef struct {
    heddle_selector base;
    int fd;
    heddle_fd_table table;
    int harvested; /* the number of events that `wait` has found and `harvest` has not delivered yet */
    struct kevent events[EVENTS_A_WAIT];
} kqueue_selector;

static const struct {
    uint8_t event;
    int16_t filter;
    uint32_t flags; /* `fflags` of the kevent */
} FILTERS[] = {
    {HEDDLE_READABLE, EVFILT_READ, 0},
    {HEDDLE_WRITABLE, EVFILT_WRITE, 0},
#ifdef EVFILT_EXCEPT
    {HEDDLE_PRIORITY, EVFILT_EXCEPT, NOTE_OOB},
#endif
};

enum { FILTER_COUNT = sizeof(FILTERS) / sizeof(FILTERS[0]) };

/* Makes one change to the kqueue. Returns 0 or -errno. */
static int change_filter(kqueue_selector *self, uintptr_t id, int filter, unsigned flags, unsigned filter_flags)
{
    struct kevent event;
    EV_SET(&event, id, filter, flags, filter_flags, 0, 0);
    return kevent(self->fd, &event, 1, NULL, 0, NULL) < 0 ? -errno : 0;
}

/* -- opening and closing ----------------------------------------------------------------------------------------- */

static int kqueue_probe(char *reason, size_t size)
{
    int fd = kqueue();
    if (fd < 0) {
        int error = errno;
        snprintf(reason, size, "kqueue: %s", strerror(error));
        return -error;
    }
    close(fd);
    return 0;
}

static int open_wakeup(kqueue_selector *self)
{
    heddle_wakeup *wakeup = &self->base.wakeup;
    int result = heddle_wakeup_open(wakeup);
    return result < 0 ? result : change_filter(self, (uintptr_t)wakeup->read_fd, EVFILT_READ, EV_ADD | EV_CLEAR, 0);
}

static void release_memory(kqueue_selector *self)
{
    heddle_wakeup_close(&self->base.wakeup);
    heddle_fd_table_free(&self->table);
    free(self);
}

static void kqueue_close(heddle_selector *selector)
{
    close(((kqueue_selector *)selector)->fd);
    release_memory((kqueue_selector *)selector);
}

static void kqueue_abandon(heddle_selector *selector)
{
    /*
     * A forked child does not inherit the kqueue, so the descriptor's number may belong to another file already. Only
     * libkqueue's queue is inherited.
     */
#ifdef LIBKQUEUE
    close(((kqueue_selector *)selector)->fd);
#endif
    release_memory((kqueue_selector *)selector);
}

static int kqueue_open(heddle_selector **selector)
{
    kqueue_selector *self = calloc(1, sizeof(*self));
    if (!self)
        return -ENOMEM;
    self->base.operations = &heddle_kqueue_operations;
    self->base.wakeup = (heddle_wakeup){-1, -1};
    self->fd = kqueue();
    if (self->fd < 0) {
        int error = errno;
        release_memory(self);
        return -error;
    }
    fcntl(self->fd, F_SETFD, FD_CLOEXEC);
    int result = open_wakeup(self);
    if (result < 0) {
        kqueue_close(&self->base);
        return result;
    }
    *selector = &self->base;
    return 0;
}

/* -- waiters ----------------------------------------------------------------------------------------------------- */

/*
 * Returns which of the waiter's events are ready because the descriptor never blocks. Returns 0 if it may block, and
 * -errno if it can't be waited for. `error` is the error with which the kernel has rejected a filter; 0: none was added
 * yet.
 */
static int ready_at_once(const heddle_waiter *waiter, int error)
{
    int ready = waiter->events & (HEDDLE_READABLE | HEDDLE_WRITABLE);
    struct stat status;
    if (fstat(waiter->fd, &status) != 0)
        return -errno;
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) /* a filter would never fire at the end of a file */
        return ready ? ready : -EPERM;
    switch (error) {
    case 0:
        return 0;
    case EPIPE: /* the pipe no longer has a reader */
        return ready ? ready : -error;
    case EINVAL:
    case ENODEV:
    case EPERM:
    case EOPNOTSUPP:
        if (S_ISCHR(status.st_mode)) /* devices such as /dev/null have no filter and never block */
            return ready ? ready : -EPERM;
    }
    return -error;
}

static void forget_filters(kqueue_selector *self, int fd)
{
    for (int i = 0; i < FILTER_COUNT; i++)
        change_filter(self, (uintptr_t)fd, FILTERS[i].filter, EV_DELETE, 0);
}

static int kqueue_arm(heddle_selector *selector, heddle_waiter *waiter)
{
    kqueue_selector *self = (kqueue_selector *)selector;
    bool persistent = waiter->mode == HEDDLE_PERSISTENT;
    int filters = 0;

    int result = ready_at_once(waiter, 0);
    if (result != 0)
        return result;
    heddle_fd_entry *entry = heddle_fd_table_at(&self->table, waiter->fd);
    if (!entry)
        return -ENOMEM;
    if (persistent && entry->registered)
        forget_filters(self, waiter->fd);

    for (int i = 0; i < FILTER_COUNT; i++) {
        if (!(waiter->events & FILTERS[i].event))
            continue;
        result = change_filter(self, (uintptr_t)waiter->fd, FILTERS[i].filter,
                               EV_ADD | (persistent ? EV_CLEAR : EV_ONESHOT), FILTERS[i].flags);
        if (result < 0) {
            if (persistent)
                forget_filters(self, waiter->fd);
            return ready_at_once(waiter, -result);
        }
        filters++;
    }
    if (filters == 0)
        return -ENOTSUP;
    entry->registered = persistent ? 0 : ONE_SHOT_LEFT;
    heddle_fd_entry_link(entry, waiter);
    return 0;
}

static void kqueue_disarm(heddle_selector *selector, heddle_waiter *waiter)
{
    kqueue_selector *self = (kqueue_selector *)selector;
    heddle_fd_entry_unlink(heddle_fd_table_find(&self->table, waiter->fd), waiter);
    if (waiter->mode == HEDDLE_PERSISTENT)
        forget_filters(self, waiter->fd);
    /* A one-shot filter is left in place: it fires at most once, and `harvest` ignores an event without a waiter. */
}

/* -- events ------------------------------------------------------------------------------------------------------ */

static bool kqueue_has_events(heddle_selector *selector)
{
    struct pollfd self = {.fd = ((kqueue_selector *)selector)->fd, .events = POLLIN};
    return poll(&self, 1, 0) > 0;
}

static int kqueue_wait(heddle_selector *selector, int64_t timeout)
{
    kqueue_selector *self = (kqueue_selector *)selector;
    if (timeout > HEDDLE_LONGEST_WAIT)
        timeout = HEDDLE_LONGEST_WAIT;
    struct timespec limit = {.tv_sec = timeout / 1000000000, .tv_nsec = timeout % 1000000000};
    int count = kevent(self->fd, NULL, 0, self->events, EVENTS_A_WAIT, timeout < 0 ? NULL : &limit);
    self->harvested = count > 0 ? count : 0;
    if (count < 0)
        return errno == EINTR ? 0 : -errno;
    /*
     * Empties the wake-up descriptor, although its filter is edge-triggered: a full pipe would reject the next wake-up.
     * Does so here and not in `harvest`: a wake-up between `wait` and `harvest` must end the next wait.
     */
    for (int i = 0; i < count; i++) {
        if ((int)self->events[i].ident == self->base.wakeup.read_fd)
            heddle_wakeup_drain(&self->base.wakeup);
    }
    return 0;
}

static void deliver_event(kqueue_selector *self, const struct kevent *event)
{
    heddle_fd_entry *entry = heddle_fd_table_find(&self->table, (int)event->ident);
    if (!entry || !entry->waiters)
        return;
    if (event->flags & EV_ERROR) {
        heddle_fd_entry_deliver(entry, -(int)event->data);
        return;
    }
    for (int i = 0; i < FILTER_COUNT; i++) {
        if (FILTERS[i].filter == event->filter)
            heddle_fd_entry_deliver(entry, FILTERS[i].event);
    }
}

static void kqueue_harvest(heddle_selector *selector)
{
    kqueue_selector *self = (kqueue_selector *)selector;
    int count = self->harvested;

    self->harvested = 0;
    for (int i = 0; i < count; i++)
        deliver_event(self, &self->events[i]);
}

static int kqueue_poll(heddle_selector *selector)
{
    kqueue_selector *self = (kqueue_selector *)selector;
    int result, full;
    do {
        result = kqueue_wait(selector, 0);
        full = self->harvested == EVENTS_A_WAIT;
        kqueue_harvest(selector);
    } while (full);
    return result;
}

const heddle_selector_operations heddle_kqueue_operations = {
    .name = "kqueue",
    .probe = kqueue_probe,
    .open = kqueue_open,
    .close = kqueue_close,
    .abandon = kqueue_abandon,
    .arm = kqueue_arm,
    .disarm = kqueue_disarm,
    .has_events = kqueue_has_events,
    .poll = kqueue_poll,
    .wait = kqueue_wait,
    .harvest = kqueue_harvest,
};

#endif
