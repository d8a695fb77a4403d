#pragma once

/*
 * One interface to io_uring, epoll, kqueue and select. A selector knows only waiters: records with a callback, which
 * belong to the waiting code. It knows no fibers and includes no Ruby headers, so it can be tested and fuzzed alone.
 *
 * Threads: all functions but `wake` are called by the thread that owns the selector. Only `wait` blocks, and only
 * `wait` runs without Ruby's global lock; it never calls a callback.
 */

#include "system.h"

/* Linux has kqueue only in the C tests, through libkqueue: a header of that name is not enough. */
#if defined(HEDDLE_LIBKQUEUE) || (defined(HAVE_SYS_EVENT_H) && !defined(__linux__))
#define HEDDLE_KQUEUE 1
#endif

/* Readiness, with the values of IO::READABLE, IO::PRIORITY and IO::WRITABLE. */
enum {
    HEDDLE_READABLE = 1,
    HEDDLE_PRIORITY = 2,
    HEDDLE_WRITABLE = 4,
};

/* The bits of a callback's `flags`. */
enum {
    HEDDLE_COMPLETION = 1, /* result is bytes or -errno; without it, a readiness mask or -errno */
    HEDDLE_MORE = 2,       /* the waiter stays armed: more events follow */
};

/* How a waiter is armed. */
enum {
    HEDDLE_ONE_SHOT = 0,
    HEDDLE_PERSISTENT = 1, /* stays armed; at each event the owner reads or writes until EAGAIN (edge-triggered) */
};

typedef struct heddle_selector heddle_selector;
typedef struct heddle_waiter heddle_waiter;

/* May arm, disarm and submit other waiters; must not block and must not run Ruby code. */
typedef void heddle_waiter_fn(heddle_waiter *waiter, int result, uint32_t flags);

struct heddle_waiter {
    heddle_waiter_fn *fn;
    int fd;
    uint8_t events;   /* the events to wait for: a mask of HEDDLE_READABLE … */
    uint8_t mode;     /* HEDDLE_ONE_SHOT or HEDDLE_PERSISTENT */
    bool armed;       /* the selector uses this record */
    uint32_t slot;    /* io_uring: the operation's slot */
    heddle_waiter *next, *previous; /* epoll, kqueue, select: the waiters of one descriptor */
};


/* An operation with a completion. The selector owns `buffer` from submit until a callback without HEDDLE_MORE. */
typedef struct {
    bool write;
    int fd;
    void *buffer;
    uint32_t length;
    int64_t offset; /* -1: the file's own position */
} heddle_operation;

typedef struct {
    const char *name;

    /* Returns 0 if this machine supports the selector. Otherwise writes the reason as a text, and returns -errno. */
    int (*probe)(char *reason, size_t size);

    int (*open)(heddle_selector **selector);
    void (*close)(heddle_selector *selector);
    /* In a forked child: releases what belongs to the child and touches nothing shared with the parent. */
    void (*abandon)(heddle_selector *selector);

    /*
     * Begins to wait for readiness. Returns 0 if the waiter is armed, the mask of events if they are ready at once
     * (then nothing is armed), or -errno.
     */
    int (*arm)(heddle_selector *selector, heddle_waiter *waiter);
    /* On return the waiter is removed and its callback will not be called. */
    void (*disarm)(heddle_selector *selector, heddle_waiter *waiter);

    /* Submits an operation. NULL if the selector has no completions. */
    int (*submit)(heddle_selector *selector, heddle_waiter *waiter, const heddle_operation *operation);
    /* Asks for an early end of the operation. The waiter still gets its last event. */
    void (*cancel)(heddle_selector *selector, heddle_waiter *waiter);

    /* Would `poll` find an event or submit something? Makes no system call; NULL where only a system call can tell. */
    bool (*pending)(heddle_selector *selector);
    /* Are there events that `poll` would take? Takes none; may make a system call. */
    bool (*has_events)(heddle_selector *selector);
    /* Submits, takes the events without blocking, and calls the callbacks. 0 or -errno. */
    int (*poll)(heddle_selector *selector);
    /* Submits and blocks until an event, a wake-up or `timeout` nanoseconds (< 0: forever). 0 or -errno. */
    int (*wait)(heddle_selector *selector, int64_t timeout);
    /* Calls the callbacks of the events that `wait` has found. */
    void (*harvest)(heddle_selector *selector);
    /* Makes the current wait, or else the next one, return at once. May be called on any thread. */
    void (*wake)(heddle_selector *selector);
} heddle_selector_operations;

/* The beginning of each selector's record. */
struct heddle_selector {
    const heddle_selector_operations *operations;
};

extern const heddle_selector_operations heddle_io_uring_operations;
extern const heddle_selector_operations heddle_epoll_operations;
extern const heddle_selector_operations heddle_kqueue_operations;
extern const heddle_selector_operations heddle_select_operations;

/* The selectors built into this library, best first, ended by NULL. */
extern const heddle_selector_operations *const heddle_selectors[];

const heddle_selector_operations *heddle_selector_find(const char *name);
