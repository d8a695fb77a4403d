#ifndef HEDDLE_SCOREBOARD_H
#define HEDDLE_SCOREBOARD_H

/*
 * The scoreboard: memory that all processes of a server share, with a slot for each worker. A worker writes its own
 * slot only; the master assigns slots and takes them back. Every word is read and written by itself (relaxed): a read
 * value is a hint of a worker's load, never a promise. No Ruby here.
 */

#include "net/shared_memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HEDDLE_SCOREBOARD_VERSION = 4,
    HEDDLE_SCOREBOARD_SLOT = 128, /* bytes: two cache lines, as they are fetched in pairs */
    HEDDLE_SHARED_POOLS = 32,     /* pools whose limit is one of all workers */
    HEDDLE_POOL_SHARES = 1024,    /* the largest such limit */
};

/* A turn that takes longer, in ns, is no turn of somebody who could accept now. */
#define HEDDLE_SCOREBOARD_STUCK INT64_C(20000000)

typedef struct {
    _Alignas(HEDDLE_SCOREBOARD_SLOT) uint64_t magic;
    uint32_t version, slot_size, slot_count;
    _Atomic uint32_t used; /* slots beyond that were never given out; any process may write it, so readers clamp it */
    _Atomic uint32_t pool_changes; /* shares of pools that were returned, and workers that began to wait for one */
} heddle_scoreboard_header;

typedef struct {
    /* by the master */
    _Alignas(HEDDLE_SCOREBOARD_SLOT) _Atomic uint32_t generation; /* 0: nobody's */
    _Atomic uint32_t index;                                  /* the worker's number, as people know it */
    /* by the worker */
    _Atomic uint32_t pid;
    _Atomic uint32_t accepting; /* it would accept, were it not for others that have less to do */
    _Atomic uint32_t in_flight; /* requests that are served */
    _Atomic uint32_t connections;
    _Atomic uint32_t waiting; /* requests that wait for their turn; looked at now and then */
    _Atomic uint32_t limit;   /* how many requests may run at once; 0: any number */
    _Atomic int64_t tick_began; /* by its loop, CLOCK_MONOTONIC in ns, coarsely; 0: the loop sleeps */
    _Atomic int64_t lag;      /* by how much its loop was late lately, ns */
    _Atomic uint64_t accepted, requests;
    _Atomic uint32_t stuck; /* so many of its loops are held up: nothing is left to it */
    _Atomic uint32_t label; /* of the request that holds it up, hashed; 0: none is known */
    _Atomic int64_t stuck_since; /* CLOCK_MONOTONIC in ns */
    _Atomic uint32_t open;       /* it has listeners, and accepts from them or rests from that by itself */
    _Atomic uint32_t reserve;    /* its rank among the reserves, from 1 on; 0: it is none */
    _Atomic uint64_t body_disk;  /* bytes of request bodies that it has on disk */
} heddle_scoreboard_slot;

/* A pool with one limit for all workers; they follow the slots. See net/pool_shares.h. */
typedef struct {
    _Alignas(HEDDLE_SCOREBOARD_SLOT) _Atomic uint64_t key; /* of its name; 0: none */
    _Atomic uint32_t total;                      /* how many shares there are, as the last worker says that opened it */
    _Atomic uint16_t owners[HEDDLE_POOL_SHARES]; /* by share */
    _Atomic uint64_t waiting[];                  /* by slot: since when its worker waits for a share */
} heddle_shared_pool;

_Static_assert(sizeof(heddle_scoreboard_header) == HEDDLE_SCOREBOARD_SLOT, "the slots follow in their own cache lines");
_Static_assert(sizeof(heddle_scoreboard_slot) == HEDDLE_SCOREBOARD_SLOT, "one slot, one writer, its own cache lines");

typedef struct {
    heddle_scoreboard_header *header; /* NULL: closed */
    heddle_scoreboard_slot *slots;
    uint32_t slot_count; /* of the mapping; the header's is for those that open it */
    heddle_shared_memory memory;
    int poke_fd; /* an eventfd, or -1: a write to it makes all workers read the scoreboard again */
} heddle_scoreboard;

static inline size_t heddle_shared_pool_size(uint32_t slot_count)
{
    size_t size = sizeof(heddle_shared_pool) + (size_t)slot_count * sizeof(uint64_t);
    return (size + HEDDLE_SCOREBOARD_SLOT - 1) / HEDDLE_SCOREBOARD_SLOT * HEDDLE_SCOREBOARD_SLOT;
}

/* 0 or -errno. */
int heddle_scoreboard_create(heddle_scoreboard *scoreboard, uint32_t slot_count);
/* Of another process; takes the descriptors over. -EPROTO: it is another version's. */
int heddle_scoreboard_open(heddle_scoreboard *scoreboard, int fd, int poke_fd);
void heddle_scoreboard_close(heddle_scoreboard *scoreboard);
/* The number of a slot that is its taker's from now on, or -1. By the master. */
int64_t heddle_scoreboard_acquire(heddle_scoreboard *scoreboard, uint32_t generation, uint32_t index);
/* Its taker is no more. By the master. */
void heddle_scoreboard_release(heddle_scoreboard *scoreboard, uint32_t slot);
void heddle_scoreboard_notify(const heddle_scoreboard *scoreboard);

/* Idle connections cost little but may be the next requests: somebody who has many is no good place for more. */
static inline uint32_t heddle_scoreboard_load(const heddle_scoreboard_slot *slot)
{
    return atomic_load_explicit(&slot->connections, memory_order_relaxed) +
           atomic_load_explicit(&slot->in_flight, memory_order_relaxed);
}
/* Has somebody who can accept now clearly less to do than this one? */
bool heddle_scoreboard_has_idler(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine, int64_t now);

/* Bytes of request bodies that all others have on disk. */
uint64_t heddle_scoreboard_body_disk(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine);

/* Does a request of this label (0: none) hold up some worker now? */
bool heddle_scoreboard_holds_up(const heddle_scoreboard *scoreboard, uint32_t label);

/*
 * When this reserve is to step in: `patience` ns after the last of those before it (the workers, and the reserves of a
 * lower rank) was held up. INT64_MAX: one of them runs, or none is there.
 */
int64_t heddle_scoreboard_needs_reserve(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine, int64_t patience);

/* Is there anybody else who could take a connection over now? */
bool heddle_scoreboard_others_accept(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine, int64_t now);

/* There is one writer at a time: no need for an atomic addition. */
#define HEDDLE_SCOREBOARD_ADD(word, count)                                                                                 \
    atomic_store_explicit(&(word), atomic_load_explicit(&(word), memory_order_relaxed) + (count), memory_order_relaxed)
#define HEDDLE_SCOREBOARD_SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)

#endif
