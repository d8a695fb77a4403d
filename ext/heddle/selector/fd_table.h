#pragma once

/* The waiters of each descriptor, indexed by descriptor: shared by epoll, kqueue and select. */

#include "selector.h"

typedef struct {
    heddle_waiter *waiters;
    heddle_waiter *next_to_call; /* during delivery: the next waiter to call; if it is unlinked, the one after it */
    uint8_t registered;          /* epoll: is it in the kernel's set? kqueue: ONE_SHOT_LEFT or 0 */
} heddle_fd_entry;

/* The entries are in pages, so that they don't move when the table grows: a callback may arm any descriptor. */
typedef struct {
    heddle_fd_entry **pages;
    int page_count;
} heddle_fd_table;

/* The entry of a descriptor >= 0, made if there is none. NULL if out of memory. */
heddle_fd_entry *heddle_fd_table_at(heddle_fd_table *table, int fd);
/* NULL when this descriptor never had an entry. */
heddle_fd_entry *heddle_fd_table_find(const heddle_fd_table *table, int fd);
void heddle_fd_table_free(heddle_fd_table *table);

void heddle_fd_entry_link(heddle_fd_entry *entry, heddle_waiter *waiter);
void heddle_fd_entry_unlink(heddle_fd_entry *entry, heddle_waiter *waiter);
/* The union of the waiters' events. */
uint8_t heddle_fd_entry_events(const heddle_fd_entry *entry);
/*
 * Calls every waiter that waits for one of `ready`, or all waiters when `ready` is -errno. Removes one-shot waiters.
 * Callbacks may link and unlink any waiter. A waiter that is linked meanwhile is not called.
 */
void heddle_fd_entry_deliver(heddle_fd_entry *entry, int ready);

/* The operation `probe` of a selector that works on every system which it is compiled for. Returns 0. */
int heddle_selector_works(char *reason, size_t size);
