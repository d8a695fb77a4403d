/* The scoreboard: shared memory with the load of each worker. See scoreboard.h. */

#include "net/scoreboard.h"

#ifdef HAVE_SYS_EVENTFD_H
#include <sys/eventfd.h>
#endif

static const uint64_t MAGIC = UINT64_C(0x68656464626f6172); /* "heddboar" */

static void set_memory(heddle_scoreboard *scoreboard)
{
    scoreboard->header = scoreboard->memory.start;
    scoreboard->slots = (heddle_scoreboard_slot *)(scoreboard->header + 1);
}

static size_t compute_size(uint32_t slot_count)
{
    return sizeof(heddle_scoreboard_header) + (size_t)slot_count * HEDDLE_SCOREBOARD_SLOT +
           HEDDLE_SHARED_POOLS * heddle_shared_pool_size(slot_count);
}

static int make_eventfd(void)
{
#ifdef HAVE_SYS_EVENTFD_H
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
#else
    return -1;
#endif
}

int heddle_scoreboard_create(heddle_scoreboard *scoreboard, uint32_t slot_count)
{
    size_t size = compute_size(slot_count);
    *scoreboard = (heddle_scoreboard){.notify_fd = -1, .alarm_fd = -1};
    int result = heddle_shared_memory_create(&scoreboard->memory, "heddle-scoreboard", size);
    if (result < 0)
        return result;
    scoreboard->notify_fd = make_eventfd();
    scoreboard->alarm_fd = make_eventfd();
    set_memory(scoreboard);
    scoreboard->slot_count = slot_count;
    scoreboard->header->version = HEDDLE_SCOREBOARD_VERSION;
    scoreboard->header->slot_size = HEDDLE_SCOREBOARD_SLOT;
    scoreboard->header->slot_count = slot_count;
    scoreboard->header->magic = MAGIC;
    return 0;
}

static bool check_header(heddle_scoreboard *scoreboard)
{
    const heddle_scoreboard_header *header = scoreboard->header;
    scoreboard->slot_count = header->slot_count;
    return header->magic == MAGIC && header->version == HEDDLE_SCOREBOARD_VERSION &&
           header->slot_size == HEDDLE_SCOREBOARD_SLOT &&
           scoreboard->memory.size >= compute_size(scoreboard->slot_count);
}

static uint32_t count_used(const heddle_scoreboard *scoreboard)
{
    uint32_t used = atomic_load_explicit(&scoreboard->header->used, memory_order_relaxed);
    return used < scoreboard->slot_count ? used : scoreboard->slot_count;
}

int heddle_scoreboard_open(heddle_scoreboard *scoreboard, int fd, int notify_fd)
{
    *scoreboard = (heddle_scoreboard){.notify_fd = notify_fd, .alarm_fd = make_eventfd()};
    int result = heddle_shared_memory_open(&scoreboard->memory, fd, sizeof(heddle_scoreboard_header));
    if (result == 0) {
        set_memory(scoreboard);
        result = check_header(scoreboard) ? 0 : -EPROTO;
    }
    if (result < 0)
        heddle_scoreboard_close(scoreboard);
    return result;
}

void heddle_scoreboard_close(heddle_scoreboard *scoreboard)
{
    heddle_shared_memory_close(&scoreboard->memory);
    scoreboard->header = NULL;
    scoreboard->slots = NULL;
    if (scoreboard->notify_fd >= 0)
        close(scoreboard->notify_fd);
    scoreboard->notify_fd = -1;
    if (scoreboard->alarm_fd >= 0)
        close(scoreboard->alarm_fd);
    scoreboard->alarm_fd = -1;
}

static void reset_slot(heddle_scoreboard_slot *slot)
{
    const size_t kept = offsetof(heddle_scoreboard_slot, index);
    /* Clears `accepting` first, so that no concurrent reader takes this for the slot of an idle worker. */
    HEDDLE_SCOREBOARD_SET(slot->accepting, 0);
    atomic_thread_fence(memory_order_release);
    memset((char *)slot + kept, 0, sizeof(*slot) - kept);
}

int64_t heddle_scoreboard_acquire(heddle_scoreboard *scoreboard, uint32_t generation, uint32_t index)
{
    for (uint32_t i = 0; i < scoreboard->slot_count; i++) {
        heddle_scoreboard_slot *slot = &scoreboard->slots[i];
        uint32_t free = 0;
        /* During a restart the old and the new master both use the scoreboard, so this is a compare-and-swap. */
        if (!atomic_compare_exchange_strong(&slot->generation, &free, generation))
            continue;
        reset_slot(slot);
        HEDDLE_SCOREBOARD_SET(slot->index, index);
        uint32_t used = atomic_load(&scoreboard->header->used);
        while (used < i + 1 && !atomic_compare_exchange_weak(&scoreboard->header->used, &used, i + 1))
            continue;
        return i;
    }
    return -1;
}

void heddle_scoreboard_release(heddle_scoreboard *scoreboard, uint32_t number)
{
    heddle_scoreboard_slot *slot = &scoreboard->slots[number];
    atomic_fetch_sub(&scoreboard->header->body_disk, atomic_load(&slot->body_disk));
    reset_slot(slot);
    atomic_store(&slot->generation, 0);
}

static void add_one(int eventfd)
{
    uint64_t one = 1;
    if (eventfd >= 0 && write(eventfd, &one, sizeof(one)) < 0)
        return; /* can't happen: the counter is full only after 2^64 writes */
}

void heddle_scoreboard_notify(const heddle_scoreboard *scoreboard)
{
    add_one(scoreboard->notify_fd);
}

void heddle_scoreboard_alarm(const heddle_scoreboard *scoreboard)
{
    add_one(scoreboard->alarm_fd);
}

static bool can_accept(const heddle_scoreboard_slot *slot, int64_t now)
{
    if (!atomic_load_explicit(&slot->accepting, memory_order_relaxed) ||
        atomic_load_explicit(&slot->stuck, memory_order_relaxed))
        return false;
    int64_t tick_began = atomic_load_explicit(&slot->tick_began, memory_order_relaxed);
    return !tick_began || now - tick_began <= HEDDLE_SCOREBOARD_LATE;
}

bool heddle_scoreboard_other_accepts(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine,
                                     int64_t now)
{
    uint32_t used = count_used(scoreboard);
    for (uint32_t i = 0; i < used; i++) {
        if (&scoreboard->slots[i] != mine && can_accept(&scoreboard->slots[i], now))
            return true;
    }
    return false;
}

bool heddle_scoreboard_has_less_loaded(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine,
                                       int64_t now)
{
    uint32_t least = UINT32_MAX, used = count_used(scoreboard);
    for (uint32_t i = 0; i < used; i++) {
        const heddle_scoreboard_slot *slot = &scoreboard->slots[i];
        if (slot == mine || !can_accept(slot, now))
            continue;
        uint32_t load = heddle_scoreboard_load(slot);
        least = load < least ? load : least;
    }
    /* A small difference is ignored. Otherwise each new connection would change which worker has the least load. */
    return least != UINT32_MAX && heddle_scoreboard_load(mine) > least + 1 + least / 8;
}

#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

static bool is_asleep(const heddle_scoreboard_slot *slot)
{
    uint32_t limit = GET(slot->limit);
    return GET(slot->accepting) && !GET(slot->stuck) && !GET(slot->tick_began) &&
           (!limit || GET(slot->in_flight) < limit);
}

bool heddle_scoreboard_has_sleeper(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine)
{
    uint32_t used = count_used(scoreboard);
    for (uint32_t i = 0; i < used; i++) {
        if (&scoreboard->slots[i] != mine && is_asleep(&scoreboard->slots[i]))
            return true;
    }
    return false;
}

bool heddle_scoreboard_has_shorter_queue(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine)
{
    uint32_t used = count_used(scoreboard);
    for (uint32_t i = 0; i < used; i++) {
        const heddle_scoreboard_slot *slot = &scoreboard->slots[i];
        uint32_t requests = GET(slot->in_flight);
        if (slot == mine || !GET(slot->accepting) || GET(slot->stuck))
            continue;
        /* ignores small differences, as heddle_scoreboard_has_less_loaded does */
        if (GET(mine->in_flight) > requests + 1 + requests / 8)
            return true;
    }
    return false;
}

bool heddle_scoreboard_label_blocks(const heddle_scoreboard *scoreboard, uint32_t label)
{
    uint32_t used = label ? count_used(scoreboard) : 0;
    for (uint32_t i = 0; i < used; i++) {
        if (GET(scoreboard->slots[i].label) == label && GET(scoreboard->slots[i].stuck))
            return true;
    }
    return false;
}

uint32_t heddle_scoreboard_count_others(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine)
{
    uint32_t used = count_used(scoreboard), count = 0;
    for (uint32_t i = 0; i < used; i++)
        count += &scoreboard->slots[i] != mine && GET(scoreboard->slots[i].generation) != 0;
    return count;
}

static bool comes_before(const heddle_scoreboard_slot *slot, uint32_t rank)
{
    uint32_t reserve = GET(slot->reserve);
    return GET(slot->generation) && GET(slot->open) && (reserve == 0 || reserve < rank);
}

int64_t heddle_scoreboard_reserve_due(const heddle_scoreboard *scoreboard, const heddle_scoreboard_slot *mine,
                                      int64_t delay)
{
    uint32_t used = count_used(scoreboard), rank = GET(mine->reserve);
    int64_t due = INT64_MAX;
    for (uint32_t i = 0; i < used; i++) {
        const heddle_scoreboard_slot *slot = &scoreboard->slots[i];
        if (slot == mine || !comes_before(slot, rank))
            continue;
        if (!GET(slot->stuck))
            return INT64_MAX;
        int64_t needed_at = GET(slot->stuck_since) + delay;
        due = due == INT64_MAX || needed_at > due ? needed_at : due;
    }
    return due;
}
