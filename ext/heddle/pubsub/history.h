#ifndef HEDDLE_PUBSUB_HISTORY_H
#define HEDDLE_PUBSUB_HISTORY_H

/*
 * The messages of all topics, in memory that a master shares with its workers: a log of records that overwrites its
 * oldest ones, and a table of topics. A message's position is the ring's epoch and the topic's offset. Offsets of a topic
 * have no gaps, and no offset is given twice in an epoch.
 *
 * One process at a time writes, under a robust mutex. A process that ends within it leaves either all of a message or
 * nothing of it: what has to change together is written to a journal first, which the next owner of the mutex completes.
 * Readers take no lock: a copy counts when the tail has not passed the record meanwhile. No Ruby here.
 */

#include "net/shared_memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HEDDLE_EPOCH_SIZE = 12, /* characters */
    HEDDLE_HISTORY_MESSAGES = 1000, /* messages of a topic at most, whatever is configured */
};

typedef struct heddle_history_header heddle_history_header;

typedef struct {
    heddle_shared_memory memory;
    heddle_history_header *header; /* NULL: closed */
    char *log;
    /* Copies: another process can write the whole mapping, and must not make this one read beyond it. */
    uint64_t log_size;
    uint32_t topic_sets;
    int wake_fd; /* an eventfd that all processes have; -1: none */
} heddle_history;

typedef struct {
    size_t log_size;   /* bytes, a power of two */
    uint32_t topics;   /* a power of two; those that were published to longest ago are forgotten first */
    uint32_t messages; /* of a topic, that can be replayed */
    int64_t age;       /* of a message that can be replayed, ns */
} heddle_history_limits;

/* A record of the log, without its bytes. */
typedef struct {
    uint64_t place; /* of the record */
    uint64_t next;  /* place of the record after it */
    uint64_t offset;
    int64_t published; /* CLOCK_MONOTONIC, ns */
    uint32_t topic_size, data_size;
} heddle_history_record;

/* 0 or -errno. */
int heddle_history_create(heddle_history *ring, const heddle_history_limits *limits);
/* Takes both descriptors, which are closed on failure, too. -EPROTO: of another version. */
int heddle_history_open(heddle_history *ring, int memory_fd, int wake_fd);
void heddle_history_close(heddle_history *ring); /* idempotent */

const char *heddle_history_epoch(const heddle_history *ring);
/* The size of the largest message, its topic included. */
size_t heddle_history_most(const heddle_history *ring);
/*
 * Appends a message and wakes the processes that read. Its offset; -EMSGSIZE: it is larger than heddle_history_most;
 * -ETIMEDOUT: another process holds the mutex and does not go on.
 */
int64_t heddle_history_publish(heddle_history *ring, const char *topic, size_t topic_size, const char *data, size_t data_size);
/* Makes all processes that read look at the log. */
void heddle_history_wake(const heddle_history *ring);

/* Where the next record will be. */
uint64_t heddle_history_head(const heddle_history *ring);
/* 1: there is a record at this place or after it; 0: none yet; -ENODATA: it has been overwritten. */
int heddle_history_look(const heddle_history *ring, uint64_t place, heddle_history_record *record);
/* Copies what a record has, topic_size or data_size bytes. false: it was overwritten meanwhile. */
bool heddle_history_copy_topic(const heddle_history *ring, const heddle_history_record *record, char *topic);
bool heddle_history_copy_data(const heddle_history *ring, const heddle_history_record *record, char *data);

/* A hash of the topic's name that nobody outside can choose. */
uint64_t heddle_history_hash(const heddle_history *ring, const char *topic, size_t size);
/* The offset of the topic's last message; -ETIMEDOUT. */
int64_t heddle_history_offset(heddle_history *ring, const char *topic, size_t size);
/*
 * The places of the topic's messages after the offset `since`, oldest first, at most `most` of them. How many;
 * -ENODATA: some of them are gone, or `since` was never given; -ETIMEDOUT. `*offset`: of the last message.
 */
int heddle_history_find(heddle_history *ring, const char *topic, size_t size, uint64_t since, uint64_t *places, int most,
                     uint64_t *offset);

#endif
