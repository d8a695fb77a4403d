#pragma once

/*
 * The common interface of io_uring, epoll, kqueue and select. A selector reports events to waiters, which are records
 * with a callback and belong to the waiting code. A selector uses neither fibers nor Ruby's headers, so it can be
 * tested and fuzzed alone.
 *
 * Only the thread that owns the selector may call its functions, except for heddle_selector_wake. While the loop runs,
 * only `wait` blocks. It is called without Ruby's global lock (GVL), so it never calls a callback.
 */

#include "system.h"
#include "wakeup.h"

/* On Linux only the C tests use kqueue, through libkqueue. There the presence of <sys/event.h> must not enable it. */
#if defined(HEDDLE_LIBKQUEUE) || (defined(HAVE_SYS_EVENT_H) && !defined(__linux__))
#define HEDDLE_KQUEUE 1
#endif

/* The kinds of readiness, with the values of IO::READABLE, IO::PRIORITY and IO::WRITABLE. */
enum {
    HEDDLE_READABLE = 1,
    HEDDLE_PRIORITY = 2,
    HEDDLE_WRITABLE = 4,
};

/* The bits of a callback's `flags`. */
enum {
    HEDDLE_COMPLETION = 1, /* `result` is a number of bytes or -errno; without this bit, a readiness mask or -errno */
    HEDDLE_MORE = 2,       /* the waiter remains armed, and more events follow */
};

/* How a waiter is armed. */
enum {
    HEDDLE_ONE_SHOT = 0,
    HEDDLE_PERSISTENT = 1, /* remains armed; edge-triggered: the owner must read or write until EAGAIN at each event */
};

typedef struct heddle_selector heddle_selector;
typedef struct heddle_waiter heddle_waiter;

/* A waiter's callback. May arm and disarm waiters, and submit operations. Must not block, raise or switch fibers. */
typedef void heddle_waiter_fn(heddle_waiter *waiter, int result, uint32_t flags);

struct heddle_waiter {
    heddle_waiter_fn *fn;
    int fd;
    uint8_t events;   /* the events to wait for: a mask of HEDDLE_READABLE … */
    uint8_t mode;     /* HEDDLE_ONE_SHOT or HEDDLE_PERSISTENT */
    bool armed;       /* the selector may still call `fn` */
    uint32_t slot;    /* io_uring: the operation's slot */
    heddle_waiter *next, *previous; /* epoll, kqueue, select: the waiters of one descriptor */
};

/*
 * A read or write that the kernel performs and reports as a completion. The selector owns `buffer` from `submit` until
 * it calls the waiter's callback without HEDDLE_MORE.
 */
typedef struct {
    bool write;
    int fd;
    void *buffer;
    uint32_t length;
    int64_t offset; /* -1: the file's current position */
} heddle_operation;

typedef struct {
    const char *name;

    /* Returns 0 if this machine supports the selector. Otherwise writes the reason to `reason`, and returns -errno. */
    int (*probe)(char *reason, size_t size);

    int (*open)(heddle_selector **selector);
    void (*close)(heddle_selector *selector);
    /*
     * Called in a forked child instead of `close`. Releases the child's memory and descriptors, and changes nothing
     * that the parent still uses.
     */
    void (*abandon)(heddle_selector *selector);

    /*
     * Begins to wait for readiness. Returns 0 if the waiter is now armed. If events are ready at once, returns their
     * mask and does not arm the waiter. On failure returns -errno.
     */
    int (*arm)(heddle_selector *selector, heddle_waiter *waiter);
    /* Stops waiting. The waiter's callback is not called after this function has returned. */
    void (*disarm)(heddle_selector *selector, heddle_waiter *waiter);

    /* Submits an operation. Returns 0 or -errno. The pointer is NULL in selectors without completions. */
    int (*submit)(heddle_selector *selector, heddle_waiter *waiter, const heddle_operation *operation);
    /* Requests the cancellation of an operation. The waiter still gets its last event. */
    void (*cancel)(heddle_selector *selector, heddle_waiter *waiter);

    /*
     * Returns whether `poll` would find an event or submit an operation. Makes no system call. The pointer is NULL in
     * selectors that would need a system call to find out.
     */
    bool (*pending)(heddle_selector *selector);
    /* Returns whether events are ready, without removing them. May make a system call. */
    bool (*has_events)(heddle_selector *selector);
    /*
     * Submits operations that are not submitted yet. Then calls the callbacks of all ready events. Does not block.
     * Returns 0 or -errno.
     */
    int (*poll)(heddle_selector *selector);
    /*
     * Submits operations that are not submitted yet. Then blocks until an event or a wake-up comes, or `timeout`
     * nanoseconds have passed (< 0: no limit). Returns 0 or -errno.
     */
    int (*wait)(heddle_selector *selector, int64_t timeout);
    /* Calls the callbacks of the events that `wait` has found. */
    void (*harvest)(heddle_selector *selector);
} heddle_selector_operations;

/* The first member of each selector's own record. */
struct heddle_selector {
    const heddle_selector_operations *operations;
    heddle_wakeup wakeup;
};

/* Makes the current wait, or else the next one, return at once. May be called on any thread. */
static inline void heddle_selector_wake(heddle_selector *selector)
{
    heddle_wakeup_signal(&selector->wakeup);
}

extern const heddle_selector_operations heddle_io_uring_operations;
extern const heddle_selector_operations heddle_epoll_operations;
extern const heddle_selector_operations heddle_kqueue_operations;
extern const heddle_selector_operations heddle_select_operations;

/* The selectors that are compiled in, best first, terminated by NULL. */
extern const heddle_selector_operations *const heddle_selectors[];

/* Returns NULL if no selector of this name is compiled in. */
const heddle_selector_operations *heddle_selector_find(const char *name);
