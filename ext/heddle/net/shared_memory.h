#ifndef HEDDLE_SHARED_MEMORY_H
#define HEDDLE_SHARED_MEMORY_H

/* Memory that a master shares with all whom it forks, and, by its descriptor, with the program that replaces it. */

#include <stddef.h>

typedef struct {
    void *start; /* NULL: not there */
    size_t size;
    int fd; /* closes on exec; -1: none, then it is for forked processes only */
} heddle_shared_memory;

/* Zeroed. 0 or -errno. */
int heddle_shared_memory_create(heddle_shared_memory *memory, const char *name, size_t size);
/* Takes the descriptor of another's, which is closed on failure, too. 0, -EPROTO: smaller than this, or -errno. */
int heddle_shared_memory_open(heddle_shared_memory *memory, int fd, size_t least);
/* Idempotent. */
void heddle_shared_memory_close(heddle_shared_memory *memory);

#endif
