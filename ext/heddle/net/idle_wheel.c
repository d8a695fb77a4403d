#include "net/idle_wheel.h"
#include "selector/assert.h"

static size_t slot_of(int64_t tick)
{
    return (size_t)tick % HEDDLE_IDLE_WHEEL_SLOTS;
}

static void link_entry(heddle_idle_entry **first, heddle_idle_entry *entry)
{
    entry->next = *first;
    entry->link = first;
    if (entry->next)
        entry->next->link = &entry->next;
    *first = entry;
}

static void unlink_entry(heddle_idle_entry *entry)
{
    *entry->link = entry->next;
    if (entry->next)
        entry->next->link = entry->link;
    entry->next = NULL;
    entry->link = NULL;
}

void heddle_idle_wheel_start(heddle_idle_wheel *wheel, int64_t now)
{
    *wheel = (heddle_idle_wheel){.tick = now / HEDDLE_IDLE_WHEEL_TICK};
}

void heddle_idle_wheel_add(heddle_idle_wheel *wheel, heddle_idle_entry *entry, int64_t deadline)
{
    HEDDLE_ASSERT(!entry->link);
    int64_t tick = deadline / HEDDLE_IDLE_WHEEL_TICK + 1; /* rounded up, so that it never expires early */
    if (tick < wheel->tick)
        tick = wheel->tick;
    entry->tick = tick;
    size_t slot = slot_of(tick);
    link_entry(&wheel->slots[slot], entry);
    wheel->used[slot / 64] |= UINT64_C(1) << (slot % 64);
    wheel->count++;
}

void heddle_idle_wheel_remove(heddle_idle_wheel *wheel, heddle_idle_entry *entry)
{
    if (!entry->link)
        return;
    unlink_entry(entry);
    wheel->count--; /* the slot's bit stays set until the slot comes up */
}

int64_t heddle_idle_wheel_find_next(const heddle_idle_wheel *wheel)
{
    if (wheel->count == 0)
        return -1;
    if (wheel->due)
        return 0;
    for (int64_t ahead = 0; ahead < HEDDLE_IDLE_WHEEL_SLOTS;) {
        size_t slot = slot_of(wheel->tick + ahead);
        uint64_t bits = wheel->used[slot / 64] >> (slot % 64);
        if (bits)
            return (wheel->tick + ahead + __builtin_ctzll(bits)) * HEDDLE_IDLE_WHEEL_TICK;
        ahead += 64 - (int64_t)(slot % 64);
    }
    HEDDLE_ASSERT(!"an entry without a bit");
    return wheel->tick * HEDDLE_IDLE_WHEEL_TICK;
}

/* Moves the entries of a slot that are due in this revolution of the wheel into `due`. */
static void collect_due(heddle_idle_wheel *wheel, int64_t tick)
{
    size_t slot = slot_of(tick);
    heddle_idle_entry *later = NULL;
    while (wheel->slots[slot]) {
        heddle_idle_entry *entry = wheel->slots[slot];
        unlink_entry(entry);
        link_entry(entry->tick <= tick ? &wheel->due : &later, entry);
    }
    wheel->used[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
    while (later) {
        heddle_idle_entry *entry = later;
        unlink_entry(entry);
        link_entry(&wheel->slots[slot], entry);
        wheel->used[slot / 64] |= UINT64_C(1) << (slot % 64);
    }
}

/* Takes one entry at a time, because `fn` may remove any other entry. */
static void expire_first(heddle_idle_wheel *wheel, heddle_idle_fn *fn, void *data)
{
    heddle_idle_entry *entry = wheel->due;
    unlink_entry(entry);
    wheel->count--;
    int64_t deadline = fn(entry, data);
    if (deadline >= 0)
        heddle_idle_wheel_add(wheel, entry, deadline);
}

void heddle_idle_wheel_advance(heddle_idle_wheel *wheel, int64_t now, unsigned most, heddle_idle_fn *fn, void *data)
{
    int64_t until = now / HEDDLE_IDLE_WHEEL_TICK;
    /* After a long pause every slot is visited once. */
    if (until - wheel->tick >= HEDDLE_IDLE_WHEEL_SLOTS)
        wheel->tick = until - HEDDLE_IDLE_WHEEL_SLOTS + 1;
    while (wheel->due || wheel->tick <= until) {
        if (wheel->due) {
            if (most-- == 0)
                return;
            expire_first(wheel, fn, data);
            continue;
        }
        int64_t tick = wheel->tick++; /* increased first: what `fn` adds expires in a later tick */
        if (wheel->used[slot_of(tick) / 64] >> (slot_of(tick) % 64) & 1)
            collect_due(wheel, tick);
    }
}
