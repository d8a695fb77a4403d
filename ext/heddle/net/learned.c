#include "net/learned.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const uint64_t MAGIC = UINT64_C(0x686564646c65726e); /* "heddlern" */
static const int64_t TICK = 62500000, MILLISECOND = 1000000; /* ns */

#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)

/* -- memory ------------------------------------------------------------------------------------------------------ */

static void use(heddle_learned *learned)
{
    learned->header = learned->memory.start;
    learned->slots = (heddle_learned_slot *)(learned->header + 1);
}

static size_t size_of(uint32_t slot_count)
{
    return sizeof(heddle_learned_header) + (size_t)slot_count * HEDDLE_LEARNED_SLOT;
}

int heddle_learned_create(heddle_learned *learned, uint32_t slot_count)
{
    *learned = (heddle_learned){0};
    int result = heddle_shared_memory_create(&learned->memory, "heddle-learned", size_of(slot_count));
    if (result < 0)
        return result;
    use(learned);
    learned->header->version = HEDDLE_LEARNED_VERSION;
    learned->header->slot_size = HEDDLE_LEARNED_SLOT;
    learned->header->slot_count = slot_count;
    learned->header->magic = MAGIC;
    return 0;
}

static bool is_ours(const heddle_learned *learned)
{
    const heddle_learned_header *header = learned->header;
    return header->magic == MAGIC && header->version == HEDDLE_LEARNED_VERSION &&
           header->slot_size == HEDDLE_LEARNED_SLOT && learned->memory.size >= size_of(header->slot_count);
}

int heddle_learned_open(heddle_learned *learned, int fd)
{
    *learned = (heddle_learned){0};
    int result = heddle_shared_memory_open(&learned->memory, fd, sizeof(heddle_learned_header));
    if (result == 0) {
        use(learned);
        result = is_ours(learned) ? 0 : -EPROTO;
    }
    if (result < 0)
        heddle_learned_close(learned);
    return result;
}

void heddle_learned_close(heddle_learned *learned)
{
    heddle_shared_memory_close(&learned->memory);
    learned->header = NULL;
    learned->slots = NULL;
}

/* -- names ------------------------------------------------------------------------------------------------------- */

/* FNV-1a; never 0. */
static uint64_t key_of(const char *name)
{
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        key = (key ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return key ? key : 1;
}

static void write_name(heddle_learned_slot *slot, const char *name)
{
    uint64_t words[HEDDLE_LEARNED_NAME / 8] = {0};
    memcpy(words, name, strnlen(name, HEDDLE_LEARNED_NAME - 1));
    for (size_t i = 0; i < HEDDLE_LEARNED_NAME / 8; i++)
        SET(slot->name[i], words[i]);
}

/* false: somebody is about to write it. */
static bool read_name(const heddle_learned_slot *slot, char name[HEDDLE_LEARNED_NAME])
{
    uint64_t words[HEDDLE_LEARNED_NAME / 8], key = GET(slot->key);
    for (size_t i = 0; i < HEDDLE_LEARNED_NAME / 8; i++)
        words[i] = GET(slot->name[i]);
    memcpy(name, words, HEDDLE_LEARNED_NAME);
    name[HEDDLE_LEARNED_NAME - 1] = '\0';
    return key_of(name) == key;
}

/* -- scores ------------------------------------------------------------------------------------------------------ */

static uint32_t ticks(int64_t time)
{
    return (uint32_t)(time / TICK);
}

static double decayed(const heddle_learned *learned, uint64_t score, int64_t now)
{
    int32_t age = (int32_t)(ticks(now) - (uint32_t)score);
    double halves = age > 0 ? (double)age * (double)TICK / (double)learned->half_life : 0;
    return (double)(score >> 32) * exp2(-halves);
}

static uint64_t packed(double milliseconds, int64_t now)
{
    uint64_t score = milliseconds < (double)UINT32_MAX ? (uint64_t)(milliseconds + 0.5) : UINT32_MAX;
    return score << 32 | ticks(now);
}

/* Whole milliseconds: what is less is nothing, so that everything ends. */
static int64_t score_of(const heddle_learned *learned, const heddle_learned_slot *slot, int64_t now)
{
    return (int64_t)(packed(decayed(learned, GET(slot->score), now), now) >> 32) * MILLISECOND;
}

static heddle_learned_slot *find(const heddle_learned *learned, uint64_t key)
{
    for (uint32_t i = 0; i < learned->header->slot_count; i++) {
        uint64_t found = GET(learned->slots[i].key);
        if (found == key)
            return &learned->slots[i];
        if (!found)
            return NULL; /* they are taken in their order */
    }
    return NULL;
}

/* A slot for what is not there yet: an unused one, else the one with the least score. */
static heddle_learned_slot *claim(heddle_learned *learned, uint64_t key, int64_t now)
{
    heddle_learned_slot *least = NULL;
    for (uint32_t i = 0; i < learned->header->slot_count; i++) {
        heddle_learned_slot *slot = &learned->slots[i];
        uint64_t nobody = 0;
        if (atomic_compare_exchange_strong(&slot->key, &nobody, key) || nobody == key)
            return slot;
        if (!least || score_of(learned, slot, now) < score_of(learned, least, now))
            least = slot;
    }
    if (!least)
        return NULL;
    /* Whoever adds to it between the lines gives the newcomer more than its own, for a while. */
    SET(least->score, 0);
    SET(least->count, 0);
    SET(least->key, key);
    return least;
}

void heddle_learned_note(heddle_learned *learned, const char *name, int64_t held, int64_t now)
{
    uint64_t key = key_of(name);
    heddle_learned_slot *slot = find(learned, key);
    if (!slot)
        slot = claim(learned, key, now);
    if (!slot)
        return;
    write_name(slot, name);
    uint64_t before = GET(slot->score), after;
    do {
        after = packed(decayed(learned, before, now) + (double)held / (double)MILLISECOND, now);
    } while (!atomic_compare_exchange_weak(&slot->score, &before, after));
    atomic_fetch_add(&slot->count, 1);
    atomic_store(&learned->header->any, 1);
}

int64_t heddle_learned_score(const heddle_learned *learned, const char *name, int64_t now)
{
    const heddle_learned_slot *slot = find(learned, key_of(name));
    return slot ? score_of(learned, slot, now) : 0;
}

bool heddle_learned_read(const heddle_learned *learned, uint32_t number, int64_t now, heddle_learned_entry *entry)
{
    const heddle_learned_slot *slot = &learned->slots[number];
    if (!GET(slot->key) || !read_name(slot, entry->name))
        return false;
    uint32_t age = ticks(now) - (uint32_t)GET(slot->score);
    entry->score = score_of(learned, slot, now);
    entry->at = now - ((int32_t)age > 0 ? (int64_t)age * TICK : 0);
    entry->count = GET(slot->count);
    return entry->score > 0;
}

static bool any_left(const heddle_learned *learned, int64_t now)
{
    for (uint32_t i = 0; i < learned->header->slot_count; i++) {
        if (score_of(learned, &learned->slots[i], now) > 0)
            return true;
    }
    return false;
}

void heddle_learned_sweep(heddle_learned *learned, int64_t now)
{
    if (!heddle_learned_any(learned) || any_left(learned, now))
        return;
    atomic_store(&learned->header->any, 0);
    if (any_left(learned, now)) /* somebody has noted one meanwhile */
        atomic_store(&learned->header->any, 1);
}

uint32_t heddle_learned_reset(heddle_learned *learned, const char *name, int64_t now)
{
    uint64_t key = name ? key_of(name) : 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < learned->header->slot_count; i++) {
        heddle_learned_slot *slot = &learned->slots[i];
        if (name && GET(slot->key) != key)
            continue;
        known += score_of(learned, slot, now) > 0;
        SET(slot->score, 0);
        SET(slot->count, 0);
    }
    heddle_learned_sweep(learned, now);
    return known;
}
