#pragma once

/* The layout of a history's shared memory. When you change it, change HEDDLE_HISTORY_MAGIC, too. Uses no Ruby. */

#include "pubsub/history.h"
#include "pubsub/topic_hash.h"

enum {
    HEDDLE_HISTORY_WAYS = 8,    /* topics in a set of the table: a topic's hash determines its set */
    HEDDLE_HISTORY_PAGE = 4096, /* bytes of the header, after which the table of topics begins */
};

#define HEDDLE_HISTORY_MAGIC UINT64_C(0x6865647075623032) /* "hedpub", and a version */
#define HEDDLE_HISTORY_PADDING UINT32_MAX                 /* the topic_size of the padding at the end of the log */
#define HEDDLE_HISTORY_NO_SLOT UINT32_MAX

typedef struct {
    heddle_topic_hash hash; /* 0, 0: free */
    uint64_t offset;        /* the offset of the topic's last message */
    uint64_t lsn_plus_1;    /* LSN of the last message + 1; 0: there is none */
    int64_t published;      /* when the last message was published, ns */
} heddle_history_topic;

typedef struct {
    uint64_t forgotten;  /* the highest `offset` of the topics that were removed from this set */
    uint64_t generation; /* the history's generation in which `forgotten` was set */
    heddle_history_topic ways[HEDDLE_HISTORY_WAYS];
} heddle_history_topic_set;

/* The journal: the new values of all fields that change with a message. */
typedef struct {
    _Atomic uint32_t complete; /* 1: the other fields are valid and must be applied */
    uint32_t slot;             /* the number of the topic's entry; HEDDLE_HISTORY_NO_SLOT: no entry changes */
    heddle_history_topic topic;
    uint64_t forgotten; /* the new `forgotten` of the topic's set */
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
    _Alignas(64) _Atomic uint64_t head; /* LSN of the next record */
    _Alignas(64) _Atomic uint64_t tail; /* LSN: records before it may be overwritten */
    _Atomic uint32_t generation;        /* a copy of the state's generation, for readers without the mutex */
};

/* The head of a record; the topic and the data follow, each padded to a multiple of 8. */
typedef struct {
    uint64_t size; /* bytes of the whole record, a multiple of 8 */
    uint64_t offset;
    uint64_t previous; /* LSN + 1 of the topic's previous message; 0: there is none, or it was forgotten */
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

/*
 * Returns a word of the log, for readers and the writer. The address is always within the log, whatever other processes
 * have written.
 */
static inline _Atomic uint64_t *heddle_history_word(const heddle_history *history, uint64_t lsn)
{
    return (_Atomic uint64_t *)(history->log + (lsn & (history->log_size - 8)));
}

/*
 * Acquires the mutex. Returns 0 or -ETIMEDOUT. If a process has ended while it held the mutex, first completes the
 * change in the journal.
 */
int heddle_history_lock(heddle_history *history) __attribute__((warn_unused_result));
void heddle_history_unlock(heddle_history *history);
/* Applies the journal, with the mutex held. */
void heddle_history_commit(heddle_history *history);

/* Called with the mutex held. Returns NULL if the topic is unknown. */
const heddle_history_topic *heddle_history_find_topic(const heddle_history *history, const char *name, size_t size);
/*
 * Called with the mutex held, for a topic that is not in the table. Returns an offset after which the topic has no
 * messages.
 */
uint64_t heddle_history_find_forgotten(const heddle_history *history, const char *name, size_t size);
/*
 * Called with the mutex held. Returns whether a topic with messages since this time may have been removed from the
 * topic's set.
 */
bool heddle_history_forgot_since(const heddle_history *history, const char *name, size_t size, int64_t time);
