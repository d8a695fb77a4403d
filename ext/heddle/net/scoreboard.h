#pragma once

/*
 * The scoreboard is memory that all processes of a server share, with one slot for each worker. The master assigns and
 * releases slots; a worker writes to no slot but its own. Words of a slot are read and written independently of each
 * other (relaxed atomics), so the values give only a rough picture of a worker's load. Uses no Ruby.
 */

#include "net/shared_memory.h"

enum {
    HEDDLE_SCOREBOARD_VERSION = 8,
    /* the size of a slot in bytes: two cache lines, because processors fetch them in pairs */
    HEDDLE_SCOREBOARD_SLOT = 128,
    HEDDLE_SCOREBOARD_MAX = UINT16_MAX, /* the maximum number of slots: `owners` of a pool has 16 bits for a slot */
    HEDDLE_SHARED_POOLS = 32,     /* the maximum number of pools that can have a limit over all workers */
    HEDDLE_POOL_SHARES = 1024,    /* the largest limit of a pool */
};

/*
 * In ns. A worker whose tick has lasted longer than this is late, and counts as unable to accept. It is not `stuck`
 * yet: only its watch thread sets that member.
 */
#define HEDDLE_SCOREBOARD_LATE INT64_C(20000000)

typedef struct {
    _Alignas(HEDDLE_SCOREBOARD_SLOT) uint64_t magic;
    uint32_t version, slot_size, slot_count;
    /*
     * Slots from this index on were never assigned. Written by masters. Readers limit this value to slot_count, because
     * any process could have written a wrong value here.
     */
    _Atomic uint32_t used;
    /*
     * Rises when workers must look at the pools' shares again: a share was returned, or a worker has begun or stopped
     * to wait for one.
     */
    _Atomic uint32_t pool_changes;
    /* how many bytes of memory all processes of the server use; written by the master; 0: not known */
    _Atomic uint64_t memory;
    /*
     * How many bytes of request bodies all workers have on disk. A worker adds to this word before it adds to its slot,
     * and subtracts from its slot before it subtracts from this word. When a worker has ended, the master subtracts the
     * slot's bytes from this word. If the worker was killed between its two steps, the master therefore subtracts too
     * little, but never more than the worker has added.
     */
    _Atomic uint64_t body_disk;
} heddle_scoreboard_header;

typedef struct {
    /*
     * Written by the master: the generation of the mold (the process that workers are forked from) whose worker has the
     * slot; 0: the slot is free.
     */
    _Alignas(HEDDLE_SCOREBOARD_SLOT) _Atomic uint32_t generation;
    _Atomic uint32_t index;                                  /* the worker's number in logs and status */
    /*
     * The worker writes the members from here on. The master clears them when it assigns and when it releases the slot.
     */
    _Atomic uint32_t pid;
    /* how many of its loops accept connections, or have paused only because other workers have less to do */
    _Atomic uint32_t accepting;
    _Atomic uint32_t in_flight; /* work items (requests and callbacks) that run or are queued */
    _Atomic uint32_t connections;
    _Atomic uint32_t waiting; /* queued requests; updated periodically */
    _Atomic uint32_t limit;   /* how many requests may run at once; 0: no limit */
    /* when the loop's current tick began, CLOCK_MONOTONIC in ns, from the coarse clock; 0: the loop is idle */
    _Atomic int64_t tick_began;
    _Atomic int64_t lag;      /* how late its loop has run timers recently, ns */
    _Atomic uint64_t accepted, requests;
    _Atomic uint32_t stuck; /* how many of its loops are blocked */
    /* hash of the label (method and path without IDs) of the request that blocks the worker; 0: none, or unknown */
    _Atomic uint32_t label;
    _Atomic int64_t stuck_since; /* since when at least one of its loops is blocked, CLOCK_MONOTONIC in ns */
    _Atomic uint32_t open;       /* how many of its loops have listeners */
    _Atomic uint32_t reserve;    /* its rank among the reserves (standby workers), 1 or more; 0: it is not a reserve */
    _Atomic uint64_t body_disk;  /* how many bytes of request bodies it has on disk */
} heddle_scoreboard_slot;

/* A pool with one limit for all workers: see net/pool_shares.h. The pools follow the slots in memory. */
typedef struct {
    _Alignas(HEDDLE_SCOREBOARD_SLOT) _Atomic uint64_t key; /* hash of its name; 0: the record is unused */
    _Atomic uint32_t total;                      /* number of shares, as set by the worker that opened the pool last */
    _Atomic uint16_t owners[HEDDLE_POOL_SHARES]; /* the owner of each share: see pool_shares.c */
    _Atomic uint64_t waiting[];                  /* for each slot, a waiting_word (pool_shares.c); 0: not waiting */
} heddle_shared_pool;

_Static_assert(sizeof(heddle_scoreboard_header) == HEDDLE_SCOREBOARD_SLOT, "the header fills whole cache lines");
_Static_assert(sizeof(heddle_scoreboard_slot) == HEDDLE_SCOREBOARD_SLOT, "each slot fills whole cache lines");

typedef struct {
    heddle_scoreboard_header *header; /* NULL: closed */
    heddle_scoreboard_slot *slots;
    uint32_t slot_count; /* the number of slots in this mapping; also in the header */
    heddle_shared_memory memory;
    int notify_fd; /* an eventfd, or -1; a write makes all workers read the scoreboard again */
    int alarm_fd; /* an eventfd of this master and its workers, or -1; a write asks the master for a reserve worker */
    /*
     * The memory remains mapped until the process ends. At its end, Ruby frees all objects in any order, and some of
     * them still write to this memory.
     */
    bool kept;
} heddle_scoreboard;

static inline size_t heddle_shared_pool_size(uint32_t slot_count)
{
    size_t size = sizeof(heddle_shared_pool) + (size_t)slot_count * sizeof(uint64_t);
    return (size + HEDDLE_SCOREBOARD_SLOT - 1) / HEDDLE_SCOREBOARD_SLOT * HEDDLE_SCOREBOARD_SLOT;
}

/* Returns 0 or -errno. */
int heddle_scoreboard_create(heddle_scoreboard *scoreboard, uint32_t slot_count);
/*
 * Opens another process's scoreboard and takes ownership of the descriptors. Returns 0, -EPROTO if the scoreboard is of
 * another version, or another -errno.
 */
int heddle_scoreboard_open(heddle_scoreboard *scoreboard, int fd, int notify_fd);
void heddle_scoreboard_close(heddle_scoreboard *scoreboard);
/* Assigns a free slot. Returns its number, or -1 if no slot is free. Called by the master. */
int64_t heddle_scoreboard_acquire(heddle_scoreboard *scoreboard, uint32_t generation, uint32_t index);
/* Releases the slot of a worker that has ended. Called by the master. */
void heddle_scoreboard_release(heddle_scoreboard *scoreboard, uint32_t slot);
/* Makes all workers read the scoreboard again. */
void heddle_scoreboard_notify(const heddle_scoreboard *scoreboard);
/* Notifies the master that a worker has been stuck for HEDDLE_RESERVE_AFTER, so that the master starts a reserve. */
void heddle_scoreboard_alarm(const heddle_scoreboard *scoreboard);

/*
 * Returns a worker's load: the number of its connections, each of which may send a request, plus the number of its work
 * items that run or are queued.
 */
static inline uint32_t heddle_scoreboard_load(const heddle_scoreboard_slot *slot)
{
    return atomic_load_explicit(&slot->connections, memory_order_relaxed) +
           atomic_load_explicit(&slot->in_flight, memory_order_relaxed);
}
/* Returns whether another worker can accept now and has clearly less load. */
bool heddle_scoreboard_has_less_loaded(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine,
                                       int64_t now);

/* Returns whether another worker could serve a request at once: its loop is idle, and its limit is not reached. */
bool heddle_scoreboard_has_sleeper(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine);

/* Returns whether another worker that accepts connections has clearly fewer work items that run or are queued. */
bool heddle_scoreboard_has_shorter_queue(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine);

/* Returns how many other workers have a slot now. */
uint32_t heddle_scoreboard_count_others(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine);

/* Returns whether a request with this label blocks a worker now. Returns false for label 0. */
bool heddle_scoreboard_label_blocks(const heddle_scoreboard *scoreboard, uint32_t label);

/*
 * Returns when this reserve must start to serve: `delay` ns after the last of all workers and all reserves of a lower
 * rank got blocked. Returns INT64_MAX if one of them is not blocked, or if no such worker or reserve exists.
 */
int64_t heddle_scoreboard_reserve_due(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine,
                                      int64_t delay);

/* Returns whether another worker can accept connections now. */
bool heddle_scoreboard_other_accepts(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine,
                                     int64_t now);

/* For words that only the loops of one process change, with the GVL. So no atomic addition is needed. */
#define HEDDLE_SCOREBOARD_ADD(word, count)                                                                             \
    atomic_store_explicit(&(word), atomic_load_explicit(&(word), memory_order_relaxed) + (count), memory_order_relaxed)
#define HEDDLE_SCOREBOARD_SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
