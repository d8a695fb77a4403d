#ifndef HEDDLE_URING_SPARE_H
#define HEDDLE_URING_SPARE_H

/*
 * To open and close a ring takes 60 to 160 µs of CPU, most of it for its memory. So a thread keeps the one that its last
 * loop had, for its next one: programs without a server run many short loops. It ends with the thread; a child process
 * has none.
 */

#include <stdbool.h>

typedef struct {
    void (*close)(void *selector);
    void (*abandon)(void *selector); /* in a child after fork */
} heddle_spare_operations;

extern const heddle_spare_operations heddle_uring_spare_operations; /* uring.c */

/* Before anything else, any number of times. */
void heddle_spare_prepare(void);

/* The calling thread's, which has none then; or NULL. */
void *heddle_spare_acquire(void);
/* False: this thread has one already, or can have none. */
bool heddle_spare_keep(void *selector);

/* Whether this process is known to be allowed to have rings: to ask the kernel takes a ring, too. */
bool heddle_spare_is_allowed(void);
void heddle_spare_set_allowed(bool allowed);

#endif
