#include "processes/heap_gaps.h"

#ifdef __GLIBC__

#include <malloc.h>

/*
 * In bytes. Gaps of SPARED bytes and more are not filled: malloc_trim returns their whole pages to the system, so the
 * kernel never copies these pages for a child. Before the smaller gaps are filled, the larger ones are allocated, in
 * blocks of MOST_SPARED bytes and less, so that malloc does not split them. Afterwards the larger ones are freed.
 */
enum { SPARED = 4096, MOST_SPARED = 65536, ALIGNMENT = 2 * sizeof(size_t) };
/* malloc's cache of a thread holds at most this many blocks of one size, with the defaults of any version of glibc. */
enum { MOST_FOREIGN = 16 };

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
    malloc_trim(0);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* mallinfo2 would need glibc 2.33 */
    struct mallinfo info = mallinfo();
#pragma GCC diagnostic pop
    uintptr_t end = (uintptr_t)sbrk(0) - (unsigned)info.keepcost;
    return (struct heap){.begin = (unsigned)info.arena < end ? end - (unsigned)info.arena : end, .end = end};
}

static void free_gaps(struct gap **list)
{
    struct gap *one;
    while ((one = *list)) {
        *list = one->next;
        free(one);
    }
}

/*
 * Allocates all gaps of this size, and returns their total size. A block beyond the heap's end shows that no gap is
 * left. Blocks elsewhere come from the thread's cache, which may hold up to MOST_FOREIGN blocks of other threads'
 * heaps.
 */
static size_t take_gaps(const struct heap *heap, size_t size, struct gap **gaps)
{
    struct gap *others = NULL, *one;
    size_t bytes = 0;
    for (int foreign = 0; foreign < MOST_FOREIGN && (one = malloc(size));) {
        uintptr_t address = (uintptr_t)one;
        bool inside = address >= heap->begin && address < heap->end;
        struct gap **list = inside ? gaps : &others;
        one->next = *list;
        *list = one;
        bytes += inside ? malloc_usable_size(one) : 0;
        if (!inside)
            foreign = address < (uintptr_t)sbrk(0) ? MOST_FOREIGN : foreign + 1;
    }
    free_gaps(&others);
    return bytes;
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
    struct gap *spared = NULL;
    for (size_t size = MOST_SPARED; size >= SPARED; size /= 2)
        take_gaps(&heap, size, &spared);
    size_t bytes = 0;
    for (size_t size = SPARED - ALIGNMENT; size >= ALIGNMENT; size -= ALIGNMENT)
        bytes += take_gaps(&heap, size, &filled);
    free_gaps(&spared);
    malloc_trim(0);
    return (ssize_t)bytes;
}

#else

ssize_t heddle_fill_heap_gaps(void)
{
    return -1;
}

#endif
