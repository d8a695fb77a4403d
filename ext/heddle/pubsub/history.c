#include "pubsub/history.h"

#include "pubsub/topic_hash.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef HAVE_SYS_EVENTFD_H
#include <sys/eventfd.h>
#endif

enum {
    WAYS = 8, /* topics in a set of the table */
    LOCK_PATIENCE = 100, /* ms; the mutex is held for microseconds, unless its owner was stopped */
    PAGE = 4096,
};

static const uint64_t MAGIC = UINT64_C(0x6865647075623031); /* "hedpub", and a version */
static const uint32_t PADDING = UINT32_MAX; /* topic_size of what fills the end of the log */

typedef struct {
    heddle_topic_hash hash; /* 0, 0: free */
    uint64_t offset;        /* of its last message */
    uint64_t place;         /* of that, and 1 */
    int64_t published;      /* when, ns */
} topic;

/* What changes with a message, in one place. */
typedef struct {
    _Atomic uint32_t complete; /* the rest is valid */
    uint32_t slot;
    topic topic;
    uint64_t head, forgotten;
} journal;

struct heddle_history_header {
    uint64_t magic;
    uint64_t log_size;
    uint64_t key[2];
    int64_t age;
    uint32_t topic_sets, messages, mutex_size;
    char epoch[HEDDLE_EPOCH_SIZE + 4];
    pthread_mutex_t mutex;
    uint64_t forgotten; /* the highest offset of topics that are not in the table any more */
    journal journal;
    _Alignas(64) _Atomic uint64_t head; /* bytes ever written */
    _Alignas(64) _Atomic uint64_t tail; /* what is before it may be overwritten */
};

typedef struct {
    uint64_t size; /* of the record with its bytes, a multiple of 8 */
    uint64_t offset;
    uint64_t previous; /* place of the topic's message before it, and 1 */
    int64_t published;
    uint32_t topic_size, data_size;
} record;

_Static_assert(sizeof(record) % 8 == 0, "records are copied in words");
_Static_assert(sizeof(heddle_history_header) + 64 <= PAGE, "the table of topics begins at the second page");

static topic *topics_of(const heddle_history *ring)
{
    return (topic *)((char *)ring->memory.start + PAGE);
}

static size_t table_size(uint32_t sets)
{
    return ((size_t)sets * WAYS * sizeof(topic) + PAGE - 1) / PAGE * PAGE;
}

static uint64_t round_up(uint64_t size)
{
    return (size + 7) & ~UINT64_C(7);
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* -- words of the log: readers and the writer meet here ------------------------------------------------------------ */

static _Atomic uint64_t *word_at(const heddle_history *ring, uint64_t place)
{
    return (_Atomic uint64_t *)(ring->log + (place & (ring->log_size - 1)));
}

/* The room to the next multiple of 8 is written, too. */
static void write_words(const heddle_history *ring, uint64_t place, const char *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, size - at < 8 ? size - at : 8);
        atomic_store_explicit(word_at(ring, place + at), word, memory_order_release);
    }
}

static void read_words(const heddle_history *ring, uint64_t place, char *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = atomic_load_explicit(word_at(ring, place + at), memory_order_acquire);
        memcpy(bytes + at, &word, size - at < 8 ? size - at : 8);
    }
}

/* Was everything that has been read from this place what was written there? To be asked after reading. */
static bool is_kept(const heddle_history *ring, uint64_t place)
{
    return atomic_load_explicit(&ring->header->tail, memory_order_acquire) <= place;
}

/* -- making it ----------------------------------------------------------------------------------------------------- */

static int fill_random(void *memory, size_t size)
{
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t bytes = read(fd, memory, size);
    close(fd);
    return bytes == (ssize_t)size ? 0 : -EIO;
}

static int make_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    int result = pthread_mutexattr_init(&attributes);
    if (result == 0)
        result = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
#ifdef HAVE_PTHREAD_MUTEXATTR_SETROBUST
    if (result == 0)
        result = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
#endif
    if (result == 0)
        result = pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return -result;
}

static void use_header(heddle_history *ring)
{
    ring->header = ring->memory.start;
    ring->log_size = ring->header->log_size;
    ring->topic_sets = ring->header->topic_sets;
    ring->log = (char *)ring->memory.start + PAGE + table_size(ring->topic_sets);
}

static int make_header(heddle_history *ring, const heddle_history_limits *limits)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    heddle_history_header *header = ring->memory.start;
    unsigned char random[HEDDLE_EPOCH_SIZE];
    int result = fill_random(header->key, sizeof(header->key));
    if (result == 0)
        result = fill_random(random, sizeof(random));
    if (result == 0)
        result = make_mutex(&header->mutex);
    if (result < 0)
        return result;
    for (int i = 0; i < HEDDLE_EPOCH_SIZE; i++)
        header->epoch[i] = letters[random[i] % 32];
    header->log_size = limits->log_size;
    header->topic_sets = limits->topics / WAYS ? limits->topics / WAYS : 1;
    header->messages = limits->messages < HEDDLE_HISTORY_MESSAGES ? limits->messages : HEDDLE_HISTORY_MESSAGES;
    header->age = limits->age;
    header->mutex_size = sizeof(pthread_mutex_t);
    header->magic = MAGIC;
    return 0;
}

int heddle_history_create(heddle_history *ring, const heddle_history_limits *limits)
{
    *ring = (heddle_history){.memory.fd = -1, .wake_fd = -1};
    uint32_t sets = limits->topics / WAYS ? limits->topics / WAYS : 1;
    int result = heddle_shared_memory_create(&ring->memory, "heddle-pubsub", PAGE + table_size(sets) + limits->log_size);
    if (result == 0)
        result = make_header(ring, limits);
    if (result == 0)
        use_header(ring);
#ifdef HAVE_SYS_EVENTFD_H
    if (result == 0 && (ring->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        result = -errno;
#endif
    if (result < 0)
        heddle_history_close(ring);
    return result;
}

static bool is_power_of_two(uint64_t number)
{
    return number && (number & (number - 1)) == 0;
}

static int check_header(const heddle_history *ring)
{
    const heddle_history_header *header = ring->memory.start;
    bool known = header->magic == MAGIC && header->mutex_size == sizeof(pthread_mutex_t) &&
                 is_power_of_two(header->log_size) && header->log_size >= PAGE && is_power_of_two(header->topic_sets) &&
                 ring->memory.size == PAGE + table_size(header->topic_sets) + header->log_size;
    return known ? 0 : -EPROTO;
}

int heddle_history_open(heddle_history *ring, int memory_fd, int wake_fd)
{
    *ring = (heddle_history){.memory.fd = -1, .wake_fd = wake_fd};
    int result = heddle_shared_memory_open(&ring->memory, memory_fd, PAGE);
    if (result == 0)
        result = check_header(ring);
    if (result < 0) {
        heddle_history_close(ring);
        return result;
    }
    fcntl(memory_fd, F_SETFD, FD_CLOEXEC);
    fcntl(wake_fd, F_SETFD, FD_CLOEXEC);
    use_header(ring);
    return 0;
}

void heddle_history_close(heddle_history *ring)
{
    heddle_shared_memory_close(&ring->memory);
    if (ring->wake_fd >= 0)
        close(ring->wake_fd);
    *ring = (heddle_history){.memory.fd = -1, .wake_fd = -1};
}

const char *heddle_history_epoch(const heddle_history *ring)
{
    return ring->header->epoch;
}

size_t heddle_history_most(const heddle_history *ring)
{
    return ring->log_size / 4 - sizeof(record) - 16;
}

/* -- the mutex ----------------------------------------------------------------------------------------------------- */

/* Idempotent: a process may end within it, and the next one does it again. */
static void apply_journal(heddle_history *ring)
{
    heddle_history_header *header = ring->header;
    journal *journal = &header->journal;
    if (!atomic_load_explicit(&journal->complete, memory_order_acquire))
        return;
    if (journal->slot < ring->topic_sets * WAYS)
        topics_of(ring)[journal->slot] = journal->topic;
    header->forgotten = journal->forgotten;
    atomic_store_explicit(&header->head, journal->head, memory_order_release);
    atomic_store_explicit(&journal->complete, 0, memory_order_release);
}

static int lock(heddle_history *ring)
{
    pthread_mutex_t *mutex = &ring->header->mutex;
    int result = pthread_mutex_trylock(mutex);
#ifdef HAVE_PTHREAD_MUTEXATTR_SETROBUST
    if (result == EBUSY) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOCK_PATIENCE * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        result = pthread_mutex_timedlock(mutex, &until);
    }
    if (result == EOWNERDEAD) {
        apply_journal(ring);
        result = pthread_mutex_consistent(mutex);
    }
#else
    if (result == EBUSY)
        result = pthread_mutex_lock(mutex);
#endif
    return -result;
}

static void unlock(heddle_history *ring)
{
    pthread_mutex_unlock(&ring->header->mutex);
}

/* -- topics; all under the mutex ----------------------------------------------------------------------------------- */

static topic *set_of(const heddle_history *ring, const heddle_topic_hash *hash)
{
    return &topics_of(ring)[(hash->low & (ring->topic_sets - 1)) * WAYS];
}

static heddle_topic_hash hash_of(const heddle_history *ring, const char *name, size_t size)
{
    heddle_topic_hash hash = heddle_hash_topic(ring->header->key, name, size);
    if (hash.low == 0 && hash.high == 0)
        hash.low = 1;
    return hash;
}

static const topic *find_topic(const heddle_history *ring, const char *name, size_t size)
{
    heddle_topic_hash hash = hash_of(ring, name, size);
    const topic *set = set_of(ring, &hash);
    for (int i = 0; i < WAYS; i++) {
        if (set[i].hash.low == hash.low && set[i].hash.high == hash.high)
            return &set[i];
    }
    return NULL;
}

/* What the topic's entry will be before its next message, and which one that is. */
static uint32_t choose_entry(const heddle_history *ring, const char *name, size_t size, topic *next, uint64_t *forgotten)
{
    heddle_topic_hash hash = hash_of(ring, name, size);
    const topic *set = set_of(ring, &hash), *chosen = &set[0];
    *forgotten = ring->header->forgotten;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].hash.low == hash.low && set[i].hash.high == hash.high) {
            *next = set[i];
            return (uint32_t)(&set[i] - topics_of(ring));
        }
        bool is_free = set[i].hash.low == 0 && set[i].hash.high == 0;
        bool chosen_free = chosen->hash.low == 0 && chosen->hash.high == 0;
        if (!chosen_free && (is_free || set[i].published < chosen->published))
            chosen = &set[i];
    }
    /* The next message of the topic that is forgotten here gets an offset that it never had. */
    if (chosen->offset > *forgotten)
        *forgotten = chosen->offset;
    *next = (topic){.hash = hash, .offset = *forgotten};
    return (uint32_t)(chosen - topics_of(ring));
}

/* -- publishing ---------------------------------------------------------------------------------------------------- */

void heddle_history_wake(const heddle_history *ring)
{
    const uint64_t one = 1;
    if (ring->wake_fd >= 0 && write(ring->wake_fd, &one, sizeof(one)) < 0) {
        /* The counter is full after 2^64 writes only. */
    }
}

/* Everything before `end - log_size` may be overwritten from now on. */
static void move_tail(heddle_history *ring, uint64_t end)
{
    uint64_t tail = end > ring->log_size ? end - ring->log_size : 0;
    if (tail > atomic_load_explicit(&ring->header->tail, memory_order_relaxed))
        atomic_store_explicit(&ring->header->tail, tail, memory_order_relaxed);
}

static void append(heddle_history *ring, const char *name, size_t name_size, const char *data, size_t data_size)
{
    heddle_history_header *header = ring->header;
    journal *journal = &header->journal;
    uint64_t place = atomic_load_explicit(&header->head, memory_order_relaxed);
    record record = {
        .size = sizeof(record) + round_up(name_size) + round_up(data_size),
        .published = now(),
        .topic_size = (uint32_t)name_size,
        .data_size = (uint32_t)data_size,
    };
    uint64_t left = ring->log_size - (place & (ring->log_size - 1));
    move_tail(ring, place + record.size + (left < record.size ? left : 0));
    if (left < record.size) {
        const struct {
            uint64_t size, unused[3];
            uint32_t topic_size, data_size;
        } padding = {.size = left, .topic_size = PADDING};
        write_words(ring, place, (const char *)&padding, left < sizeof(padding) ? (size_t)left : sizeof(padding));
        place += left;
    }
    journal->slot = choose_entry(ring, name, name_size, &journal->topic, &journal->forgotten);
    record.previous = journal->topic.place;
    record.offset = ++journal->topic.offset;
    journal->topic.place = place + 1;
    journal->topic.published = record.published;
    journal->head = place + record.size;
    write_words(ring, place, (const char *)&record, sizeof(record));
    write_words(ring, place + sizeof(record), name, name_size);
    write_words(ring, place + sizeof(record) + round_up(name_size), data, data_size);
    atomic_store_explicit(&journal->complete, 1, memory_order_release);
    apply_journal(ring);
}

int64_t heddle_history_publish(heddle_history *ring, const char *topic, size_t topic_size, const char *data, size_t data_size)
{
    size_t most = heddle_history_most(ring);
    if (topic_size > most || data_size > most - topic_size)
        return -EMSGSIZE;
    int result = lock(ring);
    if (result < 0)
        return result;
    append(ring, topic, topic_size, data, data_size);
    int64_t offset = (int64_t)ring->header->journal.topic.offset;
    unlock(ring);
    heddle_history_wake(ring);
    return offset;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

uint64_t heddle_history_head(const heddle_history *ring)
{
    return atomic_load_explicit(&ring->header->head, memory_order_acquire);
}

int heddle_history_look(const heddle_history *ring, uint64_t place, heddle_history_record *found)
{
    for (;;) {
        uint64_t head = heddle_history_head(ring);
        if (place >= head)
            return place == head ? 0 : -ENODATA;
        uint64_t left = ring->log_size - (place & (ring->log_size - 1));
        record record = {.topic_size = PADDING};
        /* What is left at the end may be too short for a whole header: then it is padding. */
        read_words(ring, place, (char *)&record, left < sizeof(record) ? (size_t)left : sizeof(record));
        if (!is_kept(ring, place))
            return -ENODATA;
        if (left < sizeof(record) || record.topic_size == PADDING) {
            place += left;
            continue;
        }
        if (record.size > left || record.size < sizeof(record) || record.topic_size > record.size ||
            record.data_size > record.size ||
            sizeof(record) + round_up(record.topic_size) + round_up(record.data_size) != record.size)
            return -ENODATA;
        *found = (heddle_history_record){
            .place = place, .next = place + record.size, .offset = record.offset, .published = record.published,
            .topic_size = record.topic_size, .data_size = record.data_size,
        };
        return 1;
    }
}

bool heddle_history_copy_topic(const heddle_history *ring, const heddle_history_record *found, char *topic)
{
    read_words(ring, found->place + sizeof(record), topic, found->topic_size);
    return is_kept(ring, found->place);
}

bool heddle_history_copy_data(const heddle_history *ring, const heddle_history_record *found, char *data)
{
    read_words(ring, found->place + sizeof(record) + round_up(found->topic_size), data, found->data_size);
    return is_kept(ring, found->place);
}

uint64_t heddle_history_hash(const heddle_history *ring, const char *topic, size_t size)
{
    return heddle_hash_topic(ring->header->key, topic, size).low;
}

int64_t heddle_history_offset(heddle_history *ring, const char *name, size_t size)
{
    int result = lock(ring);
    if (result < 0)
        return result;
    const topic *topic = find_topic(ring, name, size);
    uint64_t offset = topic ? topic->offset : ring->header->forgotten;
    unlock(ring);
    return (int64_t)offset;
}

/* Walks from the last message back to the one after `since`; places end up oldest first. */
static int collect(const heddle_history *ring, const topic *topic, uint64_t since, uint64_t *places, int most)
{
    uint64_t count = topic->offset - since, place = topic->place;
    int64_t oldest = now() - ring->header->age;
    if (count > ring->header->messages)
        return -ENODATA;
    for (uint64_t left = count; left > 0; left--) {
        heddle_history_record found;
        record record;
        if (place == 0 || heddle_history_look(ring, place - 1, &found) != 1 || found.place != place - 1 ||
            found.offset != since + left || found.published < oldest)
            return -ENODATA;
        if (left <= (uint64_t)most)
            places[left - 1] = found.place;
        read_words(ring, found.place, (char *)&record, sizeof(record));
        place = record.previous;
    }
    return count < (uint64_t)most ? (int)count : most;
}

int heddle_history_find(heddle_history *ring, const char *name, size_t size, uint64_t since, uint64_t *places, int most,
                     uint64_t *offset)
{
    int result = lock(ring);
    if (result < 0)
        return result;
    const topic *topic = find_topic(ring, name, size);
    *offset = topic ? topic->offset : ring->header->forgotten;
    if (since == *offset)
        result = 0;
    else
        result = topic && since < *offset ? collect(ring, topic, since, places, most) : -ENODATA;
    unlock(ring);
    return result;
}
