#include "scheduler/timer_heap.h"
#include "selector/assert.h"

enum { CHILDREN = 4 };

static bool is_before(const heddle_timer *timer, const heddle_timer *other)
{
    return timer->deadline < other->deadline || (timer->deadline == other->deadline && timer->number < other->number);
}

static void set_timer(heddle_timer_heap *heap, size_t index, heddle_timer *timer)
{
    heap->entries[index] = timer;
    timer->slot = index + 1;
}

static void sift_up(heddle_timer_heap *heap, size_t index)
{
    heddle_timer *timer = heap->entries[index];
    while (index > 0) {
        size_t parent = (index - 1) / CHILDREN;
        if (!is_before(timer, heap->entries[parent]))
            break;
        set_timer(heap, index, heap->entries[parent]);
        index = parent;
    }
    set_timer(heap, index, timer);
}

static void sift_down(heddle_timer_heap *heap, size_t index)
{
    heddle_timer *timer = heap->entries[index];
    for (;;) {
        size_t first = index * CHILDREN + 1;
        if (first >= heap->count)
            break;
        size_t end = first + CHILDREN < heap->count ? first + CHILDREN : heap->count;
        size_t least = first;
        for (size_t child = first + 1; child < end; child++) {
            if (is_before(heap->entries[child], heap->entries[least]))
                least = child;
        }
        if (is_before(timer, heap->entries[least]))
            break;
        set_timer(heap, index, heap->entries[least]);
        index = least;
    }
    set_timer(heap, index, timer);
}

int heddle_timer_heap_push(heddle_timer_heap *heap, heddle_timer *timer)
{
    HEDDLE_ASSERT(timer->slot == 0);
    if (heap->count == heap->size) {
        size_t size = heap->size ? heap->size * 2 : 64;
        heddle_timer **entries = realloc(heap->entries, size * sizeof(*entries));
        if (!entries)
            return -ENOMEM;
        heap->entries = entries;
        heap->size = size;
    }
    timer->number = heap->pushes++;
    heap->entries[heap->count] = timer;
    sift_up(heap, heap->count++);
    return 0;
}

void heddle_timer_heap_remove(heddle_timer_heap *heap, heddle_timer *timer)
{
    if (timer->slot == 0)
        return;
    size_t index = timer->slot - 1;
    HEDDLE_ASSERT(heap->entries[index] == timer);
    timer->slot = 0;
    heddle_timer *last = heap->entries[--heap->count];
    if (last == timer)
        return;
    set_timer(heap, index, last);
    if (index > 0 && is_before(last, heap->entries[(index - 1) / CHILDREN]))
        sift_up(heap, index);
    else
        sift_down(heap, index);
}

int64_t heddle_timer_heap_next(const heddle_timer_heap *heap)
{
    return heap->count ? heap->entries[0]->deadline : -1;
}

size_t heddle_timer_heap_expire(heddle_timer_heap *heap, int64_t now)
{
    size_t expired = 0;
    while (heap->count && heap->entries[0]->deadline <= now) {
        heddle_timer *timer = heap->entries[0];
        heddle_timer_heap_remove(heap, timer);
        timer->fn(timer);
        expired++;
    }
    return expired;
}

void heddle_timer_heap_free(heddle_timer_heap *heap)
{
    free(heap->entries);
    *heap = (heddle_timer_heap){0};
}
