#include "selector.h"

#ifdef __linux__

#include "uring_ring.h"
#include "selector/assert.h"

#include <poll.h>

/*
 * Only the thread that opened the ring may enter it. So other threads wake that thread by a write to an eventfd, which
 * the ring polls.
 */

enum { NO_SLOT = UINT32_MAX };

/*
 * Completions identify their operation by slot and generation, never by address. A slot becomes free only after the
 * last completion of the operation and of its cancellation. Otherwise a late completion would reach the slot's next
 * owner.
 */
typedef struct {
    heddle_waiter *waiter; /* NULL: the waiter is disarmed, and completions are ignored */
    uint32_t generation;
    uint32_t next_free;
    uint8_t outstanding; /* the number of completions that have not arrived yet */
    bool poll;           /* a wait for readiness; false: a read or write */
} operation_slot;

/* A bit of user_data above the generation's 31 bits. It marks the completion of a cancellation. */
static const uint64_t CANCELLATION = 1ull << 63;

typedef struct {
    heddle_selector base;
    heddle_ring ring;

    operation_slot *slots;
    uint32_t slot_count, free_slot;

    heddle_waiter wakeup_waiter;
} uring_selector;

/* -- submission -------------------------------------------------------------------------------------------------- */

static void uring_harvest(heddle_selector *selector);

static struct io_uring_sqe *next_submission(uring_selector *self)
{
    /*
     * EBUSY and EAGAIN mean that the completion queue has overflowed or that memory is short. Removing completions
     * helps in both cases.
     */
    for (int tries = 0; heddle_ring_unsubmitted(&self->ring) >= self->ring.sq_entries; tries++) {
        int result = heddle_ring_enter(&self->ring, 0, 0);
        if (result < 0 && result != -EBUSY && result != -EAGAIN && result != -EINTR)
            return NULL;
        uring_harvest(&self->base);
        if (tries == 1000)
            return NULL;
    }
    struct io_uring_sqe *sqe = &self->ring.sqes[self->ring.sq_local_tail & self->ring.sq_mask];
    self->ring.sq_local_tail++;
    memset(sqe, 0, sizeof(*sqe));
    return sqe;
}

/* -- slots ------------------------------------------------------------------------------------------------------- */

static uint32_t slot_acquire(uring_selector *self)
{
    if (self->free_slot == NO_SLOT) {
        uint32_t count = self->slot_count ? self->slot_count * 2 : 64;
        operation_slot *slots = realloc(self->slots, count * sizeof(*slots));
        if (!slots)
            return NO_SLOT;
        for (uint32_t i = self->slot_count; i < count; i++)
            slots[i] = (operation_slot){.next_free = i + 1 < count ? i + 1 : NO_SLOT};
        self->free_slot = self->slot_count;
        self->slots = slots;
        self->slot_count = count;
    }
    uint32_t index = self->free_slot;
    self->free_slot = self->slots[index].next_free;
    return index;
}

static void slot_release(uring_selector *self, uint32_t index)
{
    operation_slot *slot = &self->slots[index];
    slot->waiter = NULL;
    slot->generation = (slot->generation + 1) & 0x7fffffff;
    slot->next_free = self->free_slot;
    self->free_slot = index;
}

static uint64_t slot_identity(uring_selector *self, uint32_t index)
{
    return (uint64_t)self->slots[index].generation << 32 | index;
}

/* Acquires a slot and a submission entry. Returns NULL, and acquires nothing, if either is not available. */
static struct io_uring_sqe *prepare_submission(uring_selector *self, heddle_waiter *waiter, bool poll)
{
    uint32_t index = slot_acquire(self);
    if (index == NO_SLOT)
        return NULL;
    struct io_uring_sqe *sqe = next_submission(self);
    if (!sqe) {
        slot_release(self, index);
        return NULL;
    }
    operation_slot *slot = &self->slots[index];
    slot->waiter = waiter;
    slot->outstanding = 1;
    slot->poll = poll;
    waiter->slot = index;
    waiter->armed = true;
    sqe->user_data = slot_identity(self, index);
    return sqe;
}

/* -- readiness --------------------------------------------------------------------------------------------------- */

static uint32_t to_poll(uint8_t events)
{
    uint32_t mask = 0;
    if (events & HEDDLE_READABLE)
        mask |= POLLIN | POLLRDHUP;
    if (events & HEDDLE_PRIORITY)
        mask |= POLLPRI;
    if (events & HEDDLE_WRITABLE)
        mask |= POLLOUT;
    return mask;
}

/*
 * Since Linux 5.19 io_uring ignores wake-ups that match only POLLPRI (IO_ASYNC_POLL_COMMON in io_uring/poll.c). Sockets
 * report urgent data as POLLPRI and POLLRDBAND together, so both are requested. But sockets report ordinary data as
 * POLLRDBAND, too. So `poll_now` checks which event it is.
 */
static uint32_t to_uring(uint8_t events)
{
    return to_poll(events) | (events & HEDDLE_PRIORITY ? POLLRDBAND : 0);
}

static int from_poll(int mask, uint8_t wanted)
{
    int events = 0;
    if (mask & (POLLERR | POLLHUP))
        return wanted;
    if (mask & (POLLIN | POLLRDHUP))
        events |= HEDDLE_READABLE;
    if (mask & POLLPRI)
        events |= HEDDLE_PRIORITY;
    if (mask & POLLOUT)
        events |= HEDDLE_WRITABLE;
    return events & wanted;
}

static int uring_arm(heddle_selector *selector, heddle_waiter *waiter)
{
    HEDDLE_ASSERT(!waiter->armed);
    struct io_uring_sqe *sqe = prepare_submission((uring_selector *)selector, waiter, true);
    if (!sqe)
        return -ENOMEM;
    uint32_t mask = to_uring(waiter->events);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    mask = mask << 16 | mask >> 16; /* poll32_events is stored with its halves swapped on big-endian machines */
#endif
    sqe->opcode = HEDDLE_OP_POLL_ADD;
    sqe->fd = waiter->fd;
    sqe->poll32_events = mask;
    sqe->len = waiter->mode == HEDDLE_PERSISTENT ? HEDDLE_POLL_MULTISHOT : 0;
    return 0;
}

static void request_cancel(uring_selector *self, uint32_t index)
{
    if (self->slots[index].outstanding > 1)
        return; /* a cancellation was submitted already */
    /*
     * The cancellation's completion is counted before next_submission is called. That function may harvest the
     * operation's own completion, which must not free the slot.
     */
    self->slots[index].outstanding++;
    struct io_uring_sqe *sqe = next_submission(self);
    operation_slot *slot = &self->slots[index];
    if (!sqe) {
        /*
         * No submission entry is free. The operation ends by itself, or when the ring is closed. Its slot remains in
         * use until then.
         */
        if (--slot->outstanding == 0)
            slot_release(self, index);
        return;
    }
    sqe->opcode = slot->poll ? HEDDLE_OP_POLL_REMOVE : HEDDLE_OP_ASYNC_CANCEL;
    sqe->fd = -1;
    sqe->addr = slot_identity(self, index);
    sqe->user_data = CANCELLATION | slot_identity(self, index);
}

static void uring_disarm(heddle_selector *selector, heddle_waiter *waiter)
{
    uring_selector *self = (uring_selector *)selector;
    HEDDLE_ASSERT(waiter->armed && self->slots[waiter->slot].poll);
    self->slots[waiter->slot].waiter = NULL;
    waiter->armed = false;
    request_cancel(self, waiter->slot);
}

/* -- completions ------------------------------------------------------------------------------------------------- */

static int uring_submit(heddle_selector *selector, heddle_waiter *waiter, const heddle_operation *operation)
{
    uring_selector *self = (uring_selector *)selector;
    struct io_uring_sqe *sqe = prepare_submission(self, waiter, false);
    if (!sqe)
        return -ENOMEM;

    sqe->fd = operation->fd;
    sqe->len = operation->length;
    sqe->opcode = operation->write ? HEDDLE_OP_WRITE : HEDDLE_OP_READ;
    sqe->addr = (uint64_t)(uintptr_t)operation->buffer;
    sqe->off = (uint64_t)operation->offset;
    /*
     * Submits at once: by the end of the loop's tick the descriptor's number may belong to another file. If this fails,
     * the entry is still submitted at the end of the tick.
     */
    heddle_ring_enter(&self->ring, 0, 0);
    return 0;
}

static void uring_cancel(heddle_selector *selector, heddle_waiter *waiter)
{
    if (waiter->armed)
        request_cancel((uring_selector *)selector, waiter->slot);
}

/*
 * Returns which of the waiter's events are ready according to poll(2), or 0. Used for waiters for urgent data: see
 * `to_uring`.
 */
static int poll_now(const heddle_waiter *waiter)
{
    struct pollfd now = {.fd = waiter->fd, .events = (short)to_poll(waiter->events)};
    return poll(&now, 1, 0) == 1 ? from_poll(now.revents, waiter->events) : 0;
}

static void deliver_completion(uring_selector *self, const struct io_uring_cqe *cqe)
{
    uint32_t index = (uint32_t)cqe->user_data;
    operation_slot *slot = &self->slots[index];
    bool cancellation = cqe->user_data & CANCELLATION;
    bool more = cqe->flags & HEDDLE_CQE_F_MORE;
    bool poll = slot->poll;
    heddle_waiter *waiter = cancellation ? NULL : slot->waiter;
    int result = cqe->res;

    HEDDLE_ASSERT(slot->generation == ((cqe->user_data & ~CANCELLATION) >> 32));
    if (!more)
        slot->outstanding--;
    if (waiter && !more) {
        slot->waiter = NULL;
        waiter->armed = false;
    }
    if (slot->outstanding == 0)
        slot_release(self, index);
    if (!waiter)
        return;
    if (poll && result == -EINVAL && waiter->events == HEDDLE_PRIORITY) {
        result = -EPERM; /* as with epoll: files have no urgent data */
    } else if (poll && result >= 0 && (waiter->events & HEDDLE_PRIORITY)) {
        result = poll_now(waiter);
        if (result == 0 && !more)
            result = uring_arm(&self->base, waiter);
        if (result == 0)
            return;
    } else if (poll && result >= 0) {
        result = from_poll(result, waiter->events);
        if (result == 0)
            result = waiter->events; /* a false report of readiness is harmless, a lost one is not */
    }
    waiter->fn(waiter, result, (poll ? 0 : HEDDLE_COMPLETION) | (more ? HEDDLE_MORE : 0));
}

static void uring_harvest(heddle_selector *selector)
{
    uring_selector *self = (uring_selector *)selector;
    /*
     * Advances the head before each callback, because a callback may submit an operation, which may call this function
     * again.
     */
    for (;;) {
        unsigned head = atomic_load_explicit(self->ring.cq_head, memory_order_relaxed);
        if (head == atomic_load_explicit(self->ring.cq_tail, memory_order_acquire))
            return;
        struct io_uring_cqe cqe = self->ring.cqes[head & self->ring.cq_mask];
        atomic_store_explicit(self->ring.cq_head, head + 1, memory_order_release);
        deliver_completion(self, &cqe);
    }
}

static bool uring_pending(heddle_selector *selector)
{
    uring_selector *self = (uring_selector *)selector;
    return heddle_ring_has_completions(&self->ring) || heddle_ring_needs_enter(&self->ring);
}

static int tolerate_busy(int result)
{
    return result >= 0 || result == -ETIME || result == -EINTR || result == -EBUSY || result == -EAGAIN ? 0 : result;
}

static int uring_poll(heddle_selector *selector)
{
    uring_selector *self = (uring_selector *)selector;
    int result = heddle_ring_needs_enter(&self->ring) ? tolerate_busy(heddle_ring_enter(&self->ring, 0, 0)) : 0;
    uring_harvest(selector);
    return result;
}

static int uring_wait(heddle_selector *selector, int64_t timeout)
{
    uring_selector *self = (uring_selector *)selector;
    return tolerate_busy(heddle_ring_enter(&self->ring, heddle_ring_has_completions(&self->ring) ? 0 : 1, timeout));
}

/* -- opening and closing ----------------------------------------------------------------------------------------- */

/*
 * The multishot poll reports each write to the eventfd, so the eventfd need not be read. It is read only after the
 * kernel has ended the poll, before the poll is armed again.
 */
static void note_wakeup(heddle_waiter *waiter, int result, uint32_t flags)
{
    uring_selector *self = (uring_selector *)((char *)waiter - offsetof(uring_selector, wakeup_waiter));
    if (!(flags & HEDDLE_MORE)) {
        heddle_wakeup_drain(&self->base.wakeup);
        uring_arm(&self->base, waiter);
    }
}

static void release_memory(uring_selector *self)
{
    heddle_wakeup_close(&self->base.wakeup);
    free(self->slots);
    free(self);
}

static bool has_completions_outstanding(const uring_selector *self)
{
    for (uint32_t i = 0; i < self->slot_count; i++) {
        if (self->slots[i].outstanding > 0 && !self->slots[i].poll)
            return true;
    }
    return false;
}

static void uring_close(heddle_selector *selector)
{
    uring_selector *self = (uring_selector *)selector;
    /*
     * After a ring is closed, the kernel ends the ring's operations asynchronously. The kernel could still write to a
     * buffer that was freed meanwhile. So the operations are cancelled first.
     *
     * Only the thread that opened the ring can cancel them. At the end of the process another thread may close the
     * ring. Then this call has no effect.
     */
    if (has_completions_outstanding(self))
        heddle_ring_cancel_everything(&self->ring);
    heddle_ring_close(&self->ring);
    release_memory(self);
}

static void uring_abandon(heddle_selector *selector)
{
    uring_selector *self = (uring_selector *)selector;
    heddle_ring_abandon(&self->ring);
    release_memory(self);
}

/*
 * The ID of the process in which a probe has succeeded, or 0. That process does not probe again, because each probe
 * opens a ring.
 */
static _Atomic pid_t allowed_process;

static int uring_probe(char *reason, size_t size)
{
    if (allowed_process == getpid())
        return 0;
    int result = heddle_ring_probe(reason, size);
    if (result == 0)
        allowed_process = getpid();
    return result;
}

static int uring_open(heddle_selector **selector)
{
    uring_selector *self = calloc(1, sizeof(*self));
    if (!self)
        return -ENOMEM;
    self->base.operations = &heddle_io_uring_operations;
    self->free_slot = NO_SLOT;

    int result = heddle_ring_open(&self->ring);
    if (result < 0) {
        allowed_process = 0;
        free(self);
        return result;
    }
    self->base.wakeup = (heddle_wakeup){-1, -1};
    result = heddle_wakeup_open(&self->base.wakeup);
    if (result == 0) {
        self->wakeup_waiter = (heddle_waiter){
            .fn = note_wakeup, .fd = self->base.wakeup.read_fd, .events = HEDDLE_READABLE, .mode = HEDDLE_PERSISTENT};
        result = uring_arm(&self->base, &self->wakeup_waiter);
    }
    if (result < 0) {
        uring_close(&self->base);
        return result;
    }
    *selector = &self->base;
    return 0;
}

const heddle_selector_operations heddle_io_uring_operations = {
    .name = "io_uring",
    .probe = uring_probe,
    .open = uring_open,
    .close = uring_close,
    .abandon = uring_abandon,
    .arm = uring_arm,
    .disarm = uring_disarm,
    .submit = uring_submit,
    .cancel = uring_cancel,
    .pending = uring_pending,
    .has_events = uring_pending,
    .poll = uring_poll,
    .wait = uring_wait,
    .harvest = uring_harvest,
};

#endif
