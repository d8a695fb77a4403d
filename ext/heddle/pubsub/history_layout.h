#ifndef HEDDLE_PUBSUB_HISTORY_LAYOUT_H
#define HEDDLE_PUBSUB_HISTORY_LAYOUT_H

/* The layout of a history's shared memory. Any change of it changes MAGIC. No Ruby here. */

#include "pubsub/history.h"
#include "pubsub/topic_hash.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    HEDDLE_HISTORY_WAYS = 8,    /* topics in a set of the table */
    HEDDLE_HISTORY_PAGE = 4096, /* the header's; the table of topics begins behind it */
};

#define HEDDLE_HISTORY_MAGIC UINT64_C(0x6865647075623032) /* "hedpub", and a version */
#define HEDDLE_HISTORY_PADDING UINT32_MAX                 /* topic_size of what fills the end of the log */
#define HEDDLE_HISTORY_NO_SLOT UINT32_MAX

typedef struct {
    heddle_topic_hash hash; /* 0, 0: free */
    uint64_t offset;        /* of its last message */
    uint64_t lsn_plus_1;    /* of that message; 0: there is none */
    int64_t published;      /* when, ns */
} heddle_history_topic;

typedef struct {
    uint64_t forgotten;  /* the highest offset of topics that are not in this set any more */
    uint64_t generation; /* of `forgotten` */
    heddle_history_topic ways[HEDDLE_HISTORY_WAYS];
} heddle_history_topic_set;

/* All fields that change with a message. */
typedef struct {
    _Atomic uint32_t complete; /* the rest is valid */
    uint32_t slot;             /* of the topic; HEDDLE_HISTORY_NO_SLOT: none changes */
    heddle_history_topic topic;
    uint64_t forgotten; /* of its set */
    uint64_t head;
    heddle_history_state state;
} heddle_history_journal;

struct heddle_history_header {
    uint64_t magic;
    uint64_t log_size;
    uint64_t key[2];
    int64_t age;
    uint32_t topic_sets, messages, mutex_size;
    pthread_mutex_t mutex;
    heddle_history_state state;
    heddle_history_journal journal;
    _Alignas(64) _Atomic uint64_t head; /* bytes ever written */
    _Alignas(64) _Atomic uint64_t tail; /* what is before it may be overwritten */
    _Atomic uint32_t generation;        /* of the state, for those that don't have the mutex */
};

/* The head of a record; then the topic and the data, each filled up to a multiple of 8. */
typedef struct {
    uint64_t size; /* of the record with its bytes, a multiple of 8 */
    uint64_t offset;
    uint64_t previous; /* LSN + 1 of the topic's message before it; 0: there is none */
    uint64_t previous_offset;
    int64_t published;
    uint32_t topic_size, data_size;
    uint32_t generation, unused;
} heddle_history_record_head;

_Static_assert(sizeof(heddle_history_record_head) % 8 == 0, "records are copied in words");
_Static_assert(sizeof(heddle_history_header) <= HEDDLE_HISTORY_PAGE, "the table of topics begins at the second page");

static inline heddle_history_topic_set *heddle_history_sets(const heddle_history *history)
{
    return (heddle_history_topic_set *)((char *)history->memory.start + HEDDLE_HISTORY_PAGE);
}

static inline uint64_t heddle_history_round_up(uint64_t size)
{
    return (size + 7) & ~UINT64_C(7);
}

/* Readers and the writer meet here. */
static inline _Atomic uint64_t *heddle_history_word(const heddle_history *history, uint64_t lsn)
{
    return (_Atomic uint64_t *)(history->log + (lsn & (history->log_size - 1)));
}

/* 0 or -ETIMEDOUT. The next owner of the mutex completes what a process that has ended left in the journal. */
int heddle_history_lock(heddle_history *history) __attribute__((warn_unused_result));
void heddle_history_unlock(heddle_history *history);
/* Makes the journal's content valid, under the mutex. */
void heddle_history_commit(heddle_history *history);

/* Under the mutex. NULL: it is not known. */
const heddle_history_topic *heddle_history_find_topic(const heddle_history *history, const char *name, size_t size);
/* Under the mutex: topics of this name that are not in the table have nothing after this offset. */
uint64_t heddle_history_forgotten(const heddle_history *history, const char *name, size_t size);
/* Under the mutex: did the table forget topics of this name's set that may have had messages since this time? */
bool heddle_history_forgot_since(const heddle_history *history, const char *name, size_t size, int64_t time);

#endif
