/* sources: */

/*
 * The history of messages, whose memory another process may overwrite at any place but the mutex: no record is read or
 * written beyond the mapping, no copy is longer than its record says, and every call ends.
 */

#include "fuzz.h"

#include <sys/mman.h>

/* As test/c/pubsub_history_test.c has them: nothing has looked for these functions. */
#ifdef __linux__
#define HAVE_MEMFD_CREATE 1
#define HAVE_SYS_EVENTFD_H 1
#define HAVE_PTHREAD_MUTEXATTR_SETROBUST 1
#endif
#ifdef __GLIBC__
#define HAVE_PTHREAD_MUTEX_CLOCKLOCK 1
#endif
#include "net/shared_memory.c"

#include "pubsub/history_memory.c"
#include "pubsub/history_reading.c"
#include "pubsub/history.c"

enum {
    LOG = 4096,
    TOPICS = 16,
    READS = 2 * LOG / (int)sizeof(heddle_history_record_head), /* records that a log can have, twice */
};

typedef struct {
    const uint8_t *bytes;
    size_t left;
} program;

static uint8_t take(program *program)
{
    return program->left ? (program->left--, *program->bytes++) : 0;
}

/* Moves the mapping to the end of a reserved range, so that an access behind it is a fault. */
static void move_before_guard(heddle_history *history)
{
    size_t size = history->memory.size, page = HEDDLE_HISTORY_PAGE;
    char *range = mmap(NULL, size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    PROMISE(range != MAP_FAILED);
    history->memory.start = mremap(history->memory.start, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, range);
    PROMISE(history->memory.start == range);
    use_header(history);
}

static void overwrite(heddle_history *history, program *program)
{
    size_t size = history->memory.size, at = (size_t)take(program) << 8;
    at = (at | take(program)) % size;
    size_t count = take(program) % 16 + 1, fields = offsetof(heddle_history_header, state);
    for (; count > 0 && at < size; count--, at++) {
        uint8_t byte = take(program);
        if (at >= fields)
            ((uint8_t *)history->memory.start)[at] = byte;
    }
}

/* What a program can't hit by accident: the words that lead from record to record. */
static void mislead(heddle_history *history, program *program)
{
    heddle_history_header *header = history->header;
    uint64_t value = (uint64_t)(int8_t)take(program) + ((uint64_t)take(program) << 8);
    switch (take(program) % 6) {
    case 0:
        header->head = value;
        break;
    case 1:
        header->tail = value;
        break;
    case 2:
        header->messages = (uint32_t)value << 16 | 0xFFFF;
        break;
    case 3:
        header->head = UINT64_MAX - value;
        break;
    case 4:
        for (unsigned i = 0; i < history->topic_sets * HEDDLE_HISTORY_WAYS; i++) {
            heddle_history_topic *topic = &heddle_history_sets(history)[i / HEDDLE_HISTORY_WAYS]
                                               .ways[i % HEDDLE_HISTORY_WAYS];
            topic->lsn_plus_1 = topic->hash.low ? value + 1 : 0;
        }
        break;
    default:
        heddle_history_word(history, value & ~UINT64_C(7))[0] = value;
    }
}

static void read_records(const heddle_history *history, uint64_t lsn)
{
    heddle_history_record record;
    for (int reads = 0; reads < READS && heddle_history_check_record(history, lsn, &record) == 1; reads++) {
        PROMISE(record.topic_size <= LOG && record.data_size <= LOG && record.next > record.lsn);
        char *topic = malloc(record.topic_size + 1), *data = malloc(record.data_size + 1);
        PROMISE(topic && data);
        heddle_history_copy_topic(history, &record, topic);
        heddle_history_copy_data(history, &record, data);
        free(topic);
        free(data);
        lsn = record.next;
    }
}

static void look_up(heddle_history *history, const char *topic, size_t size, program *program)
{
    uint64_t lsns[HEDDLE_HISTORY_MESSAGES], offset;
    heddle_history_state state;
    PROMISE(heddle_history_read_state(history, &state) == 0);
    heddle_history_offset(history, topic, size, &state);
    heddle_history_offset_before(history, topic, size, (int64_t)take(program) << 32, &state);
    int count = heddle_history_find(history, topic, size, heddle_history_generation(history), take(program), lsns,
                                    &offset);
    PROMISE(count <= HEDDLE_HISTORY_MESSAGES);
    for (int i = 0; i < count; i++)
        read_records(history, lsns[i]);
}

static void step(heddle_history *history, program *program)
{
    static const char bytes[1024] = "message";
    char topic[4];
    uint8_t word = take(program);
    size_t size = word >> 3 & 3, data_size = (size_t)(word >> 5) * 128;
    heddle_history_state state;
    for (size_t i = 0; i < size; i++)
        topic[i] = (char)('a' + (take(program) & 7));
    switch (word & 7) {
    case 0:
        overwrite(history, program);
        break;
    case 1:
        mislead(history, program);
        break;
    case 2:
        read_records(history, (uint64_t)take(program) << 3);
        break;
    case 3:
        look_up(history, topic, size, program);
        break;
    case 4:
        heddle_history_begin(history, "abcdefghijkl", take(program));
        break;
    case 5:
        heddle_history_append(history, "abcdefghijkl", take(program), topic, size, bytes, data_size);
        break;
    default:
        heddle_history_publish(history, topic, size, bytes, data_size, &state);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const heddle_history_limits limits = {
        .log_size = LOG, .topics = TOPICS, .messages = 100, .age = INT64_C(300000000000),
    };
    program program = {data, size};
    heddle_history history;
    PROMISE(heddle_history_create(&history, &limits) == 0);
    memset(history.header->key, 1, sizeof(history.header->key));
    move_before_guard(&history);
    while (program.left)
        step(&history, &program);
    void *guard = (char *)history.memory.start + history.memory.size;
    heddle_history_close(&history);
    munmap(guard, HEDDLE_HISTORY_PAGE);
    return 0;
}
