#pragma once

/*
 * A FIFO queue of park tokens, as a ring that grows. A token is the slot and generation of a park in one word (loop.h).
 */

#include "system.h"

typedef struct {
    uint64_t *entries;
    uint32_t size; /* a power of two, or 0 */
    uint32_t head, tail;
} heddle_token_ring;

static inline uint32_t heddle_token_ring_count(const heddle_token_ring *ring)
{
    return ring->tail - ring->head;
}

/* Makes room for `count` tokens in total, so that later pushes can't fail. Returns 0 or -ENOMEM. */
static inline int heddle_token_ring_reserve(heddle_token_ring *ring, uint32_t count)
{
    if (count <= ring->size)
        return 0;
    uint32_t size = ring->size ? ring->size : 64;
    while (size < count)
        size *= 2;
    uint64_t *entries = malloc(size * sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    uint32_t used = heddle_token_ring_count(ring);
    for (uint32_t i = 0; i < used; i++)
        entries[i] = ring->entries[(ring->head + i) & (ring->size - 1)];
    free(ring->entries);
    *ring = (heddle_token_ring){.entries = entries, .size = size, .head = 0, .tail = used};
    return 0;
}

/* Never fails, because room for each park's token was reserved when the park's slot was made. */
static inline void heddle_token_ring_push(heddle_token_ring *ring, uint64_t token)
{
    ring->entries[ring->tail++ & (ring->size - 1)] = token;
}

static inline uint64_t *heddle_token_ring_slot(const heddle_token_ring *ring, uint32_t index)
{
    return &ring->entries[(ring->head + index) & (ring->size - 1)];
}

static inline uint64_t heddle_token_ring_at(const heddle_token_ring *ring, uint32_t index)
{
    return *heddle_token_ring_slot(ring, index);
}

static inline uint64_t heddle_token_ring_shift(heddle_token_ring *ring)
{
    return ring->entries[ring->head++ & (ring->size - 1)];
}

static inline void heddle_token_ring_free(heddle_token_ring *ring)
{
    free(ring->entries);
    *ring = (heddle_token_ring){0};
}
