#pragma once

#include "system.h"

/*
 * Fills the small gaps that glibc's malloc keeps between blocks in use. Then a process's allocations after a fork lie
 * together in new pages, and not in the pages that it shares. The next call, in a later mold, frees them first.
 *
 * Returns how many bytes it has filled, or -1 if malloc is not glibc's.
 */
ssize_t heddle_fill_heap_gaps(void);
