/* Reading a history. */

#include "pubsub/history_layout.h"

#include "selector/clock.h"

#include <errno.h>

static void read_words(const heddle_history *history, uint64_t place, void *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = atomic_load_explicit(heddle_history_word(history, place + at), memory_order_acquire);
        memcpy((char *)bytes + at, &word, size - at < 8 ? size - at : 8);
    }
}

/* Was everything that has been read from this place what was written there? To be asked after reading. */
static bool is_kept(const heddle_history *history, uint64_t place)
{
    return atomic_load_explicit(&history->header->tail, memory_order_acquire) <= place;
}

uint64_t heddle_history_head(const heddle_history *history)
{
    return atomic_load_explicit(&history->header->head, memory_order_acquire);
}

/* Other processes can write the memory: what it says must lie within it. */
static bool is_sound(const heddle_history_record_head *record, uint64_t left)
{
    return record->size <= left && record->size >= sizeof(*record) && record->topic_size <= record->size &&
           record->data_size <= record->size &&
           sizeof(*record) + heddle_history_round_up(record->topic_size) + heddle_history_round_up(record->data_size) ==
               record->size;
}

int heddle_history_look(const heddle_history *history, uint64_t place, heddle_history_record *found)
{
    for (;;) {
        uint64_t head = heddle_history_head(history);
        if (place >= head)
            return place == head ? 0 : -ENODATA;
        uint64_t left = history->log_size - (place & (history->log_size - 1));
        heddle_history_record_head record = {.topic_size = HEDDLE_HISTORY_PADDING};
        /* The rest at the end may be too short for a whole head: then it is padding. */
        read_words(history, place, &record, left < sizeof(record) ? (size_t)left : sizeof(record));
        if (!is_kept(history, place))
            return -ENODATA;
        if (left < sizeof(record) || record.topic_size == HEDDLE_HISTORY_PADDING) {
            place += left;
            continue;
        }
        if (!is_sound(&record, left))
            return -ENODATA;
        *found = (heddle_history_record){
            .place = place, .next = place + record.size, .offset = record.offset, .previous = record.previous,
            .previous_offset = record.previous_offset, .published = record.published,
            .topic_size = record.topic_size, .data_size = record.data_size, .generation = record.generation,
        };
        return 1;
    }
}

bool heddle_history_copy_topic(const heddle_history *history, const heddle_history_record *found, char *topic)
{
    read_words(history, found->place + sizeof(heddle_history_record_head), topic, found->topic_size);
    return is_kept(history, found->place);
}

bool heddle_history_copy_data(const heddle_history *history, const heddle_history_record *found, char *data)
{
    uint64_t place = found->place + sizeof(heddle_history_record_head) + heddle_history_round_up(found->topic_size);
    read_words(history, place, data, found->data_size);
    return is_kept(history, found->place);
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

/* From the last message back to the one that is older than `oldest`. `*reached`: the first one that is known is not. */
static int64_t walk_back(const heddle_history *history, const heddle_history_topic *topic, int64_t oldest, bool *reached)
{
    int64_t offset = (int64_t)topic->offset;
    uint64_t place = topic->place;
    int64_t kept = heddle_clock_now() - history->header->age;
    for (uint32_t count = 0; count <= history->header->messages && place != 0; count++) {
        heddle_history_record found;
        if (heddle_history_look(history, place - 1, &found) != 1 || found.place != place - 1)
            return -ENODATA;
        if (found.published < oldest)
            return offset;
        if (found.published < kept)
            return -ENODATA;
        offset = (int64_t)found.previous_offset;
        place = found.previous;
    }
    *reached = place == 0 && offset > 0; /* 0: there was no topic before it that could have been forgotten */
    return place == 0 ? offset : -ENODATA;
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

static void reverse_places(uint64_t *places, int count)
{
    for (int i = 0; i < count / 2; i++) {
        uint64_t place = places[i];
        places[i] = places[count - 1 - i];
        places[count - 1 - i] = place;
    }
}

/* Walks from the last message back to the one after `since`. */
static int collect_places(const heddle_history *history, const heddle_history_topic *topic, uint64_t since, uint64_t *places)
{
    int64_t oldest = heddle_clock_now() - history->header->age;
    uint64_t place = topic->place;
    for (uint32_t count = 0; count < history->header->messages && count < HEDDLE_HISTORY_MESSAGES;) {
        heddle_history_record found;
        if (place == 0 || heddle_history_look(history, place - 1, &found) != 1 || found.place != place - 1 ||
            found.published < oldest)
            return -ENODATA;
        places[count++] = found.place;
        if (found.previous_offset <= since) {
            reverse_places(places, (int)count);
            return (int)count;
        }
        place = found.previous;
    }
    return -ENODATA;
}

int heddle_history_find(heddle_history *history, const char *name, size_t size, uint32_t generation, uint64_t since,
                        uint64_t places[HEDDLE_HISTORY_MESSAGES], uint64_t *offset)
{
    int result = heddle_history_lock(history);
    if (result < 0)
        return result;
    const heddle_history_state *state = &history->header->state;
    const heddle_history_topic *topic = heddle_history_find_topic(history, name, size);
    uint64_t last = topic ? topic->offset : heddle_history_forgotten(history, name, size);
    *offset = topic ? last : state->count;
    if (generation != state->generation)
        result = -ESTALE;
    else if (since > state->count && !state->follows) /* one that follows may be behind the one that has given it */
        result = -ENODATA;
    else if (since >= last)
        result = 0;
    else
        result = topic ? collect_places(history, topic, since, places) : -ENODATA;
    heddle_history_unlock(history);
    return result;
}
