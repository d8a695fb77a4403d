#include "selector.h"

#ifdef __linux__

#include "fd_table.h"

#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

/*
 * The application may close a descriptor and reuse its number without Heddle's knowledge. So a one-shot waiter's
 * descriptor is registered for one event only (EPOLLONESHOT), and each wait registers it again.
 *
 * A persistent waiter is the only waiter of its descriptor. Its descriptor is registered once, edge-triggered
 * (EPOLLET).
 */

enum { EVENTS_A_WAIT = 256 };

typedef struct {
    heddle_selector base;
    int fd;
    bool no_epoll_pwait2; /* epoll_pwait2 is missing (Linux < 5.11) or forbidden; timeouts are rounded up to ms */
    heddle_fd_table table;
    int harvested;  /* the number of events that `wait` has found and `harvest` has not delivered yet */
    struct epoll_event events[EVENTS_A_WAIT];
} epoll_selector;

/* The event data of the wake-up descriptor. The event data of other descriptors is their number. */
static const uint64_t WAKEUP = UINT64_MAX;

static uint32_t to_epoll(uint8_t events)
{
    uint32_t mask = 0;
    if (events & HEDDLE_READABLE)
        mask |= EPOLLIN | EPOLLRDHUP;
    if (events & HEDDLE_PRIORITY)
        mask |= EPOLLPRI;
    if (events & HEDDLE_WRITABLE)
        mask |= EPOLLOUT;
    return mask;
}

static int from_epoll(uint32_t mask)
{
    int events = 0;
    if (mask & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        events |= HEDDLE_READABLE;
    if (mask & EPOLLPRI)
        events |= HEDDLE_PRIORITY;
    if (mask & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        events |= HEDDLE_WRITABLE;
    /* The kernel reports EPOLLERR and EPOLLHUP even if only PRIORITY was requested, so they count as PRIORITY, too. */
    if (mask & (EPOLLHUP | EPOLLERR))
        events |= HEDDLE_PRIORITY;
    return events;
}

static int epoll_open(heddle_selector **selector)
{
    epoll_selector *self = calloc(1, sizeof(*self));
    if (!self)
        return -ENOMEM;
    self->base.operations = &heddle_epoll_operations;

    int result = heddle_wakeup_open(&self->base.wakeup);
    if (result < 0) {
        free(self);
        return result;
    }
    self->fd = epoll_create1(EPOLL_CLOEXEC);
    /* With EPOLLET each write to the eventfd triggers one event, so the eventfd never has to be read. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = WAKEUP};
    if (self->fd < 0 || epoll_ctl(self->fd, EPOLL_CTL_ADD, self->base.wakeup.read_fd, &event) != 0) {
        result = -errno;
        if (self->fd >= 0)
            close(self->fd);
        heddle_wakeup_close(&self->base.wakeup);
        free(self);
        return result;
    }
    *selector = &self->base;
    return 0;
}

static void epoll_close(heddle_selector *selector)
{
    epoll_selector *self = (epoll_selector *)selector;
    close(self->fd);
    heddle_wakeup_close(&self->base.wakeup);
    heddle_fd_table_free(&self->table);
    free(self);
}

static int register_fd(epoll_selector *self, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)fd};
    heddle_fd_entry *entry = heddle_fd_table_find(&self->table, fd);
    int first = entry->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    if (epoll_ctl(self->fd, first, fd, &event) == 0) {
        entry->registered = 1;
        return 0;
    }
    /* `registered` was wrong: the descriptor was closed and its number reused, or a duplicate is still registered. */
    if (errno == ENOENT || errno == EEXIST) {
        int second = first == EPOLL_CTL_MOD ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
        if (epoll_ctl(self->fd, second, fd, &event) == 0) {
            entry->registered = 1;
            return 0;
        }
    }
    entry->registered = 0;
    return -errno;
}

static int epoll_arm(heddle_selector *selector, heddle_waiter *waiter)
{
    epoll_selector *self = (epoll_selector *)selector;
    if (waiter->fd < 0)
        return -EBADF;
    heddle_fd_entry *entry = heddle_fd_table_at(&self->table, waiter->fd);
    if (!entry)
        return -ENOMEM;

    uint32_t trigger = waiter->mode == HEDDLE_PERSISTENT ? EPOLLET : EPOLLONESHOT;
    int result = register_fd(self, waiter->fd, to_epoll(waiter->events | heddle_fd_entry_events(entry)) | trigger);
    if (result == -EPERM && (waiter->events & (HEDDLE_READABLE | HEDDLE_WRITABLE)))
        return waiter->events & (HEDDLE_READABLE | HEDDLE_WRITABLE); /* regular files are always ready */
    if (result < 0)
        return result;
    heddle_fd_entry_link(entry, waiter);
    return 0;
}

static void epoll_disarm(heddle_selector *selector, heddle_waiter *waiter)
{
    epoll_selector *self = (epoll_selector *)selector;
    heddle_fd_entry *entry = heddle_fd_table_find(&self->table, waiter->fd);

    heddle_fd_entry_unlink(entry, waiter);
    if (waiter->mode == HEDDLE_PERSISTENT && !entry->waiters) {
        struct epoll_event event = {0};
        epoll_ctl(self->fd, EPOLL_CTL_DEL, waiter->fd, &event);
        entry->registered = 0;
    }
    /*
     * A one-shot registration is left in place: it fires at most once, and `harvest` ignores an event without a waiter.
     */
}

static bool epoll_has_events(heddle_selector *selector)
{
    struct pollfd self = {.fd = ((epoll_selector *)selector)->fd, .events = POLLIN};
    return poll(&self, 1, 0) > 0;
}

/*
 * Converts nanoseconds to milliseconds for epoll_wait. Rounds up: a wait that ended just before a timer is due would
 * have to be repeated.
 */
static int milliseconds_of(int64_t timeout)
{
    if (timeout < 0)
        return -1;
    int64_t rounded = timeout / 1000000 + (timeout % 1000000 != 0); /* `timeout + 999999` could overflow */
    return rounded > INT_MAX ? INT_MAX : (int)rounded;
}

static int wait_for_events(epoll_selector *self, int64_t timeout)
{
#ifdef SYS_epoll_pwait2
    if (timeout > 0 && !self->no_epoll_pwait2) {
        struct timespec limit = {.tv_sec = timeout / 1000000000, .tv_nsec = timeout % 1000000000};
        int count = (int)syscall(SYS_epoll_pwait2, self->fd, self->events, EVENTS_A_WAIT, &limit, NULL, 0);
        if (count >= 0 || (errno != ENOSYS && errno != EPERM))
            return count;
        self->no_epoll_pwait2 = true;
    }
#endif
    return epoll_wait(self->fd, self->events, EVENTS_A_WAIT, milliseconds_of(timeout));
}

static int epoll_selector_wait(heddle_selector *selector, int64_t timeout)
{
    epoll_selector *self = (epoll_selector *)selector;
    int count = wait_for_events(self, timeout);
    self->harvested = count > 0 ? count : 0;
    return count < 0 && errno != EINTR ? -errno : 0;
}

static void epoll_harvest(heddle_selector *selector)
{
    epoll_selector *self = (epoll_selector *)selector;
    int count = self->harvested;

    self->harvested = 0;
    for (int i = 0; i < count; i++) {
        if (self->events[i].data.u64 == WAKEUP)
            continue;
        int fd = (int)self->events[i].data.u64;
        heddle_fd_entry *entry = heddle_fd_table_find(&self->table, fd);
        if (!entry || !entry->waiters)
            continue;
        bool persistent = entry->waiters->mode == HEDDLE_PERSISTENT;
        heddle_fd_entry_deliver(entry, from_epoll(self->events[i].events));

        /* A one-shot event disarms the descriptor for all its waiters, so it is armed again for the remaining ones. */
        if (entry->waiters && !persistent) {
            int result = register_fd(self, fd, to_epoll(heddle_fd_entry_events(entry)) | EPOLLONESHOT);
            if (result == -EPERM) /* the descriptor's number now belongs to a regular file */
                heddle_fd_entry_deliver(entry, HEDDLE_READABLE | HEDDLE_WRITABLE);
            else if (result < 0)
                heddle_fd_entry_deliver(entry, result);
        }
    }
}

static int epoll_poll(heddle_selector *selector)
{
    epoll_selector *self = (epoll_selector *)selector;
    int result, full;
    do {
        result = epoll_selector_wait(selector, 0);
        full = self->harvested == EVENTS_A_WAIT;
        epoll_harvest(selector);
    } while (full);
    return result;
}

const heddle_selector_operations heddle_epoll_operations = {
    .name = "epoll",
    .probe = heddle_selector_works,
    .open = epoll_open,
    .close = epoll_close,
    /* A forked child closes only its own descriptor of the epoll instance. The parent can still use the instance. */
    .abandon = epoll_close,
    .arm = epoll_arm,
    .disarm = epoll_disarm,
    .has_events = epoll_has_events,
    .poll = epoll_poll,
    .wait = epoll_selector_wait,
    .harvest = epoll_harvest,
};

#endif
