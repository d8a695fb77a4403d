/* The memory of a history, and its mutex with the journal. */

#include "pubsub/history_layout.h"

#include "selector/clock.h"

#include <fcntl.h>
#ifdef __APPLE__
#include <sys/random.h> /* getentropy, which is in unistd.h on other systems */
#endif
#ifdef HAVE_SYS_EVENTFD_H
#include <sys/eventfd.h>
#endif

enum {
    LOCK_TIMEOUT = 100000000, /* ns; the mutex is held for microseconds, unless its owner was stopped */
};

static size_t table_size(uint32_t sets)
{
    const size_t page = HEDDLE_HISTORY_PAGE;
    return ((size_t)sets * sizeof(heddle_history_topic_set) + page - 1) / page * page;
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

static void use_header(heddle_history *history)
{
    history->header = history->memory.start;
    history->log_size = history->header->log_size;
    history->topic_sets = history->header->topic_sets;
    history->log = (char *)history->memory.start + HEDDLE_HISTORY_PAGE + table_size(history->topic_sets);
}

static uint32_t sets_of(const heddle_history_limits *limits)
{
    return limits->topics / HEDDLE_HISTORY_WAYS ? limits->topics / HEDDLE_HISTORY_WAYS : 1;
}

static int make_header(heddle_history *history, const heddle_history_limits *limits)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    heddle_history_header *header = history->memory.start;
    unsigned char random[HEDDLE_EPOCH_SIZE];
    if (getentropy(header->key, sizeof(header->key)) != 0 || getentropy(random, sizeof(random)) != 0)
        return -errno;
    int result = make_mutex(&header->mutex);
    if (result < 0)
        return result;
    for (int i = 0; i < HEDDLE_EPOCH_SIZE; i++)
        header->state.epoch[i] = letters[random[i] % 32];
    header->log_size = limits->log_size;
    header->topic_sets = sets_of(limits);
    header->messages = limits->messages < HEDDLE_HISTORY_MESSAGES ? limits->messages : HEDDLE_HISTORY_MESSAGES;
    header->age = limits->age;
    header->mutex_size = sizeof(pthread_mutex_t);
    header->magic = HEDDLE_HISTORY_MAGIC;
    return 0;
}

int heddle_history_create(heddle_history *history, const heddle_history_limits *limits)
{
    *history = (heddle_history){.memory.fd = -1, .wake_fd = -1};
    size_t size = HEDDLE_HISTORY_PAGE + table_size(sets_of(limits)) + limits->log_size;
    int result = heddle_shared_memory_create(&history->memory, "heddle-pubsub", size);
    if (result == 0)
        result = make_header(history, limits);
    if (result == 0)
        use_header(history);
#ifdef HAVE_SYS_EVENTFD_H
    if (result == 0 && (history->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        result = -errno;
#endif
    if (result < 0)
        heddle_history_close(history);
    return result;
}

static bool is_power_of_two(uint64_t number)
{
    return number && (number & (number - 1)) == 0;
}

static int check_header(const heddle_history *history)
{
    const heddle_history_header *header = history->memory.start;
    bool known = header->magic == HEDDLE_HISTORY_MAGIC && header->mutex_size == sizeof(pthread_mutex_t) &&
                 is_power_of_two(header->log_size) && header->log_size >= HEDDLE_HISTORY_PAGE &&
                 is_power_of_two(header->topic_sets) &&
                 history->memory.size == HEDDLE_HISTORY_PAGE + table_size(header->topic_sets) + header->log_size;
    return known ? 0 : -EPROTO;
}

int heddle_history_open(heddle_history *history, int memory_fd, int wake_fd)
{
    *history = (heddle_history){.memory.fd = -1, .wake_fd = wake_fd};
    int result = heddle_shared_memory_open(&history->memory, memory_fd, HEDDLE_HISTORY_PAGE);
    if (result == 0)
        result = check_header(history);
    if (result < 0) {
        heddle_history_close(history);
        return result;
    }
    fcntl(memory_fd, F_SETFD, FD_CLOEXEC);
    fcntl(wake_fd, F_SETFD, FD_CLOEXEC);
    use_header(history);
    return 0;
}

void heddle_history_close(heddle_history *history)
{
    heddle_shared_memory_close(&history->memory);
    if (history->wake_fd >= 0)
        close(history->wake_fd);
    *history = (heddle_history){.memory.fd = -1, .wake_fd = -1};
}

size_t heddle_history_largest_message(const heddle_history *history)
{
    return history->log_size / 4 - sizeof(heddle_history_record_head) - 16;
}

/* -- the mutex ----------------------------------------------------------------------------------------------------- */

/* Idempotent: if a process ends within this function, the next owner of the mutex calls it again. */
static void apply_journal(heddle_history *history)
{
    heddle_history_header *header = history->header;
    heddle_history_journal *journal = &header->journal;
    if (!atomic_load_explicit(&journal->complete, memory_order_acquire))
        return;
    if (journal->slot < history->topic_sets * HEDDLE_HISTORY_WAYS) {
        heddle_history_topic_set *set = &heddle_history_sets(history)[journal->slot / HEDDLE_HISTORY_WAYS];
        set->ways[journal->slot % HEDDLE_HISTORY_WAYS] = journal->topic;
        set->forgotten = journal->forgotten;
        set->generation = journal->state.generation;
    }
    header->state = journal->state;
    atomic_store_explicit(&header->head, journal->head, memory_order_release);
    atomic_store_explicit(&header->generation, journal->state.generation, memory_order_release);
    atomic_store_explicit(&journal->complete, 0, memory_order_release);
}

void heddle_history_commit(heddle_history *history)
{
    atomic_store_explicit(&history->header->journal.complete, 1, memory_order_release);
    apply_journal(history);
}

#ifdef HAVE_PTHREAD_MUTEXATTR_SETROBUST

/* On musl the timeout can only use the wall clock, so the wait takes longer if the clock is set back meanwhile. */
static int lock_with_limit(pthread_mutex_t *mutex)
{
#if defined(HAVE_PTHREAD_MUTEX_CLOCKLOCK) && !defined(__SANITIZE_THREAD__) /* ThreadSanitizer lacks clocklock */
    struct timespec until = heddle_clock_after(CLOCK_MONOTONIC, LOCK_TIMEOUT);
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
#else
    struct timespec until = heddle_clock_after(CLOCK_REALTIME, LOCK_TIMEOUT);
    return pthread_mutex_timedlock(mutex, &until);
#endif
}

#endif

int heddle_history_lock(heddle_history *history)
{
    pthread_mutex_t *mutex = &history->header->mutex;
    int result = pthread_mutex_trylock(mutex);
#ifdef HAVE_PTHREAD_MUTEXATTR_SETROBUST
    if (result == EBUSY)
        result = lock_with_limit(mutex);
    if (result == EOWNERDEAD) {
        apply_journal(history);
        result = pthread_mutex_consistent(mutex);
    }
#else
    if (result == EBUSY)
        result = pthread_mutex_lock(mutex);
#endif
    return -result;
}

void heddle_history_unlock(heddle_history *history)
{
    pthread_mutex_unlock(&history->header->mutex);
}

int heddle_history_read_state(heddle_history *history, heddle_history_state *state)
{
    int result = heddle_history_lock(history);
    if (result < 0)
        return result;
    *state = history->header->state;
    heddle_history_unlock(history);
    return 0;
}

uint32_t heddle_history_generation(const heddle_history *history)
{
    return atomic_load_explicit(&history->header->generation, memory_order_acquire);
}

void heddle_history_wake(const heddle_history *history)
{
    const uint64_t one = 1;
    if (history->wake_fd >= 0 && write(history->wake_fd, &one, sizeof(one)) < 0) {
        /* Can't happen: the counter is full only after 2^64 writes. */
    }
}
