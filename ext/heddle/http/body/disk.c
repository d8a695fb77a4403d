#include "http/body/disk.h"

#include <sched.h>

/*
 * How often a process checks whether the others that ask for the same room have decided. The number is bounded, because
 * another process may be stopped.
 */
enum { MAX_POLLS = 200 };

/* `used`, the bytes of an address and the slot's word change together, under the lock. */
static struct {
    pthread_mutex_t lock;
    uint64_t used;
    const heddle_scoreboard *scoreboard;
    heddle_scoreboard_slot *slot; /* NULL: the server has only this process */
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t by_address[HEDDLE_ADDRESS_BUCKETS]; /* not in `disk`, where it would enlarge the library's file */

static void add_bytes(uint16_t address, uint64_t bytes)
{
    disk.used += bytes;
    if (address)
        by_address[address - 1] += bytes;
    if (disk.slot)
        atomic_store(&disk.slot->body_disk, disk.used);
}

static heddle_scoreboard_bodies look_at_others(void)
{
    return disk.slot ? heddle_scoreboard_body_disk(disk.scoreboard, disk.slot) : (heddle_scoreboard_bodies){0};
}

static bool fits_limit(uint64_t limit, uint64_t bytes, uint64_t others, uint64_t asked)
{
    return disk.used <= limit && bytes <= limit - disk.used && others <= limit - disk.used - bytes &&
           asked <= limit - disk.used - bytes - others;
}

/* Does the body's address have room for `bytes` more? The caller has checked that they fit into the limit. */
static bool fits_address(uint64_t limit, const heddle_body_disk_count *body, uint64_t bytes,
                         const heddle_scoreboard_bodies *others)
{
    if (!body->address || disk.used + bytes + others->held <= limit / 2)
        return true;
    uint64_t held = by_address[body->address - 1];
    return held == body->bytes || held + bytes <= limit / 2 / (others->processes + 1);
}

static bool fits(uint64_t limit, const heddle_body_disk_count *body, uint64_t bytes,
                 const heddle_scoreboard_bodies *others)
{
    return fits_limit(limit, bytes, others->held, 0) && fits_address(limit, body, bytes, others);
}

/*
 * Writes its request to the scoreboard first, and then reads the others' requests: of two processes that ask at the
 * same time, at least one sees the other. If there is room for only one of them, the process with the later slot
 * withdraws its request. The other process waits for that. So both fail only if one of them is stopped in between.
 */
static bool agree_with_others(const heddle_body_disk_count *body, uint64_t bytes, uint64_t limit)
{
    bool asks = false;
    for (int i = 0; i < MAX_POLLS; i++) {
        heddle_scoreboard_bodies others = look_at_others();
        if (!fits(limit, body, bytes, &others))
            return false;
        if (!disk.slot)
            return true;
        bool first = fits_limit(limit, bytes, others.held, others.asked_before);
        if (first && asks && fits_limit(limit, bytes, others.held + others.asked_before, others.asked_after))
            return true;
        bool began = first && !asks;
        if (first != asks)
            atomic_store(&disk.slot->body_disk_asked, first ? bytes : 0);
        asks = first;
        if (!began)
            sched_yield();
    }
    return false;
}

bool heddle_body_disk_take(heddle_body_disk_count *body, uint64_t bytes, uint64_t limit)
{
    pthread_mutex_lock(&disk.lock);
    bool taken = agree_with_others(body, bytes - body->bytes, limit);
    if (taken) {
        add_bytes(body->address, bytes - body->bytes);
        body->bytes = bytes;
    }
    if (disk.slot)
        atomic_store(&disk.slot->body_disk_asked, 0);
    pthread_mutex_unlock(&disk.lock);
    return taken;
}

bool heddle_body_disk_has_room(const heddle_body_disk_count *body, uint64_t bytes, uint64_t limit)
{
    pthread_mutex_lock(&disk.lock);
    heddle_scoreboard_bodies others = look_at_others();
    bool room = fits(limit, body, bytes - body->bytes, &others);
    pthread_mutex_unlock(&disk.lock);
    return room;
}

void heddle_body_disk_release(heddle_body_disk_count body)
{
    pthread_mutex_lock(&disk.lock);
    add_bytes(body.address, -body.bytes);
    pthread_mutex_unlock(&disk.lock);
}

uint64_t heddle_body_disk_used(void)
{
    pthread_mutex_lock(&disk.lock);
    uint64_t used = disk.used;
    pthread_mutex_unlock(&disk.lock);
    return used;
}

void heddle_body_disk_share(const heddle_scoreboard *scoreboard, uint32_t slot)
{
    pthread_mutex_lock(&disk.lock);
    disk.scoreboard = scoreboard;
    disk.slot = &scoreboard->slots[slot];
    add_bytes(0, 0);
    pthread_mutex_unlock(&disk.lock);
}

void heddle_body_disk_before_fork(void)
{
    pthread_mutex_lock(&disk.lock);
}

void heddle_body_disk_after_fork(bool child)
{
    if (child) {
        disk.used = 0;
        memset(by_address, 0, sizeof(by_address));
        disk.scoreboard = NULL;
        disk.slot = NULL;
    }
    pthread_mutex_unlock(&disk.lock);
}
