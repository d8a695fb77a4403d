#pragma once

/*
 * One io_uring, used through system calls, without liburing: its memory and how to enter it. Only the thread that
 * opened the ring may use it (SINGLE_ISSUER). Operations complete only when that thread enters the kernel
 * (DEFER_TASKRUN).
 */

#include "uring_abi.h"

typedef struct {
    int fd;
    int enter_fd;         /* the registered index, or fd */
    unsigned enter_flags; /* HEDDLE_ENTER_REGISTERED_RING if the ring was registered */

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
 * Returns 0 if the kernel supports every io_uring feature that Heddle needs. Otherwise writes the reason to `reason`,
 * and returns -errno.
 */
int heddle_ring_probe(char *reason, size_t size);

int heddle_ring_open(heddle_ring *ring); /* 0 or -errno */
void heddle_ring_close(heddle_ring *ring);
/* Called in a forked child instead of heddle_ring_close. */
void heddle_ring_abandon(heddle_ring *ring);

/*
 * Submits the prepared entries, and waits for `minimum` completions or until `timeout` ns have passed (< 0: no limit).
 * Returns the number of submitted entries or -errno.
 */
int heddle_ring_enter(heddle_ring *ring, unsigned minimum, int64_t timeout);
/* Cancels all submitted operations, and waits for their end for up to one second. */
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

/*
 * Returns whether the kernel must be entered to submit entries or to get completions. With DEFER_TASKRUN the tail of
 * the completion queue does not show deferred completions; only the flags do.
 */
static inline bool heddle_ring_needs_enter(const heddle_ring *ring)
{
    unsigned flags = atomic_load_explicit(ring->sq_flags, memory_order_relaxed);
    return (flags & (HEDDLE_SQ_TASKRUN | HEDDLE_SQ_CQ_OVERFLOW)) || heddle_ring_unsubmitted(ring) > 0;
}
