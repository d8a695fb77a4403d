#pragma once

/*
 * The history: the newest messages of all topics, in memory that a master shares with its workers. It consists of a log
 * of records, in which new records overwrite the oldest ones, and a table of topics. The position of a message is the
 * history's epoch and the message's offset, which counts the messages of all topics. Each record contains the offset of
 * the previous message of its topic, so that readers notice missing messages.
 *
 * Without a backend, the history itself assigns the offsets. A history that follows a backend, such as Redis, receives
 * the offset with each message. The code that reads from the backend calls heddle_history_begin when the backend has a
 * new epoch, or when messages are lost.
 *
 * One process at a time writes, under a robust mutex. If a process ends while it holds the mutex, its message is either
 * in the history or not, but never in part: the fields that must change together are first written to a journal. If the
 * process ends before it has applied the journal, the next owner of the mutex applies it. An LSN (log sequence number,
 * as in PostgreSQL) is a place in the log: the number of bytes that were written before it. Readers of the log need no
 * lock: a copy of a record is valid if the log's tail, the LSN before which bytes may be overwritten, has not passed
 * the record meanwhile. Uses no Ruby.
 */

#include "net/shared_memory.h"

enum {
    HEDDLE_EPOCH_SIZE = 12, /* characters */
    HEDDLE_HISTORY_MESSAGES = 1000, /* the largest allowed value of `messages` in heddle_history_limits */
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
    int wake_fd; /* an eventfd that all processes share; -1: none */
} heddle_history;

typedef struct {
    size_t log_size;   /* bytes, a power of two */
    /*
     * entries of the table of topics, a power of two; for lack of room, topics whose last messages are old are
     * forgotten
     */
    uint32_t topics;
    uint32_t messages; /* how many messages of a topic can be replayed */
    int64_t age;       /* the maximum age of a message that is replayed, ns */
} heddle_history_limits;

/* The values that change under the mutex, besides the log and the table of topics. */
typedef struct {
    char epoch[HEDDLE_EPOCH_SIZE + 4]; /* with its NUL */
    uint64_t count;        /* the offset of the last message of any topic */
    uint64_t floor_lsn;    /* records before it belong to an earlier generation */
    uint64_t floor_offset; /* messages up to this offset are not in the history */
    uint32_t generation;   /* increased when all subscribers need a reset */
    uint32_t follows;      /* a backend assigns the offsets */
} heddle_history_state;

/* The metadata of a record in the log. */
typedef struct {
    uint64_t lsn;
    uint64_t next; /* LSN of the next record */
    uint64_t offset;
    uint64_t previous;        /* LSN + 1 of the topic's previous record; 0: unknown */
    uint64_t previous_offset; /* the topic has no messages between this offset and the record's offset */
    int64_t published; /* CLOCK_MONOTONIC, ns */
    uint32_t topic_size, data_size;
    uint32_t generation;
} heddle_history_record;

/* Returns 0 or -errno. */
int heddle_history_create(heddle_history *history, const heddle_history_limits *limits);
/*
 * Takes ownership of both descriptors; if it fails, it closes them. Returns 0 or -errno; -EPROTO if the memory has
 * another layout.
 */
int heddle_history_open(heddle_history *history, int memory_fd, int wake_fd);
void heddle_history_close(heddle_history *history); /* idempotent */

/* Returns 0, or -ETIMEDOUT if another process does not release the mutex. */
int heddle_history_read_state(heddle_history *history, heddle_history_state *state);
uint32_t heddle_history_generation(const heddle_history *history);
/* Returns the size of the largest possible message, including its topic, in bytes. */
size_t heddle_history_largest_message(const heddle_history *history);

/*
 * Appends a message and wakes the reading processes. Returns its offset, -EMSGSIZE if it is larger than
 * heddle_history_largest_message, -EPERM if this history follows a backend, or -ETIMEDOUT. Sets `*state` to the state
 * after the message.
 */
int64_t heddle_history_publish(heddle_history *history, const char *topic, size_t topic_size, const char *data,
                               size_t data_size, heddle_history_state *state);
/*
 * From now on the history follows a backend with this epoch. The backend's messages up to `offset` are not in the
 * history, so subscribers get a reset. Changes nothing if the history already follows a backend with this epoch, and
 * its last message has at least this offset. Returns 0 or -ETIMEDOUT.
 */
int heddle_history_begin(heddle_history *history, const char *epoch, uint64_t offset);
/*
 * Appends a message to which the backend has assigned this offset. Returns 1 if the message was appended, 0 if the
 * history already has it, -ESTALE if it belongs to another epoch or the history follows no backend, -ERANGE if earlier
 * messages are missing, -EMSGSIZE or -ETIMEDOUT.
 */
int heddle_history_append(heddle_history *history, const char *epoch, uint64_t offset, const char *topic,
                          size_t topic_size, const char *data, size_t data_size);
/* Wakes the loops of all processes, so that they read the log. */
void heddle_history_wake(const heddle_history *history);

/* Returns the LSN of the next record that will be written. */
uint64_t heddle_history_head(const heddle_history *history);
/*
 * Reads the metadata of the record at this LSN, or of the next record after padding. Returns 1 if it has read a record,
 * 0 if there is none yet, or -ENODATA if it was overwritten or is invalid.
 */
int heddle_history_check_record(const heddle_history *history, uint64_t lsn, heddle_history_record *record);
/*
 * These functions copy the topic (topic_size bytes) or the data (data_size bytes) of a record. They return false if the
 * record was overwritten meanwhile.
 */
bool heddle_history_copy_topic(const heddle_history *history, const heddle_history_record *record, char *topic);
bool heddle_history_copy_data(const heddle_history *history, const heddle_history_record *record, char *data);

/* Returns a hash of the topic's name. Its key is random, so that clients can't cause collisions. */
uint64_t heddle_history_hash(const heddle_history *history, const char *topic, size_t size);
/*
 * Returns the offset of the topic's last message, or -ETIMEDOUT. If the topic is unknown, returns the offset of the
 * last message of any topic. Sets `*state` to the state at that time.
 */
int64_t heddle_history_offset(heddle_history *history, const char *topic, size_t size, heddle_history_state *state);
/*
 * Returns the offset after which the topic's messages of the last `age` nanoseconds begin, -ENODATA if some of them are
 * no longer in the history, or -ETIMEDOUT. Sets `*state` to the state at that time.
 */
int64_t heddle_history_offset_before(heddle_history *history, const char *topic, size_t size, int64_t age,
                                     heddle_history_state *state);
/*
 * Finds the LSNs of the topic's messages after the offset `since`, oldest first. Returns their number, -ENODATA if some
 * of them can't be replayed or, without a backend, `since` was never assigned, -ESTALE if the history has another
 * generation, or -ETIMEDOUT. Sets `*offset` to an offset after which the topic has no message, except with -ETIMEDOUT.
 */
int heddle_history_find(heddle_history *history, const char *topic, size_t size, uint32_t generation, uint64_t since,
                        uint64_t lsns[HEDDLE_HISTORY_MESSAGES], uint64_t *offset);
