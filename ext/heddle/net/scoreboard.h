#pragma once

/*
 * The scoreboard: memory that all processes of a server share, with one slot for each worker. A worker writes only its
 * own slot; the master assigns and releases slots. Every word is read and written on its own (relaxed), so a value is a
 * hint of a worker's load. Uses no Ruby.
 */

#include "net/shared_memory.h"

enum {
    HEDDLE_SCOREBOARD_VERSION = 8,
    HEDDLE_SCOREBOARD_SLOT = 128, /* bytes: two cache lines, because processors fetch them in pairs */
    HEDDLE_SCOREBOARD_MAX = UINT16_MAX, /* slots: `owners` of pools have 16 bits */
    HEDDLE_SHARED_POOLS = 32,     /* how many pools can have a limit over all workers */
    HEDDLE_POOL_SHARES = 1024,    /* the largest limit of a pool */
};

/*
 * A worker whose tick lasts longer than this, in ns, counts as unable to accept. Such a worker is late; only its watch
 * thread declares it `stuck`.
 */
#define HEDDLE_SCOREBOARD_LATE INT64_C(20000000)

typedef struct {
    _Alignas(HEDDLE_SCOREBOARD_SLOT) uint64_t magic;
    uint32_t version, slot_size, slot_count;
    /*
     * slots from this index on were never assigned; written by masters; readers clamp it, because every process can
     * write here
     */
    _Atomic uint32_t used;
    _Atomic uint32_t pool_changes; /* counts returned shares of pools, and workers that began to wait for one */
    _Atomic uint64_t memory; /* bytes that all processes of the server use; written by the master; 0: not known */
    /*
     * bytes of request bodies that all workers have on disk. A worker adds to this word before it adds to its slot, and
     * subtracts from its slot first: the master subtracts the slot's bytes when the worker has ended, and never more
     * than this word has
     */
    _Atomic uint64_t body_disk;
} heddle_scoreboard_header;

typedef struct {
    /* Written by the master: the generation of the mold whose worker has the slot; 0: the slot is free. */
    _Alignas(HEDDLE_SCOREBOARD_SLOT) _Atomic uint32_t generation;
    _Atomic uint32_t index;                                  /* the worker's number in logs and status */
    /* The members from here on are written by the worker. The master clears them before and after it. */
    _Atomic uint32_t pid;
    _Atomic uint32_t accepting; /* it accepts, or has paused only because other workers have less to do */
    _Atomic uint32_t in_flight; /* requests that run, or wait for their turn */
    _Atomic uint32_t connections;
    _Atomic uint32_t waiting; /* queued requests; updated now and then */
    _Atomic uint32_t limit;   /* how many requests may run at once; 0: any number */
    /* when the loop's tick began, CLOCK_MONOTONIC in ns, from the coarse clock; 0: the loop sleeps */
    _Atomic int64_t tick_began;
    _Atomic int64_t lag;      /* how late its loop ran timers recently, ns */
    _Atomic uint64_t accepted, requests;
    _Atomic uint32_t stuck; /* how many of its loops are blocked */
    _Atomic uint32_t label; /* hashed label of the request that blocks it; 0: unknown */
    _Atomic int64_t stuck_since; /* CLOCK_MONOTONIC in ns */
    _Atomic uint32_t open;       /* it has listeners */
    _Atomic uint32_t reserve;    /* its rank among the reserves, from 1 on; 0: it is not a reserve */
    _Atomic uint64_t body_disk;  /* bytes of request bodies that it has on disk */
} heddle_scoreboard_slot;

/* A pool with one limit for all workers; the pools follow the slots in memory. See net/pool_shares.h. */
typedef struct {
    _Alignas(HEDDLE_SCOREBOARD_SLOT) _Atomic uint64_t key; /* hash of its name; 0: unused */
    _Atomic uint32_t total;                      /* how many shares there are, set by the worker that opened it last */
    _Atomic uint16_t owners[HEDDLE_POOL_SHARES]; /* the owner of each share: see pool_shares.c */
    _Atomic uint64_t waiting[];                  /* for each slot: since when its worker has waited for a share */
} heddle_shared_pool;

_Static_assert(sizeof(heddle_scoreboard_header) == HEDDLE_SCOREBOARD_SLOT, "the slots follow in their own cache lines");
_Static_assert(sizeof(heddle_scoreboard_slot) == HEDDLE_SCOREBOARD_SLOT, "one slot, one writer, its own cache lines");

typedef struct {
    heddle_scoreboard_header *header; /* NULL: closed */
    heddle_scoreboard_slot *slots;
    uint32_t slot_count; /* slots in this mapping, also in the header */
    heddle_shared_memory memory;
    int notify_fd; /* an eventfd, or -1: a write makes all workers read the scoreboard again */
    int alarm_fd; /* an eventfd of this master and its workers, or -1: a write asks the master for a reserve worker */
    bool kept;    /* stays mapped until the process ends, because records that Ruby frees then may still write to it */
} heddle_scoreboard;

static inline size_t heddle_shared_pool_size(uint32_t slot_count)
{
    size_t size = sizeof(heddle_shared_pool) + (size_t)slot_count * sizeof(uint64_t);
    return (size + HEDDLE_SCOREBOARD_SLOT - 1) / HEDDLE_SCOREBOARD_SLOT * HEDDLE_SCOREBOARD_SLOT;
}

/* Returns 0 or -errno. */
int heddle_scoreboard_create(heddle_scoreboard *scoreboard, uint32_t slot_count);
/* Opens another process's scoreboard and takes over the descriptors. Returns -EPROTO if it is of another version. */
int heddle_scoreboard_open(heddle_scoreboard *scoreboard, int fd, int notify_fd);
void heddle_scoreboard_close(heddle_scoreboard *scoreboard);
/* Assigns a free slot and returns its number, or -1. Called by the master. */
int64_t heddle_scoreboard_acquire(heddle_scoreboard *scoreboard, uint32_t generation, uint32_t index);
/* Releases the slot of a worker that has ended. Called by the master. */
void heddle_scoreboard_release(heddle_scoreboard *scoreboard, uint32_t slot);
void heddle_scoreboard_notify(const heddle_scoreboard *scoreboard);
/* Tells the master that a worker has been stuck for as long as a reserve waits before it serves. */
void heddle_scoreboard_alarm(const heddle_scoreboard *scoreboard);

/* A worker's load: the number of connections, each of which may send a request, plus the number of running requests. */
static inline uint32_t heddle_scoreboard_load(const heddle_scoreboard_slot *slot)
{
    return atomic_load_explicit(&slot->connections, memory_order_relaxed) +
           atomic_load_explicit(&slot->in_flight, memory_order_relaxed);
}
/* Is there a worker that can accept now and has clearly less to do? */
bool heddle_scoreboard_has_less_loaded(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine,
                                       int64_t now);

/* Is there a worker that could serve a request at once, because its loop sleeps? */
bool heddle_scoreboard_has_sleeper(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine);

/* Is there a worker with clearly fewer requests that run or wait? */
bool heddle_scoreboard_has_shorter_queue(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine);

/* How many other workers have a slot now? */
uint32_t heddle_scoreboard_count_others(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine);

/* Does a request with this label block a worker now? Never for label 0. */
bool heddle_scoreboard_label_blocks(const heddle_scoreboard *scoreboard, uint32_t label);

/*
 * When this reserve must start serving: `delay` ns after all workers, and all reserves of a lower rank, were
 * blocked. INT64_MAX if one of them runs, or if there is none.
 */
int64_t heddle_scoreboard_reserve_due(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine,
                                      int64_t delay);

/* Can another worker accept connections now? */
bool heddle_scoreboard_other_accepts(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine,
                                     int64_t now);

/* Each word has one writer at a time, so no atomic addition is needed. */
#define HEDDLE_SCOREBOARD_ADD(word, count)                                                                             \
    atomic_store_explicit(&(word), atomic_load_explicit(&(word), memory_order_relaxed) + (count), memory_order_relaxed)
#define HEDDLE_SCOREBOARD_SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
