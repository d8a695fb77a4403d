#pragma once

/*
 * To open and close a ring takes 60 to 160 µs of CPU, most of it for its memory. So a thread keeps the ring of its last
 * loop for its next one: programs without a server run many short loops. The ring is closed when the thread ends; a
 * forked child has none.
 */

#include "selector/selector.h"

void heddle_uring_close_spare(void *selector); /* uring.c */

/* Called before all other functions, any number of times. */
void heddle_spare_prepare(void);

/* Takes the calling thread's spare ring, or returns NULL. */
heddle_selector *heddle_spare_acquire(void);
/* False: this thread has a spare ring already, or can't have one. */
bool heddle_spare_keep(heddle_selector *selector);

/* Is this process known to be allowed to have rings? To ask the kernel takes a ring, too. */
bool heddle_spare_is_allowed(void);
void heddle_spare_set_allowed(bool allowed);
