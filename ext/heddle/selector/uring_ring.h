#pragma once

/*
 * One io_uring, by raw system calls: its memory and how to enter it. It belongs to the thread that opened it
 * (SINGLE_ISSUER) and completes operations only when that thread enters the kernel (DEFER_TASKRUN).
 */

#include "uring_abi.h"

typedef struct {
    int fd;
    int enter_fd;         /* the registered index, or fd */
    unsigned enter_flags; /* IORING_ENTER_REGISTERED_RING if the ring was registered */

    void *memory;
    size_t memory_size;
    struct io_uring_sqe *sqes;
    size_t sqes_size;

    _Atomic unsigned *sq_head, *sq_tail, *sq_flags;
    unsigned sq_mask, sq_entries, sq_local_tail;
    _Atomic unsigned *cq_head, *cq_tail;
    unsigned cq_mask;
    struct io_uring_cqe *cqes;
} heddle_ring;

/*
 * Returns 0 if this machine has everything that is needed. Otherwise writes the reason as a text, and returns -errno.
 */
int heddle_ring_probe(char *reason, size_t size);

int heddle_ring_open(heddle_ring *ring); /* 0 or -errno */
void heddle_ring_close(heddle_ring *ring);
/* Called in a forked child. */
void heddle_ring_abandon(heddle_ring *ring);

/* Submits the prepared entries. Waits for `minimum` completions, at most for `timeout` ns (< 0: forever). */
int heddle_ring_enter(heddle_ring *ring, unsigned minimum, int64_t timeout);
/* Cancels all submitted operations. Returns when they have ended, but after a second at the latest. */
void heddle_ring_cancel_everything(heddle_ring *ring);

static inline unsigned heddle_ring_unsubmitted(const heddle_ring *ring)
{
    return ring->sq_local_tail - atomic_load_explicit(ring->sq_head, memory_order_acquire);
}

static inline bool heddle_ring_has_completions(const heddle_ring *ring)
{
    return atomic_load_explicit(ring->cq_head, memory_order_relaxed) !=
           atomic_load_explicit(ring->cq_tail, memory_order_acquire);
}

/* With DEFER_TASKRUN, the tail of the completion queue is not enough: only the flags show deferred work. */
static inline bool heddle_ring_needs_enter(const heddle_ring *ring)
{
    unsigned flags = atomic_load_explicit(ring->sq_flags, memory_order_relaxed);
    return (flags & (HEDDLE_SQ_TASKRUN | HEDDLE_SQ_CQ_OVERFLOW)) || heddle_ring_unsubmitted(ring) > 0;
}
