/* Must come before any header. Without it macOS rejects descriptors from FD_SETSIZE on. */
#define _DARWIN_UNLIMITED_SELECT 1

#include "fd_table.h"
#include "selector.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/select.h>
#include <sys/stat.h>

/*
 * The selector for systems that have no better one: every POSIX system has select(2). It is also the reference for how
 * the other selectors behave. It is level-triggered, even for persistent waiters.
 *
 * An fd_set has room for FD_SETSIZE descriptors, and FD_SET with a larger descriptor writes past the end of the set. So
 * this file uses bit sets of its own, which grow. Kernels accept sets of any length.
 *
 * A hang-up counts as readable, an error as readable and writable. select(2) reports neither as exceptional, so a
 * waiter for HEDDLE_PRIORITY alone does not get them.
 */

/*
 * The type of a word of the system's fd_set. On big-endian machines the position of a bit depends on the size of a
 * word.
 */
#if defined(__APPLE__) || defined(__NetBSD__) || defined(__OpenBSD__)
typedef uint32_t word;
#else
typedef unsigned long word;
#endif

enum {
    WORD_BITS = sizeof(word) * CHAR_BIT,
    FIRST_WORDS = FD_SETSIZE / WORD_BITS,
    SETS = 3, /* readable, writable, exceptional */
};

static const uint8_t SET_EVENTS[SETS] = {HEDDLE_READABLE, HEDDLE_WRITABLE, HEDDLE_PRIORITY};

typedef struct {
    heddle_selector base;
    heddle_fd_table table;
    word *wanted[SETS];
    word *ready[SETS]; /* copies of `wanted`; select(2) changes them, and `harvest` delivers them */
    int words;         /* the length of each set, in words */
    int used;          /* the words of `wanted` from this index on are 0 */
    int harvested;     /* the number of words of `ready` that `harvest` has to deliver */
    bool bad;          /* `wait` found a descriptor that is not open */
} select_selector;

/* -- bit sets ---------------------------------------------------------------------------------------------------- */

static word bit_of(int fd)
{
    return (word)1 << (fd % WORD_BITS);
}

static int grow_sets(select_selector *self, int fd)
{
    int words = self->words ? self->words : FIRST_WORDS;
    while (words <= fd / WORD_BITS)
        words *= 2;
    if (words == self->words)
        return 0;
    for (int i = 0; i < SETS * 2; i++) {
        word **set = i < SETS ? &self->wanted[i] : &self->ready[i - SETS];
        word *grown = realloc(*set, (size_t)words * sizeof(word));
        if (!grown)
            return -ENOMEM; /* some sets have grown, which is harmless because `words` is unchanged */
        memset(grown + self->words, 0, (size_t)(words - self->words) * sizeof(word));
        *set = grown;
    }
    self->words = words;
    return 0;
}

static void set_events(select_selector *self, int fd, uint8_t events)
{
    int at = fd / WORD_BITS;
    for (int i = 0; i < SETS; i++) {
        if (events & SET_EVENTS[i])
            self->wanted[i][at] |= bit_of(fd);
        else
            self->wanted[i][at] &= ~bit_of(fd);
    }
    if (events && at >= self->used)
        self->used = at + 1;
}

static word union_of(word *const sets[SETS], int at)
{
    return sets[0][at] | sets[1][at] | sets[2][at];
}

/* -- opening and closing ----------------------------------------------------------------------------------------- */

static void select_close(heddle_selector *selector)
{
    select_selector *self = (select_selector *)selector;
    heddle_wakeup_close(&self->base.wakeup);
    heddle_fd_table_free(&self->table);
    for (int i = 0; i < SETS; i++) {
        free(self->wanted[i]);
        free(self->ready[i]);
    }
    free(self);
}

static int select_open(heddle_selector **selector)
{
    select_selector *self = calloc(1, sizeof(*self));
    if (!self)
        return -ENOMEM;
    self->base.operations = &heddle_select_operations;
    self->base.wakeup = (heddle_wakeup){-1, -1};

    int result = heddle_wakeup_open(&self->base.wakeup);
    if (result == 0)
        result = grow_sets(self, self->base.wakeup.read_fd);
    if (result < 0) {
        select_close(&self->base);
        return result;
    }
    set_events(self, self->base.wakeup.read_fd, HEDDLE_READABLE);
    *selector = &self->base;
    return 0;
}

/* -- waiters ----------------------------------------------------------------------------------------------------- */

static int select_arm(heddle_selector *selector, heddle_waiter *waiter)
{
    select_selector *self = (select_selector *)selector;
    struct stat status;
    /*
     * fstat also fails if the descriptor is not open. select(2) may not notice that: some kernels ignore descriptors
     * above the highest open one.
     */
    if (fstat(waiter->fd, &status) != 0)
        return -errno;
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) {
        int ready = waiter->events & (HEDDLE_READABLE | HEDDLE_WRITABLE);
        return ready ? ready : -EPERM; /* as with epoll: files and directories have no urgent data */
    }

    heddle_fd_entry *entry = heddle_fd_table_at(&self->table, waiter->fd);
    if (!entry || grow_sets(self, waiter->fd) < 0)
        return -ENOMEM;
    heddle_fd_entry_link(entry, waiter);
    set_events(self, waiter->fd, heddle_fd_entry_events(entry));
    return 0;
}

static void select_disarm(heddle_selector *selector, heddle_waiter *waiter)
{
    select_selector *self = (select_selector *)selector;
    heddle_fd_entry *entry = heddle_fd_table_find(&self->table, waiter->fd);
    int at = waiter->fd / WORD_BITS;

    heddle_fd_entry_unlink(entry, waiter);
    set_events(self, waiter->fd, heddle_fd_entry_events(entry));
    /* An event that was not delivered yet must not reach a later waiter for the same number. */
    for (int i = 0; i < SETS; i++)
        self->ready[i][at] &= self->wanted[i][at] | ~bit_of(waiter->fd);
}

/* -- events ------------------------------------------------------------------------------------------------------ */

/* Overwrites `ready`, so it must not be called between `wait` and `harvest`. */
static bool select_has_events(heddle_selector *selector)
{
    select_selector *self = (select_selector *)selector;
    struct timespec now = {0};
    for (int i = 0; i < SETS; i++)
        memcpy(self->ready[i], self->wanted[i], (size_t)self->used * sizeof(word));
    return pselect(self->used * WORD_BITS, (fd_set *)self->ready[0], (fd_set *)self->ready[1],
                   (fd_set *)self->ready[2], &now, NULL) != 0;
}

static int select_wait(heddle_selector *selector, int64_t timeout)
{
    select_selector *self = (select_selector *)selector;
    while (self->used > 0 && !union_of(self->wanted, self->used - 1))
        self->used--;
    for (int i = 0; i < SETS; i++)
        memcpy(self->ready[i], self->wanted[i], (size_t)self->used * sizeof(word));
    self->harvested = 0;

    if (timeout > HEDDLE_LONGEST_WAIT)
        timeout = HEDDLE_LONGEST_WAIT;
    struct timespec limit = {.tv_sec = timeout / 1000000000, .tv_nsec = timeout % 1000000000};
    int count = pselect(self->used * WORD_BITS, (fd_set *)self->ready[0], (fd_set *)self->ready[1],
                        (fd_set *)self->ready[2], timeout < 0 ? NULL : &limit, NULL);
    if (count < 0) {
        self->bad = errno == EBADF;
        return errno == EINTR || errno == EBADF ? 0 : -errno;
    }
    if (count == 0)
        return 0;
    self->harvested = self->used;
    /* Empties the wake-up descriptor here and not in `harvest`: a wake-up before `harvest` must end the next wait. */
    int fd = self->base.wakeup.read_fd;
    if (self->ready[0][fd / WORD_BITS] & bit_of(fd)) {
        self->ready[0][fd / WORD_BITS] &= ~bit_of(fd);
        heddle_wakeup_drain(&self->base.wakeup);
    }
    return 0;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0 || errno != EBADF;
}

static void deliver_event(select_selector *self, int fd, int ready)
{
    heddle_fd_entry *entry = heddle_fd_table_find(&self->table, fd);
    if (!entry || !entry->waiters)
        return;
    heddle_fd_entry_deliver(entry, ready);
    set_events(self, fd, heddle_fd_entry_events(entry));
}

static void deliver_bad(select_selector *self)
{
    for (int at = 0; at < self->used; at++) {
        for (word bits = union_of(self->wanted, at); bits; bits &= bits - 1) {
            int fd = at * WORD_BITS + __builtin_ctzl(bits);
            if (!is_open(fd))
                deliver_event(self, fd, -EBADF);
        }
    }
}

static void select_harvest(heddle_selector *selector)
{
    select_selector *self = (select_selector *)selector;
    int words = self->harvested;

    self->harvested = 0;
    if (self->bad) {
        self->bad = false;
        deliver_bad(self);
    }
    for (int at = 0; at < words; at++) {
        word bits;
        while ((bits = union_of(self->ready, at))) {
            int fd = at * WORD_BITS + __builtin_ctzl(bits), ready = 0;
            for (int i = 0; i < SETS; i++) {
                if (self->ready[i][at] & bit_of(fd))
                    ready |= SET_EVENTS[i];
                self->ready[i][at] &= ~bit_of(fd);
            }
            /* If a descriptor was closed during the wait, Linux reports it as readable. */
            deliver_event(self, fd, is_open(fd) ? ready : -EBADF);
        }
    }
}

static int select_poll(heddle_selector *selector)
{
    int result = select_wait(selector, 0);
    select_harvest(selector);
    return result;
}

const heddle_selector_operations heddle_select_operations = {
    .name = "select",
    .probe = heddle_selector_works,
    .open = select_open,
    .close = select_close,
    .abandon = select_close,
    .arm = select_arm,
    .disarm = select_disarm,
    .has_events = select_has_events,
    .poll = select_poll,
    .wait = select_wait,
    .harvest = select_harvest,
};
