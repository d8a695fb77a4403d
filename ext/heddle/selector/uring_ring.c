#ifdef __linux__

#include "uring_ring.h"

#include <sys/mman.h>

enum {
    SUBMISSIONS = 1024,
    COMPLETIONS = 8192,
};

static int setup_ring(unsigned entries, struct io_uring_params *parameters)
{
    *parameters = (struct io_uring_params){
        .flags = HEDDLE_SETUP_SINGLE_ISSUER | HEDDLE_SETUP_DEFER_TASKRUN | HEDDLE_SETUP_SUBMIT_ALL |
                 HEDDLE_SETUP_TASKRUN_FLAG | HEDDLE_SETUP_CQSIZE,
        .cq_entries = COMPLETIONS,
    };
    return (int)syscall(__NR_io_uring_setup, entries, parameters);
}

static int explain_error(int error, char *reason, size_t size)
{
    const char *why = error == ENOSYS  ? "this kernel has no io_uring"
                      : error == EPERM || error == EACCES
                          ? "io_uring is forbidden here (kernel.io_uring_disabled or a seccomp filter)"
                      : error == EINVAL ? "this kernel is older than 6.1"
                      : error == ENOMEM ? "the limit of locked memory is too low (ulimit -l)"
                                        : strerror(error);
    snprintf(reason, size, "%s", why);
    return -error;
}

int heddle_ring_probe(char *reason, size_t size)
{
    struct io_uring_params parameters;
    int fd = setup_ring(8, &parameters);
    if (fd < 0)
        return explain_error(errno, reason, size);
    /* A seccomp filter may allow io_uring_setup and forbid io_uring_enter. */
    long entered = syscall(__NR_io_uring_enter, fd, 0, 0, 0, NULL, 0);
    int error = errno;
    close(fd);
    if (entered < 0)
        return explain_error(error, reason, size);
    return 0;
}

int heddle_ring_enter(heddle_ring *ring, unsigned minimum, int64_t timeout)
{
    struct timespec limit = {.tv_sec = timeout / 1000000000, .tv_nsec = timeout % 1000000000};
    struct io_uring_getevents_arg argument = {.ts = timeout >= 0 ? (uint64_t)(uintptr_t)&limit : 0};

    atomic_store_explicit(ring->sq_tail, ring->sq_local_tail, memory_order_release);
    long result = syscall(__NR_io_uring_enter, ring->enter_fd, heddle_ring_unsubmitted(ring), minimum,
                          HEDDLE_ENTER_GETEVENTS | HEDDLE_ENTER_EXT_ARG | ring->enter_flags, &argument,
                          sizeof(argument));
    return result < 0 ? -errno : (int)result;
}

void heddle_ring_cancel_everything(heddle_ring *ring)
{
    heddle_sync_cancel everything = {
        .fd = -1, .flags = HEDDLE_CANCEL_ALL | HEDDLE_CANCEL_ANY, .seconds = 1, .nanoseconds = 0};
    syscall(__NR_io_uring_register, ring->fd, HEDDLE_REGISTER_SYNC_CANCEL, &everything, 1);
}

/* -- opening and closing ----------------------------------------------------------------------------------------- */

static int map_ring(heddle_ring *ring, const struct io_uring_params *parameters)
{
    size_t sq_size = parameters->sq_off.array + parameters->sq_entries * sizeof(unsigned);
    size_t cq_size = parameters->cq_off.cqes + parameters->cq_entries * sizeof(struct io_uring_cqe);
    ring->memory_size = sq_size > cq_size ? sq_size : cq_size;
    ring->sqes_size = parameters->sq_entries * sizeof(struct io_uring_sqe);

    void *memory = mmap(NULL, ring->memory_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd,
                        IORING_OFF_SQ_RING);
    if (memory == MAP_FAILED)
        return -errno;
    ring->memory = memory;
    void *sqes =
        mmap(NULL, ring->sqes_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQES);
    if (sqes == MAP_FAILED)
        return -errno;
    ring->sqes = sqes;
    /* A forked child must neither share the rings nor keep their pages in memory. */
    madvise(memory, ring->memory_size, MADV_DONTFORK);
    madvise(sqes, ring->sqes_size, MADV_DONTFORK);

    char *base = memory;
    ring->sq_head = (_Atomic unsigned *)(base + parameters->sq_off.head);
    ring->sq_tail = (_Atomic unsigned *)(base + parameters->sq_off.tail);
    ring->sq_flags = (_Atomic unsigned *)(base + parameters->sq_off.flags);
    ring->sq_mask = *(unsigned *)(base + parameters->sq_off.ring_mask);
    ring->sq_entries = parameters->sq_entries;
    ring->cq_head = (_Atomic unsigned *)(base + parameters->cq_off.head);
    ring->cq_tail = (_Atomic unsigned *)(base + parameters->cq_off.tail);
    ring->cq_mask = *(unsigned *)(base + parameters->cq_off.ring_mask);
    ring->cqes = (struct io_uring_cqe *)(base + parameters->cq_off.cqes);

    unsigned *array = (unsigned *)(base + parameters->sq_off.array);
    for (unsigned i = 0; i < parameters->sq_entries; i++)
        array[i] = i;
    return 0;
}

/*
 * Registers the ring's descriptor with the calling thread. The kernel returns an index, which only this thread may use
 * in place of the descriptor. So the kernel need not look up the descriptor in each call.
 */
static void register_index(heddle_ring *ring)
{
    struct io_uring_rsrc_update update = {.offset = UINT32_MAX, .data = (uint64_t)ring->fd};
    if (syscall(__NR_io_uring_register, ring->fd, HEDDLE_REGISTER_RING_FDS, &update, 1) == 1) {
        ring->enter_fd = (int)update.offset;
        ring->enter_flags = HEDDLE_ENTER_REGISTERED_RING;
    }
}

/*
 * Frees the registered index, if there is one. An index that is not freed keeps the ring open until the thread ends,
 * and a thread can have only 16 indexes.
 */
static void unregister_index(const heddle_ring *ring)
{
    struct io_uring_rsrc_update update = {.offset = (uint32_t)ring->enter_fd};
    if (ring->enter_flags & HEDDLE_ENTER_REGISTERED_RING)
        syscall(__NR_io_uring_register, ring->fd, HEDDLE_UNREGISTER_RING_FDS, &update, 1);
}

int heddle_ring_open(heddle_ring *ring)
{
    struct io_uring_params parameters;
    *ring = (heddle_ring){.fd = setup_ring(SUBMISSIONS, &parameters)};
    if (ring->fd < 0)
        return -errno;
    int result = map_ring(ring, &parameters);
    if (result < 0) {
        heddle_ring_close(ring);
        return result;
    }
    ring->enter_fd = ring->fd;
    register_index(ring);
    return 0;
}

void heddle_ring_close(heddle_ring *ring)
{
    if (ring->memory)
        munmap(ring->memory, ring->memory_size);
    if (ring->sqes)
        munmap(ring->sqes, ring->sqes_size);
    unregister_index(ring);
    close(ring->fd);
}

void heddle_ring_abandon(heddle_ring *ring)
{
    close(ring->fd); /* a forked child has neither the memory mappings nor the registered index */
}

#endif
