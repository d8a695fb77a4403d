#pragma once

/*
 * Memory that a master shares with the processes that it forks. In a restart, the old master passes the memory's
 * descriptor to the new master, which maps the same memory.
 */

#include "system.h"

typedef struct {
    void *start; /* NULL: not mapped */
    size_t size;
    /* close-on-exec, unless it is passed to a new master; -1: only forked processes can share the memory */
    int fd;
} heddle_shared_memory;

/* Allocates memory that is all zeros. Returns 0 or -errno. */
int heddle_shared_memory_create(heddle_shared_memory *memory, const char *name, size_t size);
/*
 * Maps another process's memory, and takes ownership of the descriptor. After an error the descriptor is closed.
 * Returns 0, -EPROTO if the memory is smaller than `least` bytes, or another -errno.
 */
int heddle_shared_memory_open(heddle_shared_memory *memory, int fd, size_t least);
/* Unmaps the memory and closes the descriptor. May be called repeatedly. */
void heddle_shared_memory_close(heddle_shared_memory *memory);
