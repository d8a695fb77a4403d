/* Writes messages and the table of topics of a history, with the mutex held. */

#include "pubsub/history_layout.h"

#include "selector/clock.h"

/* -- topics -------------------------------------------------------------------------------------------------------- */

static heddle_topic_hash hash_of(const heddle_history *history, const char *name, size_t size)
{
    heddle_topic_hash hash = heddle_hash_topic(history->header->key, name, size);
    if (hash.low == 0 && hash.high == 0)
        hash.low = 1;
    return hash;
}

uint64_t heddle_history_hash(const heddle_history *history, const char *topic, size_t size)
{
    return heddle_hash_topic(history->header->key, topic, size).low;
}

static uint32_t set_of(const heddle_history *history, const heddle_topic_hash *hash)
{
    return (uint32_t)(hash->low & (history->topic_sets - 1));
}

/* Is the entry in use? An entry of an earlier generation counts as free. */
static bool is_used(const heddle_history *history, const heddle_history_topic *topic)
{
    return topic->lsn_plus_1 > history->header->state.floor_lsn && (topic->hash.low || topic->hash.high);
}

static bool is_topic(const heddle_history *history, const heddle_history_topic *topic, const heddle_topic_hash *hash)
{
    return topic->hash.low == hash->low && topic->hash.high == hash->high && is_used(history, topic);
}

/* Returns an offset after which the topics that were removed from this set have no message. */
static uint64_t find_forgotten_offset(const heddle_history *history, const heddle_history_topic_set *set)
{
    const heddle_history_state *state = &history->header->state;
    bool current = set->generation == state->generation && set->forgotten > state->floor_offset;
    return current ? set->forgotten : state->floor_offset;
}

const heddle_history_topic *heddle_history_find_topic(const heddle_history *history, const char *name, size_t size)
{
    heddle_topic_hash hash = hash_of(history, name, size);
    const heddle_history_topic_set *set = &heddle_history_sets(history)[set_of(history, &hash)];
    for (int i = 0; i < HEDDLE_HISTORY_WAYS; i++) {
        if (is_topic(history, &set->ways[i], &hash))
            return &set->ways[i];
    }
    return NULL;
}

uint64_t heddle_history_find_forgotten(const heddle_history *history, const char *name, size_t size)
{
    heddle_topic_hash hash = hash_of(history, name, size);
    return find_forgotten_offset(history, &heddle_history_sets(history)[set_of(history, &hash)]);
}

bool heddle_history_forgot_since(const heddle_history *history, const char *name, size_t size, int64_t time)
{
    heddle_topic_hash hash = hash_of(history, name, size);
    const heddle_history_topic_set *set = &heddle_history_sets(history)[set_of(history, &hash)];
    if (find_forgotten_offset(history, set) == 0)
        return false;
    for (int i = 0; i < HEDDLE_HISTORY_WAYS; i++) {
        if (is_used(history, &set->ways[i]) && set->ways[i].published < time)
            return false; /* the oldest topics are forgotten first, and even this older one is still here */
    }
    return true;
}

/*
 * Chooses the topic's entry in the table. Writes to the journal: the entry's number, its present content or that of a
 * new entry, and `forgotten` of its set.
 */
static void choose_entry(const heddle_history *history, const char *name, size_t size, heddle_history_journal *journal)
{
    heddle_topic_hash hash = hash_of(history, name, size);
    uint32_t number = set_of(history, &hash);
    const heddle_history_topic_set *set = &heddle_history_sets(history)[number];
    int chosen = 0;
    uint64_t forgotten = find_forgotten_offset(history, set);
    journal->forgotten = forgotten;
    for (int i = 0; i < HEDDLE_HISTORY_WAYS; i++) {
        if (is_topic(history, &set->ways[i], &hash)) {
            journal->topic = set->ways[i];
            journal->slot = number * HEDDLE_HISTORY_WAYS + (uint32_t)i;
            return;
        }
        if (is_used(history, &set->ways[chosen]) &&
            (!is_used(history, &set->ways[i]) || set->ways[i].published < set->ways[chosen].published))
            chosen = i;
    }
    /* If the new topic was in this set earlier, its last message is not newer than `forgotten`. */
    journal->topic = (heddle_history_topic){.hash = hash, .offset = forgotten};
    journal->slot = number * HEDDLE_HISTORY_WAYS + (uint32_t)chosen;
    if (is_used(history, &set->ways[chosen]) && set->ways[chosen].offset > forgotten)
        journal->forgotten = set->ways[chosen].offset;
}

/* -- messages ------------------------------------------------------------------------------------------------------ */

/* Writes the bytes as words of 8 bytes. Pads the last word with zeros. */
static void write_words(const heddle_history *history, uint64_t lsn, const void *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = 0;
        memcpy(&word, (const char *)bytes + at, size - at < 8 ? size - at : 8);
        atomic_store_explicit(heddle_history_word(history, lsn + at), word, memory_order_release);
    }
}

/* Marks the bytes before `end - log_size` as overwritten. Called before they are overwritten. */
static void move_tail(heddle_history *history, uint64_t end)
{
    uint64_t tail = end > history->log_size ? end - history->log_size : 0;
    if (tail > atomic_load_explicit(&history->header->tail, memory_order_relaxed))
        atomic_store_explicit(&history->header->tail, tail, memory_order_relaxed);
}

static void pad_end(heddle_history *history, uint64_t lsn, uint64_t left)
{
    const heddle_history_record_head padding = {.size = left, .topic_size = HEDDLE_HISTORY_PADDING};
    write_words(history, lsn, &padding, left < sizeof(padding) ? (size_t)left : sizeof(padding));
}

static void write_message(heddle_history *history, uint64_t offset, const char *name, size_t name_size,
                          const char *data, size_t data_size)
{
    heddle_history_header *header = history->header;
    heddle_history_journal *journal = &header->journal;
    uint64_t lsn = atomic_load_explicit(&header->head, memory_order_relaxed);
    heddle_history_record_head record = {
        .size = sizeof(record) + heddle_history_round_up(name_size) + heddle_history_round_up(data_size),
        .offset = offset,
        .published = heddle_clock_now(),
        .topic_size = (uint32_t)name_size,
        .data_size = (uint32_t)data_size,
        .generation = header->state.generation,
    };
    uint64_t left = history->log_size - (lsn & (history->log_size - 1));
    move_tail(history, lsn + record.size + (left < record.size ? left : 0));
    if (left < record.size) {
        pad_end(history, lsn, left);
        lsn += left;
    }
    choose_entry(history, name, name_size, journal);
    record.previous = journal->topic.lsn_plus_1;
    record.previous_offset = journal->topic.offset;
    journal->topic.offset = offset;
    journal->topic.lsn_plus_1 = lsn + 1;
    journal->topic.published = record.published;
    journal->head = lsn + record.size;
    journal->state = header->state;
    journal->state.count = offset;
    write_words(history, lsn, &record, sizeof(record));
    write_words(history, lsn + sizeof(record), name, name_size);
    write_words(history, lsn + sizeof(record) + heddle_history_round_up(name_size), data, data_size);
    heddle_history_commit(history);
}

static bool is_too_large(const heddle_history *history, size_t topic_size, size_t data_size)
{
    size_t most = heddle_history_largest_message(history);
    return topic_size > most || data_size > most - topic_size;
}

int64_t heddle_history_publish(heddle_history *history, const char *topic, size_t topic_size, const char *data,
                               size_t data_size, heddle_history_state *state)
{
    if (is_too_large(history, topic_size, data_size))
        return -EMSGSIZE;
    int result = heddle_history_lock(history);
    if (result < 0)
        return result;
    if (history->header->state.follows)
        result = -EPERM;
    else
        write_message(history, history->header->state.count + 1, topic, topic_size, data, data_size);
    *state = history->header->state;
    heddle_history_unlock(history);
    if (result < 0)
        return result;
    heddle_history_wake(history);
    return (int64_t)state->count;
}

int heddle_history_begin(heddle_history *history, const char *epoch, uint64_t offset)
{
    heddle_history_journal *journal = &history->header->journal;
    int result = heddle_history_lock(history);
    if (result < 0)
        return result;
    heddle_history_state state = history->header->state;
    bool same = state.follows && strncmp(state.epoch, epoch, HEDDLE_EPOCH_SIZE) == 0;
    if (!same || offset > state.count) {
        memset(state.epoch, 0, sizeof(state.epoch));
        memcpy(state.epoch, epoch, strnlen(epoch, HEDDLE_EPOCH_SIZE));
        state.count = state.floor_offset = offset;
        state.floor_lsn = heddle_history_head(history);
        state.generation++;
        state.follows = 1;
        journal->slot = HEDDLE_HISTORY_NO_SLOT;
        journal->head = state.floor_lsn;
        journal->state = state;
        heddle_history_commit(history);
    }
    heddle_history_unlock(history);
    heddle_history_wake(history);
    return 0;
}

int heddle_history_append(heddle_history *history, const char *epoch, uint64_t offset, const char *topic,
                          size_t topic_size, const char *data, size_t data_size)
{
    if (is_too_large(history, topic_size, data_size))
        return -EMSGSIZE;
    int result = heddle_history_lock(history);
    if (result < 0)
        return result;
    const heddle_history_state *state = &history->header->state;
    if (!state->follows || strncmp(state->epoch, epoch, sizeof(state->epoch)) != 0)
        result = -ESTALE;
    else if (offset != state->count + 1)
        result = offset > state->count ? -ERANGE : 0;
    else
        result = 1;
    if (result == 1)
        write_message(history, offset, topic, topic_size, data, data_size);
    heddle_history_unlock(history);
    if (result == 1)
        heddle_history_wake(history);
    return result;
}
