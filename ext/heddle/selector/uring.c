#include "selector.h"

#ifdef __linux__

#include "uring_abi.h"
#include "wakeup.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/*
 * io_uring by raw system calls. The ring belongs to the thread that opened it (SINGLE_ISSUER) and completes only
 * when that thread enters the kernel (DEFER_TASKRUN), so no other thread may enter: they write to the eventfd.
 */

enum {
    SUBMISSIONS = 1024,
    COMPLETIONS = 8192,
    NO_SLOT = UINT32_MAX,
};

/*
 * The kernel knows an operation by slot and generation, never by address. A slot is free again only after the last
 * completion of the operation *and* that of its cancellation: otherwise a late one would hit the next owner.
 */
typedef struct {
    heddle_waiter *waiter; /* NULL: disarmed, nobody wants to hear */
    uint32_t generation;
    uint32_t next_free;
    uint8_t outstanding; /* completions still to come */
    bool poll;           /* readiness, not a completion */
} operation_slot;

/* In user_data, above the generation's 31 bits: the completion of a cancellation. */
static const uint64_t CANCELLATION = 1ull << 63;

typedef struct {
    heddle_selector base;
    int fd;
    int enter_fd;         /* the registered index, or fd */
    unsigned enter_flags; /* IORING_ENTER_REGISTERED_RING where it could be registered */
    bool has_waitid;

    void *ring;
    size_t ring_size;
    struct io_uring_sqe *sqes;
    size_t sqes_size;

    _Atomic unsigned *sq_head, *sq_tail, *sq_flags;
    unsigned sq_mask, sq_entries, sq_local_tail;
    _Atomic unsigned *cq_head, *cq_tail;
    unsigned cq_mask;
    struct io_uring_cqe *cqes;

    operation_slot *slots;
    uint32_t slot_count, free_slot;

    heddle_wakeup wakeup;
    heddle_waiter wakeup_waiter;
} uring_selector;

static int ring_setup(unsigned entries, struct io_uring_params *parameters)
{
    return (int)syscall(__NR_io_uring_setup, entries, parameters);
}

static struct io_uring_params wanted_parameters(void)
{
    return (struct io_uring_params){
        .flags = HEDDLE_SETUP_SINGLE_ISSUER | HEDDLE_SETUP_DEFER_TASKRUN | HEDDLE_SETUP_SUBMIT_ALL |
                 HEDDLE_SETUP_TASKRUN_FLAG | HEDDLE_SETUP_CQSIZE,
        .cq_entries = COMPLETIONS,
    };
}

static int uring_probe(char *reason, size_t size)
{
    struct io_uring_params parameters = wanted_parameters();
    int fd = ring_setup(8, &parameters);
    if (fd < 0) {
        int error = errno;
        const char *why = error == ENOSYS  ? "this kernel has no io_uring"
                          : error == EPERM || error == EACCES
                              ? "io_uring is forbidden here (kernel.io_uring_disabled or a seccomp filter)"
                          : error == EINVAL ? "this kernel is older than 6.1"
                          : error == ENOMEM ? "no memory may be locked (ulimit -l)"
                                            : strerror(error);
        snprintf(reason, size, "%s", why);
        return -error;
    }
    close(fd);
    const unsigned needed = HEDDLE_FEAT_SINGLE_MMAP | HEDDLE_FEAT_NODROP | HEDDLE_FEAT_EXT_ARG;
    if ((parameters.features & needed) != needed) {
        snprintf(reason, size, "this kernel's io_uring lacks features that Heddle needs");
        return -ENOSYS;
    }
    return 0;
}

/* -- submission -------------------------------------------------------------------------------------------------- */

static unsigned unsubmitted(uring_selector *self)
{
    return self->sq_local_tail - atomic_load_explicit(self->sq_head, memory_order_acquire);
}

/* Gives the kernel what was prepared; waits for `minimum` completions, at most `timeout` ns (< 0: for ever). */
static int enter(uring_selector *self, unsigned minimum, int64_t timeout)
{
    struct timespec limit = {.tv_sec = timeout / 1000000000, .tv_nsec = timeout % 1000000000};
    struct io_uring_getevents_arg argument = {.ts = timeout >= 0 ? (uint64_t)(uintptr_t)&limit : 0};

    atomic_store_explicit(self->sq_tail, self->sq_local_tail, memory_order_release);
    long result = syscall(__NR_io_uring_enter, self->enter_fd, unsubmitted(self), minimum,
                          HEDDLE_ENTER_GETEVENTS | HEDDLE_ENTER_EXT_ARG | self->enter_flags, &argument,
                          sizeof(argument));
    return result < 0 ? -errno : (int)result;
}

static void harvest_completions(uring_selector *self);

static struct io_uring_sqe *next_submission(uring_selector *self)
{
    /* EBUSY and EAGAIN: the completion queue has overflowed, or memory is short; taking completions helps both. */
    for (int tries = 0; unsubmitted(self) >= self->sq_entries; tries++) {
        int result = enter(self, 0, 0);
        if (result < 0 && result != -EBUSY && result != -EAGAIN && result != -EINTR)
            return NULL;
        harvest_completions(self);
        if (tries == 1000)
            return NULL;
    }
    struct io_uring_sqe *sqe = &self->sqes[self->sq_local_tail & self->sq_mask];
    self->sq_local_tail++;
    memset(sqe, 0, sizeof(*sqe));
    return sqe;
}

/* -- slots ------------------------------------------------------------------------------------------------------- */

static uint32_t slot_take(uring_selector *self)
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

/* A slot and a submission together, or neither. */
static struct io_uring_sqe *prepare(uring_selector *self, heddle_waiter *waiter, bool poll)
{
    uint32_t index = slot_take(self);
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
 * Since 5.19 io_uring passes over wake-ups that match nothing but POLLPRI (IO_ASYNC_POLL_COMMON in io_uring/poll.c).
 * Sockets announce urgent data as POLLPRI and POLLRDBAND together, so that asking for both is heard; but then they
 * announce ordinary data so as well, and what came has to be looked at (see `look_again`).
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
    assert(!waiter->armed);
    struct io_uring_sqe *sqe = prepare((uring_selector *)selector, waiter, true);
    if (!sqe)
        return -ENOMEM;
    uint32_t mask = to_uring(waiter->events);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    mask = mask << 16 | mask >> 16; /* poll32_events is stored with its halves swapped there */
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
        return; /* asked for already */
    /* Counted first: making room may take the operation's own completion, which must not free the slot. */
    self->slots[index].outstanding++;
    struct io_uring_sqe *sqe = next_submission(self);
    operation_slot *slot = &self->slots[index];
    if (!sqe) {
        /* The operation ends by itself, or with the ring; its slot stays taken until then. */
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
    assert(waiter->armed && self->slots[waiter->slot].poll);
    self->slots[waiter->slot].waiter = NULL;
    waiter->armed = false;
    request_cancel(self, waiter->slot);
}

/* -- completions ------------------------------------------------------------------------------------------------- */

static int uring_submit(heddle_selector *selector, heddle_waiter *waiter, const heddle_operation *operation)
{
    uring_selector *self = (uring_selector *)selector;
    if (operation->code == HEDDLE_OPERATION_WAITID && !self->has_waitid)
        return -ENOSYS;
    struct io_uring_sqe *sqe = prepare(self, waiter, false);
    if (!sqe)
        return -ENOMEM;

    sqe->fd = operation->fd;
    sqe->len = operation->length;
    switch (operation->code) {
    case HEDDLE_OPERATION_READ:
    case HEDDLE_OPERATION_WRITE:
        sqe->opcode = operation->code == HEDDLE_OPERATION_READ ? HEDDLE_OP_READ : HEDDLE_OP_WRITE;
        sqe->addr = (uint64_t)(uintptr_t)operation->buffer;
        sqe->off = (uint64_t)operation->offset;
        break;
    case HEDDLE_OPERATION_WAITID:
        sqe->opcode = HEDDLE_OP_WAITID;
        sqe->addr2 = (uint64_t)(uintptr_t)operation->buffer;
        sqe->splice_fd_in = (int32_t)operation->offset; /* the kernel's file_index: waitid's options */
        break;
    }
    return 0;
}

static void uring_cancel(heddle_selector *selector, heddle_waiter *waiter)
{
    if (waiter->armed)
        request_cancel((uring_selector *)selector, waiter->slot);
}

/* What a waiter for urgent data is told, 0 for nothing yet. */
static int look_again(const heddle_waiter *waiter)
{
    struct pollfd now = {.fd = waiter->fd, .events = (short)to_poll(waiter->events)};
    return poll(&now, 1, 0) == 1 ? from_poll(now.revents, waiter->events) : 0;
}

static void deliver(uring_selector *self, const struct io_uring_cqe *cqe)
{
    uint32_t index = (uint32_t)cqe->user_data;
    operation_slot *slot = &self->slots[index];
    bool cancellation = cqe->user_data & CANCELLATION;
    bool more = cqe->flags & HEDDLE_CQE_F_MORE;
    bool poll = slot->poll;
    heddle_waiter *waiter = cancellation ? NULL : slot->waiter;
    int result = cqe->res;

    assert(slot->generation == ((cqe->user_data & ~CANCELLATION) >> 32));
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
    if (poll && result >= 0 && (waiter->events & HEDDLE_PRIORITY)) {
        result = look_again(waiter);
        if (result == 0 && !more)
            result = uring_arm(&self->base, waiter);
        if (result == 0)
            return;
    } else if (poll && result >= 0) {
        result = from_poll(result, waiter->events);
        if (result == 0)
            result = waiter->events; /* readiness may be spurious, a lost one may not be */
    }
    waiter->fn(waiter, result, (poll ? 0 : HEDDLE_COMPLETION) | (more ? HEDDLE_MORE : 0));
}

static void harvest_completions(uring_selector *self)
{
    /* The head moves before each callback: a callback may submit, and so come back here. */
    for (;;) {
        unsigned head = atomic_load_explicit(self->cq_head, memory_order_relaxed);
        if (head == atomic_load_explicit(self->cq_tail, memory_order_acquire))
            return;
        struct io_uring_cqe cqe = self->cqes[head & self->cq_mask];
        atomic_store_explicit(self->cq_head, head + 1, memory_order_release);
        deliver(self, &cqe);
    }
}

static void uring_harvest(heddle_selector *selector)
{
    harvest_completions((uring_selector *)selector);
}

static bool has_completions(uring_selector *self)
{
    return atomic_load_explicit(self->cq_head, memory_order_relaxed) !=
           atomic_load_explicit(self->cq_tail, memory_order_acquire);
}

/* The completion queue's tail alone is blind under DEFER_TASKRUN: deferred work shows only in the flags. */
static bool needs_enter(uring_selector *self)
{
    unsigned flags = atomic_load_explicit(self->sq_flags, memory_order_relaxed);
    return (flags & (HEDDLE_SQ_TASKRUN | HEDDLE_SQ_CQ_OVERFLOW)) || unsubmitted(self) > 0;
}

static bool uring_pending(heddle_selector *selector)
{
    uring_selector *self = (uring_selector *)selector;
    return has_completions(self) || needs_enter(self);
}

static int tolerate(int result)
{
    return result >= 0 || result == -ETIME || result == -EINTR || result == -EBUSY || result == -EAGAIN ? 0 : result;
}

static int uring_poll(heddle_selector *selector)
{
    uring_selector *self = (uring_selector *)selector;
    int result = needs_enter(self) ? tolerate(enter(self, 0, 0)) : 0;
    harvest_completions(self);
    return result;
}

static int uring_wait(heddle_selector *selector, int64_t timeout)
{
    uring_selector *self = (uring_selector *)selector;
    return tolerate(enter(self, has_completions(self) ? 0 : 1, timeout));
}

static void uring_wake(heddle_selector *selector)
{
    heddle_wakeup_signal(&((uring_selector *)selector)->wakeup);
}

/* -- opening and closing ----------------------------------------------------------------------------------------- */

/* The poll is multishot and reports each write: the eventfd never has to be read. */
static void woken(heddle_waiter *waiter, int result, uint32_t flags)
{
    (void)result;
    uring_selector *self = (uring_selector *)((char *)waiter - offsetof(uring_selector, wakeup_waiter));
    if (!(flags & HEDDLE_MORE)) {
        heddle_wakeup_drain(&self->wakeup);
        uring_arm(&self->base, waiter);
    }
}

static void release(uring_selector *self)
{
    if (self->ring)
        munmap(self->ring, self->ring_size);
    if (self->sqes)
        munmap(self->sqes, self->sqes_size);
    if (self->fd >= 0)
        close(self->fd);
    heddle_wakeup_close(&self->wakeup);
    free(self->slots);
    free(self);
}

static bool supports(int fd, unsigned operation)
{
    enum { COUNT = 256 };
    size_t size = sizeof(struct io_uring_probe) + COUNT * sizeof(struct io_uring_probe_op);
    struct io_uring_probe *probe = calloc(1, size);
    bool supported = false;
    if (probe && syscall(__NR_io_uring_register, fd, HEDDLE_REGISTER_PROBE, probe, COUNT) >= 0)
        supported = operation <= probe->last_op && (probe->ops[operation].flags & IO_URING_OP_SUPPORTED);
    free(probe);
    return supported;
}

static int map_ring(uring_selector *self, const struct io_uring_params *parameters)
{
    size_t sq_size = parameters->sq_off.array + parameters->sq_entries * sizeof(unsigned);
    size_t cq_size = parameters->cq_off.cqes + parameters->cq_entries * sizeof(struct io_uring_cqe);
    self->ring_size = sq_size > cq_size ? sq_size : cq_size;
    self->sqes_size = parameters->sq_entries * sizeof(struct io_uring_sqe);

    void *ring = mmap(NULL, self->ring_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, self->fd,
                      IORING_OFF_SQ_RING);
    if (ring == MAP_FAILED)
        return -errno;
    self->ring = ring;
    void *sqes = mmap(NULL, self->sqes_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, self->fd,
                      IORING_OFF_SQES);
    if (sqes == MAP_FAILED)
        return -errno;
    self->sqes = sqes;
    /* A forked child must neither share the rings nor hold their pages. */
    madvise(ring, self->ring_size, MADV_DONTFORK);
    madvise(sqes, self->sqes_size, MADV_DONTFORK);

    char *base = ring;
    self->sq_head = (_Atomic unsigned *)(base + parameters->sq_off.head);
    self->sq_tail = (_Atomic unsigned *)(base + parameters->sq_off.tail);
    self->sq_flags = (_Atomic unsigned *)(base + parameters->sq_off.flags);
    self->sq_mask = *(unsigned *)(base + parameters->sq_off.ring_mask);
    self->sq_entries = parameters->sq_entries;
    self->cq_head = (_Atomic unsigned *)(base + parameters->cq_off.head);
    self->cq_tail = (_Atomic unsigned *)(base + parameters->cq_off.tail);
    self->cq_mask = *(unsigned *)(base + parameters->cq_off.ring_mask);
    self->cqes = (struct io_uring_cqe *)(base + parameters->cq_off.cqes);

    unsigned *array = (unsigned *)(base + parameters->sq_off.array);
    for (unsigned i = 0; i < parameters->sq_entries; i++)
        array[i] = i;
    return 0;
}

/* Saves the lookup of the ring's descriptor at each call; only the registering thread may use the index. */
static void register_ring(uring_selector *self)
{
    struct io_uring_rsrc_update update = {.offset = UINT32_MAX, .data = (uint64_t)self->fd};
    if (syscall(__NR_io_uring_register, self->fd, HEDDLE_REGISTER_RING_FDS, &update, 1) == 1) {
        self->enter_fd = (int)update.offset;
        self->enter_flags = HEDDLE_ENTER_REGISTERED_RING;
    }
}

static int uring_open(heddle_selector **selector)
{
    uring_selector *self = calloc(1, sizeof(*self));
    if (!self)
        return -ENOMEM;
    self->base.operations = &heddle_io_uring_operations;
    self->free_slot = NO_SLOT;
    self->wakeup = (heddle_wakeup){-1, -1};

    struct io_uring_params parameters = wanted_parameters();
    self->fd = ring_setup(SUBMISSIONS, &parameters);
    int result = self->fd < 0 ? -errno : map_ring(self, &parameters);
    if (result == 0)
        result = heddle_wakeup_open(&self->wakeup);
    if (result < 0) {
        release(self);
        return result;
    }
    self->enter_fd = self->fd;
    register_ring(self);
    self->has_waitid = supports(self->fd, HEDDLE_OP_WAITID);

    self->wakeup_waiter = (heddle_waiter){
        .fn = woken, .fd = self->wakeup.read_fd, .events = HEDDLE_READABLE, .mode = HEDDLE_PERSISTENT};
    result = uring_arm(&self->base, &self->wakeup_waiter);
    if (result < 0) {
        release(self);
        return result;
    }
    *selector = &self->base;
    return 0;
}

/*
 * The kernel ends what is left of a closed ring in its own time, and might still write to a buffer that its owner
 * frees as soon as close has returned. Only the ring's own thread may ask; another one that closes it (the end of
 * the process) has no way to wait.
 */
static void end_completions(uring_selector *self)
{
    bool outstanding = false;
    for (uint32_t i = 0; i < self->slot_count && !outstanding; i++)
        outstanding = self->slots[i].outstanding > 0 && !self->slots[i].poll;
    if (!outstanding)
        return;
    heddle_sync_cancel everything = {
        .fd = -1, .flags = HEDDLE_CANCEL_ALL | HEDDLE_CANCEL_ANY, .seconds = 1, .nanoseconds = 0};
    syscall(__NR_io_uring_register, self->fd, HEDDLE_REGISTER_SYNC_CANCEL, &everything, 1);
}

static void uring_close(heddle_selector *selector)
{
    uring_selector *self = (uring_selector *)selector;
    end_completions(self);
    release(self);
}

static void uring_abandon(heddle_selector *selector)
{
    uring_selector *self = (uring_selector *)selector;
    self->ring = NULL; /* not mapped here: MADV_DONTFORK */
    self->sqes = NULL;
    release(self);
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
    .poll = uring_poll,
    .wait = uring_wait,
    .harvest = uring_harvest,
    .wake = uring_wake,
};

#endif
