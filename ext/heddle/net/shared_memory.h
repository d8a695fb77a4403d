#pragma once

/*
 * Memory that a master shares with the processes that it forks, and, by its descriptor, with the program that replaces
 * it.
 */

#include "system.h"

typedef struct {
    void *start; /* NULL: not mapped */
    size_t size;
    /* close-on-exec, unless the replacing program is given it; -1: none, then only forked processes share the memory */
    int fd;
} heddle_shared_memory;

/* Makes zeroed memory. Returns 0 or -errno. */
int heddle_shared_memory_create(heddle_shared_memory *memory, const char *name, size_t size);
/*
 * Maps another process's memory. `memory` owns the descriptor from then on; on failure it is closed. Returns 0, -EPROTO
 * if the memory is smaller than `least`, or another -errno.
 */
int heddle_shared_memory_open(heddle_shared_memory *memory, int fd, size_t least);
/* Idempotent. */
void heddle_shared_memory_close(heddle_shared_memory *memory);
