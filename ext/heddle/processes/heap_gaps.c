#include "processes/heap_gaps.h"

#ifdef __GLIBC__

#include <malloc.h>

/*
 * In bytes. Gaps of SPARED bytes and more are not filled: malloc_trim returns their whole pages to the system, so the
 * kernel never copies these pages for a child.
 */
enum { SPARED = 4096, MOST_SPARED = 65536, ALIGNMENT = 2 * sizeof(size_t) };

struct gap {
    struct gap *next;
};

static struct gap *filled; /* the gaps that the last call has filled */

struct heap {
    uintptr_t begin, end;
};

/*
 * Returns the part of the heap that is in use, without the free memory at its end. Returns an empty part if malloc is
 * not glibc's.
 */
static struct heap heap_in_use(void)
{
    malloc_trim(0); /* leaves less than two free pages at the end */
    uintptr_t end = (uintptr_t)sbrk(0) - 2 * (uintptr_t)sysconf(_SC_PAGESIZE);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* mallinfo2 would need glibc 2.33 */
    unsigned size = (unsigned)mallinfo().arena;
#pragma GCC diagnostic pop
    return (struct heap){.begin = size < end ? end - size : end, .end = end};
}

/*
 * Allocates a gap of this size. Returns NULL if there is none: malloc then takes memory from outside of the heap's used
 * part.
 */
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
    /*
     * Frees the gaps that an earlier call has filled, perhaps in an earlier mold (the process that workers are forked
     * from), because some of them are larger now.
     */
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
