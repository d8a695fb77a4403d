#pragma once

#include "system.h"

/*
 * Fills the small gaps between the blocks of glibc's malloc, by allocating them. So a forked process makes its next
 * allocations in new pages. Allocations in the gaps would change pages that the process shares with its parent, and the
 * kernel would copy these pages. The next call, perhaps in a later mold (the process that workers are forked from),
 * first frees what this call has allocated.
 *
 * Returns the number of bytes in the filled gaps, or -1 if malloc is not glibc's.
 */
ssize_t heddle_fill_heap_gaps(void);
