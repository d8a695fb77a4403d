#pragma once

/*
 * The messages of all topics, in memory that a master shares with its workers: a log of records that overwrites its
 * oldest ones, and a table of topics. A message's position is the history's epoch and the message's offset, which
 * counts the messages of all topics. Each record has the offset of the previous message of its topic, so that a gap is
 * visible.
 *
 * Without a backend the history itself assigns the offsets. A history that follows a backend, such as Redis, gets the
 * offset with each message. The code that reads from the backend calls heddle_history_begin when the backend has a new
 * epoch, or when messages are lost.
 *
 * One process at a time writes, under a robust mutex. If a process ends while it holds the mutex, the history has
 * either all of its message or nothing: the words that must change together are first written to a journal, and the
 * next owner of the mutex applies it. An LSN (log sequence number, as PostgreSQL has it) is a place in the log: the
 * number of bytes written before it. Readers take no lock: a copy is valid if the tail has not passed the record
 * meanwhile. Uses no Ruby.
 */

#include "net/shared_memory.h"

enum {
    HEDDLE_EPOCH_SIZE = 12, /* characters */
    HEDDLE_HISTORY_MESSAGES = 1000, /* the maximum of `messages` in the limits */
};

typedef struct heddle_history_header heddle_history_header;

typedef struct {
    heddle_shared_memory memory;
    heddle_history_header *header; /* NULL: closed */
    char *log;
    /*
     * Copies of values in the mapping: another process can overwrite the mapping, and must not make this process read
     * beyond it.
     */
    uint64_t log_size;
    uint32_t topic_sets;
    int wake_fd; /* an eventfd that all processes have; -1: none */
} heddle_history;

typedef struct {
    size_t log_size;   /* bytes, a power of two */
    /* a power of two; if there are more topics, those without messages for the longest time are forgotten */
    uint32_t topics;
    uint32_t messages; /* messages of a topic that can be replayed */
    int64_t age;       /* the age of a message that can be replayed, ns */
} heddle_history_limits;

/* The fields outside of the log and the table of topics that change under the mutex. */
typedef struct {
    char epoch[HEDDLE_EPOCH_SIZE + 4]; /* with its NUL */
    uint64_t count;        /* the offset of the last message of any topic */
    uint64_t floor_lsn;    /* records before it belong to an earlier generation */
    uint64_t floor_offset; /* messages up to this offset are unknown */
    uint32_t generation;   /* increased when all subscribers need a reset */
    uint32_t follows;      /* a backend assigns the offsets */
} heddle_history_state;

/* A record of the log, without its bytes. */
typedef struct {
    uint64_t lsn;
    uint64_t next; /* LSN of the next record */
    uint64_t offset;
    uint64_t previous;        /* LSN + 1 of the topic's previous record; 0: unknown */
    uint64_t previous_offset; /* the topic has no messages between this offset and the record's own */
    int64_t published; /* CLOCK_MONOTONIC, ns */
    uint32_t topic_size, data_size;
    uint32_t generation;
} heddle_history_record;

/* 0 or -errno. */
int heddle_history_create(heddle_history *history, const heddle_history_limits *limits);
/* Takes over both descriptors, and closes them also on failure. Returns -EPROTO if the memory is of another version. */
int heddle_history_open(heddle_history *history, int memory_fd, int wake_fd);
void heddle_history_close(heddle_history *history); /* idempotent */

/* Returns 0, or -ETIMEDOUT if another process holds the mutex and makes no progress. */
int heddle_history_read_state(heddle_history *history, heddle_history_state *state);
uint32_t heddle_history_generation(const heddle_history *history);
/* The size of the largest message, including its topic. */
size_t heddle_history_largest_message(const heddle_history *history);

/*
 * Appends a message and wakes the processes that read. Returns its offset, -EMSGSIZE if it is larger than
 * heddle_history_largest_message, -EPERM if this history follows a backend, or -ETIMEDOUT. `state`: the state after it.
 */
int64_t heddle_history_publish(heddle_history *history, const char *topic, size_t topic_size, const char *data,
                               size_t data_size, heddle_history_state *state);
/*
 * From now on the history follows a backend with this epoch. It does not have the backend's messages up to `offset`, so
 * subscribers get a reset. Changes nothing if the history already has that epoch and that message. Returns 0 or
 * -ETIMEDOUT.
 */
int heddle_history_begin(heddle_history *history, const char *epoch, uint64_t offset);
/*
 * Appends a message to which the backend has assigned this offset. Returns 1, 0 if the history already has the message,
 * -ESTALE if it belongs to another epoch or the history follows no backend, -ERANGE if earlier messages are missing,
 * -EMSGSIZE or -ETIMEDOUT.
 */
int heddle_history_append(heddle_history *history, const char *epoch, uint64_t offset, const char *topic,
                          size_t topic_size, const char *data, size_t data_size);
/* Makes all processes read the log. */
void heddle_history_wake(const heddle_history *history);

/* The LSN of the next record. */
uint64_t heddle_history_head(const heddle_history *history);
/*
 * Returns 1 if there is a record at this LSN or after it, 0 if there is none yet, and -ENODATA if it was overwritten.
 */
int heddle_history_check_record(const heddle_history *history, uint64_t lsn, heddle_history_record *record);
/* Copies topic_size or data_size bytes of a record. Both functions return false if it was overwritten meanwhile. */
bool heddle_history_copy_topic(const heddle_history *history, const heddle_history_record *record, char *topic);
bool heddle_history_copy_data(const heddle_history *history, const heddle_history_record *record, char *data);

/* A hash of the topic's name, with a random key, so that clients can't cause collisions. */
uint64_t heddle_history_hash(const heddle_history *history, const char *topic, size_t size);
/*
 * Returns the offset of the topic's last message, or -ETIMEDOUT. If the topic is unknown, returns the offset of the
 * last message of any topic. `state`: the state at that time.
 */
int64_t heddle_history_offset(heddle_history *history, const char *topic, size_t size, heddle_history_state *state);
/*
 * The offset after which the topic's messages of the last `age` nanoseconds begin. Returns -ENODATA if some of them are
 * gone, or -ETIMEDOUT. `state`: the state at that time.
 */
int64_t heddle_history_offset_before(heddle_history *history, const char *topic, size_t size, int64_t age,
                                     heddle_history_state *state);
/*
 * Finds the LSNs of the topic's messages after the offset `since`, oldest first. Returns their number, -ENODATA if some
 * of them are gone or `since` was never assigned, -ESTALE if the history has another generation, or -ETIMEDOUT. Sets
 * `*offset`, after which the topic has no message.
 */
int heddle_history_find(heddle_history *history, const char *topic, size_t size, uint32_t generation, uint64_t since,
                        uint64_t lsns[HEDDLE_HISTORY_MESSAGES], uint64_t *offset);
