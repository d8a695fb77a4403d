#pragma once

/*
 * Opening and closing a ring takes 60 to 160 µs of CPU, mostly for its memory. Programs without a server run many short
 * loops. So a thread keeps the ring of its last loop for its next loop. The ring is closed when the thread ends; a
 * forked child has none.
 */

#include "selector/selector.h"

void heddle_uring_close_spare(void *selector); /* uring.c */

/* Called before all other functions, any number of times. */
void heddle_spare_prepare(void);

/* Takes the calling thread's spare ring, or returns NULL. */
heddle_selector *heddle_spare_acquire(void);
/* Returns false if this thread already has a spare ring, or can't have one. */
bool heddle_spare_keep(heddle_selector *selector);

/* Is it known that this process may have rings? Asking the kernel would also need a ring. */
bool heddle_spare_is_allowed(void);
void heddle_spare_set_allowed(bool allowed);
