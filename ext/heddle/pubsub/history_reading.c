/* Reads a history. The log can be read without the mutex, the table of topics only with the mutex. */

#include "pubsub/history_layout.h"

#include "selector/clock.h"

static void read_words(const heddle_history *history, uint64_t lsn, void *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = atomic_load_explicit(heddle_history_word(history, lsn + at), memory_order_acquire);
        memcpy((char *)bytes + at, &word, size - at < 8 ? size - at : 8);
    }
}

/* Called after bytes at this LSN were read. Returns false if a writer may have overwritten them meanwhile. */
static bool is_kept(const heddle_history *history, uint64_t lsn)
{
    return atomic_load_explicit(&history->header->tail, memory_order_acquire) <= lsn;
}

uint64_t heddle_history_head(const heddle_history *history)
{
    return atomic_load_explicit(&history->header->head, memory_order_acquire);
}

/* Are the sizes in the record possible? They are checked because other processes can write to the memory. */
static bool is_sound(const heddle_history_record_head *record, uint64_t left)
{
    return record->size <= left && record->size >= sizeof(*record) && record->topic_size <= record->size &&
           record->data_size <= record->size &&
           sizeof(*record) + heddle_history_round_up(record->topic_size) + heddle_history_round_up(record->data_size) ==
               record->size;
}

int heddle_history_check_record(const heddle_history *history, uint64_t lsn, heddle_history_record *found)
{
    for (;;) {
        uint64_t head = heddle_history_head(history);
        if (lsn >= head)
            return lsn == head ? 0 : -ENODATA;
        uint64_t left = history->log_size - (lsn & (history->log_size - 1));
        heddle_history_record_head record = {.topic_size = HEDDLE_HISTORY_PADDING};
        /*
         * At the end of the log there may be too few bytes for the head of a record. Then these bytes are padding, and
         * only they are read.
         */
        read_words(history, lsn, &record, left < sizeof(record) ? (size_t)left : sizeof(record));
        if (!is_kept(history, lsn))
            return -ENODATA;
        if ((left < sizeof(record) || record.topic_size == HEDDLE_HISTORY_PADDING) && left < history->log_size) {
            lsn += left;
            continue;
        }
        if (!is_sound(&record, left))
            return -ENODATA;
        *found = (heddle_history_record){
            .lsn = lsn, .next = lsn + record.size, .offset = record.offset, .previous = record.previous,
            .previous_offset = record.previous_offset, .published = record.published,
            .topic_size = record.topic_size, .data_size = record.data_size, .generation = record.generation,
        };
        return 1;
    }
}

bool heddle_history_copy_topic(const heddle_history *history, const heddle_history_record *found, char *topic)
{
    read_words(history, found->lsn + sizeof(heddle_history_record_head), topic, found->topic_size);
    return is_kept(history, found->lsn);
}

bool heddle_history_copy_data(const heddle_history *history, const heddle_history_record *found, char *data)
{
    uint64_t lsn = found->lsn + sizeof(heddle_history_record_head) + heddle_history_round_up(found->topic_size);
    read_words(history, lsn, data, found->data_size);
    return is_kept(history, found->lsn);
}

int64_t heddle_history_offset(heddle_history *history, const char *name, size_t size, heddle_history_state *state)
{
    int result = heddle_history_lock(history);
    if (result < 0)
        return result;
    const heddle_history_topic *topic = heddle_history_find_topic(history, name, size);
    *state = history->header->state;
    int64_t offset = (int64_t)(topic ? topic->offset : state->count);
    heddle_history_unlock(history);
    return offset;
}

/*
 * Walks back over the topic's messages that were published at or after `oldest`. Returns the offset of the topic's
 * message before them, or -ENODATA if not all of them can be replayed. Sets `*reached` if the walk has reached the
 * topic's first known message, and the topic may have had earlier messages, which the history has forgotten.
 */
static int64_t walk_back(const heddle_history *history, const heddle_history_topic *topic, int64_t oldest,
                         bool *reached)
{
    int64_t offset = (int64_t)topic->offset;
    uint64_t lsn_plus_1 = topic->lsn_plus_1;
    int64_t kept = heddle_clock_now() - history->header->age;
    for (uint32_t count = 0; count <= HEDDLE_HISTORY_MESSAGES && lsn_plus_1 != 0; count++) {
        if (count > history->header->messages)
            return -ENODATA;
        heddle_history_record found;
        if (heddle_history_check_record(history, lsn_plus_1 - 1, &found) != 1 || found.lsn != lsn_plus_1 - 1)
            return -ENODATA;
        if (found.published < oldest)
            return offset;
        if (found.published < kept)
            return -ENODATA;
        offset = (int64_t)found.previous_offset;
        lsn_plus_1 = found.previous;
    }
    *reached = lsn_plus_1 == 0 && offset > 0; /* with offset 0, no earlier messages exist */
    return lsn_plus_1 == 0 ? offset : -ENODATA;
}

int64_t heddle_history_offset_before(heddle_history *history, const char *name, size_t size, int64_t age,
                                     heddle_history_state *state)
{
    int result = heddle_history_lock(history);
    if (result < 0)
        return result;
    const heddle_history_topic *topic = heddle_history_find_topic(history, name, size);
    int64_t oldest = heddle_clock_now() - age;
    bool reached = !topic;
    *state = history->header->state;
    int64_t offset = topic ? walk_back(history, topic, oldest, &reached) : (int64_t)state->count;
    if (reached && heddle_history_forgot_since(history, name, size, oldest))
        offset = -ENODATA;
    heddle_history_unlock(history);
    return offset;
}

static void reverse_lsns(uint64_t *lsns, int count)
{
    for (int i = 0; i < count / 2; i++) {
        uint64_t lsn = lsns[i];
        lsns[i] = lsns[count - 1 - i];
        lsns[count - 1 - i] = lsn;
    }
}

/*
 * Walks back from the topic's last message to its first message after the offset `since`. Returns the number of
 * messages, or -ENODATA if not all of them can be replayed.
 */
static int collect_lsns(const heddle_history *history, const heddle_history_topic *topic, uint64_t since,
                        uint64_t *lsns)
{
    int64_t oldest = heddle_clock_now() - history->header->age;
    uint64_t lsn_plus_1 = topic->lsn_plus_1;
    for (uint32_t count = 0; count < history->header->messages && count < HEDDLE_HISTORY_MESSAGES;) {
        heddle_history_record found;
        if (lsn_plus_1 == 0 || heddle_history_check_record(history, lsn_plus_1 - 1, &found) != 1 ||
            found.lsn != lsn_plus_1 - 1 || found.published < oldest)
            return -ENODATA;
        lsns[count++] = found.lsn;
        if (found.previous_offset <= since) {
            reverse_lsns(lsns, (int)count);
            return (int)count;
        }
        lsn_plus_1 = found.previous;
    }
    return -ENODATA;
}

int heddle_history_find(heddle_history *history, const char *name, size_t size, uint32_t generation, uint64_t since,
                        uint64_t lsns[HEDDLE_HISTORY_MESSAGES], uint64_t *offset)
{
    int result = heddle_history_lock(history);
    if (result < 0)
        return result;
    const heddle_history_state *state = &history->header->state;
    const heddle_history_topic *topic = heddle_history_find_topic(history, name, size);
    uint64_t last = topic ? topic->offset : heddle_history_find_forgotten(history, name, size);
    *offset = topic ? last : state->count;
    if (generation != state->generation)
        result = -ESTALE;
    else if (since > state->count && !state->follows) /* with a backend, newer messages may not have arrived here yet */
        result = -ENODATA;
    else if (since >= last)
        result = 0;
    else
        result = topic ? collect_lsns(history, topic, since, lsns) : -ENODATA;
    heddle_history_unlock(history);
    return result;
}
