#include "processes/heap_gaps.h"

#ifdef __GLIBC__

#include <malloc.h>

/* Larger gaps are not filled: their whole pages are returned to the system, and so are never copied. */
enum { SPARED = 4096, MOST_SPARED = 65536, ALIGNMENT = 2 * sizeof(size_t) };

struct gap {
    struct gap *next;
};

static struct gap *filled; /* the gaps that the last call has filled */

struct heap {
    uintptr_t begin, end;
};

/* The part of the heap that is in use, without its free end. Empty if malloc is not glibc's. */
static struct heap heap_in_use(void)
{
    malloc_trim(0); /* leaves less than two pages at the end */
    uintptr_t end = (uintptr_t)sbrk(0) - 2 * (uintptr_t)sysconf(_SC_PAGESIZE);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* mallinfo2 would need glibc 2.33 */
    unsigned size = (unsigned)mallinfo().arena;
#pragma GCC diagnostic pop
    return (struct heap){.begin = size < end ? end - size : end, .end = end};
}

/* Returns NULL if there is no gap of this size: then malloc takes memory from the heap's end. */
static void *take_gap(const struct heap *heap, size_t size)
{
    void *block = malloc(size);
    if (block && (uintptr_t)block >= heap->begin && (uintptr_t)block < heap->end)
        return block;
    free(block);
    return NULL;
}

static void free_gaps(struct gap **list)
{
    struct gap *one;
    while ((one = *list)) {
        *list = one->next;
        free(one);
    }
}

static void add_gap(struct gap **list, struct gap *one)
{
    one->next = *list;
    *list = one;
}

ssize_t heddle_fill_heap_gaps(void)
{
    /* frees the gaps that an earlier mold has filled, because some are larger now */
    free_gaps(&filled);
    struct heap heap = heap_in_use();
    if (heap.begin == heap.end)
        return -1;
    struct gap *spared = NULL, *one;
    for (size_t size = MOST_SPARED; size >= SPARED; size /= 2) {
        while ((one = take_gap(&heap, size)))
            add_gap(&spared, one);
    }
    ssize_t bytes = 0;
    for (size_t size = SPARED - ALIGNMENT; size >= ALIGNMENT; size -= ALIGNMENT) {
        while ((one = take_gap(&heap, size))) {
            bytes += (ssize_t)malloc_usable_size(one);
            add_gap(&filled, one);
        }
    }
    free_gaps(&spared);
    malloc_trim(0);
    return bytes;
}

#else

ssize_t heddle_fill_heap_gaps(void)
{
    return -1;
}

#endif
