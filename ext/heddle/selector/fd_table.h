#pragma once

/* A table of the waiters of each descriptor, indexed by the descriptor's number. epoll, kqueue and select use it. */

#include "selector.h"

/*
 * The longest time for which kqueue and select wait, in ns: a year. Some systems reject waits of more than
 * 100,000,000 s.
 */
#define HEDDLE_LONGEST_WAIT (INT64_C(1000000000) * 86400 * 365)

typedef struct {
    heddle_waiter *waiters;
    heddle_waiter *next_to_call; /* during delivery: the waiter to call next; if a callback unlinks it, its successor */
    uint8_t registered;          /* epoll: 1 if the descriptor is registered; kqueue: ONE_SHOT_LEFT or 0 (kqueue.c) */
} heddle_fd_entry;

/*
 * An entry must not move while a callback runs, because the callback may arm any descriptor and so make the table grow.
 * So the table allocates its entries in pages.
 */
typedef struct {
    heddle_fd_entry **pages;
    int page_count;
} heddle_fd_table;

/* Returns the entry of a descriptor (>= 0), and makes the entry if necessary. Returns NULL if memory is exhausted. */
heddle_fd_entry *heddle_fd_table_at(heddle_fd_table *table, int fd);
/* Returns the descriptor's entry, or NULL if heddle_fd_table_at has not made it yet. */
heddle_fd_entry *heddle_fd_table_find(const heddle_fd_table *table, int fd);
void heddle_fd_table_free(heddle_fd_table *table);

void heddle_fd_entry_link(heddle_fd_entry *entry, heddle_waiter *waiter);
void heddle_fd_entry_unlink(heddle_fd_entry *entry, heddle_waiter *waiter);
/* Returns a mask of all events that the entry's waiters wait for. */
uint8_t heddle_fd_entry_events(const heddle_fd_entry *entry);
/*
 * Calls each waiter that waits for one of the events `ready`, or all waiters if `ready` is -errno. Unlinks a one-shot
 * waiter before it calls the waiter; if `ready` is -errno, unlinks persistent waiters, too. A callback may link and
 * unlink any waiter. This call does not call waiters that a callback links.
 */
void heddle_fd_entry_deliver(heddle_fd_entry *entry, int ready);

/* The `probe` of selectors that work on every system for which they are compiled. Returns 0. */
int heddle_selector_works(char *reason, size_t size);
