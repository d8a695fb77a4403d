#pragma once

#include "system.h"

/*
 * Fills the small gaps between the blocks of glibc's malloc, by allocating them. So a forked process makes its next
 * allocations in new pages. In the gaps these allocations would change pages that it shares with its parent, and the
 * kernel would copy these pages. The next call frees the gaps first; it may happen in a later mold (the process that
 * workers are forked from).
 *
 * Returns the number of bytes that it has filled, or -1 if malloc is not glibc's.
 */
ssize_t heddle_fill_heap_gaps(void);
