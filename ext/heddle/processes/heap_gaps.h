#pragma once

#include "system.h"

/*
 * Fills the small gaps that glibc's malloc keeps between blocks in use: what a process allocates after a fork then lies
 * together in pages of its own, and not in each page that it shares. The next call, in a later mold, frees them first.
 *
 * Returns the bytes filled; -1: malloc is not glibc's.
 */
ssize_t heddle_fill_heap_gaps(void);
