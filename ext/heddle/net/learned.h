#ifndef HEDDLE_LEARNED_H
#define HEDDLE_LEARNED_H

/*
 * What was learned of endpoints: for how long each has lately held up a worker by native code that kept the GVL. Memory
 * that all processes of a server share; whoever finds such a stall notes it. Every word is read and written by itself
 * (relaxed): a score is a hint, never a promise. Slots are never freed, only used anew. No Ruby here.
 */

#include "net/shared_memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HEDDLE_LEARNED_VERSION = 1,
    HEDDLE_LEARNED_SLOT = 192,
    HEDDLE_LEARNED_NAME = 160, /* bytes of an endpoint, with a NUL; what is longer counts by its start */
};

typedef struct {
    _Alignas(64) uint64_t magic;
    uint32_t version, slot_size, slot_count;
    _Atomic uint32_t any;        /* 0: nothing is learned, or all of it has decayed */
    _Atomic uint32_t quarantine; /* 1 + the slot of the board whose worker serves what was learned; 0: none does */
} heddle_learned_header;

typedef struct {
    _Alignas(64) _Atomic uint64_t key; /* of the name; 0: never used */
    _Atomic uint64_t score;            /* ms << 32 | when that was right: CLOCK_MONOTONIC in sixteenths of a second */
    _Atomic uint32_t count;            /* stalls */
    _Atomic uint64_t name[HEDDLE_LEARNED_NAME / 8];
} heddle_learned_slot;

_Static_assert(sizeof(heddle_learned_slot) == HEDDLE_LEARNED_SLOT, "other versions of this program read it");

typedef struct {
    heddle_learned_header *header; /* NULL: closed */
    heddle_learned_slot *slots;
    heddle_shared_memory memory;
    int64_t half_life; /* ns in which a score halves */
    int64_t threshold; /* ns; an endpoint whose score is higher is the quarantine's */
} heddle_learned;

typedef struct {
    char name[HEDDLE_LEARNED_NAME];
    int64_t score; /* ns */
    int64_t at;    /* of the last stall, CLOCK_MONOTONIC ns, to a sixteenth of a second */
    uint32_t count;
} heddle_learned_entry;

/* 0 or -errno. */
int heddle_learned_create(heddle_learned *learned, uint32_t slot_count);
/* Of another process; takes the descriptor over. -EPROTO: it is another version's. */
int heddle_learned_open(heddle_learned *learned, int fd);
void heddle_learned_close(heddle_learned *learned);

/*
 * The endpoint of a request: its method and path, with `:id` in place of numbers, UUIDs and long hexadecimal words.
 * Bytes written, without the NUL. The target may have a query, or be absolute.
 */
size_t heddle_endpoint_write(char name[HEDDLE_LEARNED_NAME], const char *method, size_t method_size,
                             const char *target, size_t target_size);

/* This endpoint has held up its worker for so many ns; now is CLOCK_MONOTONIC, ns. */
void heddle_learned_note(heddle_learned *learned, const char *name, int64_t held, int64_t now);
/* Its score in ns, 0 when nothing is known of it. */
int64_t heddle_learned_score(const heddle_learned *learned, const char *name, int64_t now);
/* What a slot knows; false: nothing, or nothing any more. */
bool heddle_learned_read(const heddle_learned *learned, uint32_t slot, int64_t now, heddle_learned_entry *entry);
/* Forgets this endpoint, or all of them (NULL). How many were known. */
uint32_t heddle_learned_reset(heddle_learned *learned, const char *name, int64_t now);
/* Notices that all has decayed, so that looking costs nothing again. Now and then. */
void heddle_learned_sweep(heddle_learned *learned, int64_t now);

static inline bool heddle_learned_any(const heddle_learned *learned)
{
    return atomic_load_explicit(&learned->header->any, memory_order_relaxed) != 0;
}

#endif
