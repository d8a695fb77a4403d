#include "http/body/disk.h"

/* The lock guards `used`, `by_address` and the slot's `body_disk`, which change together. */
static struct {
    pthread_mutex_t lock;
    uint64_t used;         /* bytes of this process */
    _Atomic uint64_t *all; /* points to the bytes of all processes: in the scoreboard, or `alone` without one */
    _Atomic uint64_t alone;
    const heddle_scoreboard *scoreboard;
    heddle_scoreboard_slot *slot; /* NULL without a scoreboard */
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = &disk.alone};

/* Not a member of `disk`: a variable with an initializer takes its whole size in the library's file, zeros included. */
static uint64_t by_address[HEDDLE_ADDRESS_BUCKETS];

static void add_bytes(uint16_t address, uint64_t bytes)
{
    disk.used += bytes;
    if (address)
        by_address[address - 1] += bytes;
    if (disk.slot)
        atomic_store(&disk.slot->body_disk, disk.used);
}

/* May the address of this body's client use `bytes` more? `fits` has checked that `all` + `bytes` is within `limit`. */
static bool fits_address(uint64_t limit, const heddle_body_disk_count *body, uint64_t bytes, uint64_t all)
{
    if (!body->address || all + bytes <= limit / 2)
        return true;
    uint64_t held = by_address[body->address - 1];
    uint32_t others = disk.slot ? heddle_scoreboard_count_others(disk.scoreboard, disk.slot) : 0;
    return held == body->bytes || held + bytes <= (limit - all - bytes) / (others + 1);
}

static bool fits(uint64_t limit, const heddle_body_disk_count *body, uint64_t bytes, uint64_t all)
{
    return bytes <= limit && all <= limit - bytes && fits_address(limit, body, bytes, all);
}

bool heddle_body_disk_take(heddle_body_disk_count *body, uint64_t bytes, uint64_t limit)
{
    uint64_t more = bytes - body->bytes;
    pthread_mutex_lock(&disk.lock);
    uint64_t all = atomic_load(disk.all);
    bool taken;
    do {
        taken = fits(limit, body, more, all);
    } while (taken && !atomic_compare_exchange_weak(disk.all, &all, all + more));
    if (taken) {
        add_bytes(body->address, more);
        body->bytes = bytes;
    }
    pthread_mutex_unlock(&disk.lock);
    return taken;
}

bool heddle_body_disk_has_room(const heddle_body_disk_count *body, uint64_t bytes, uint64_t limit)
{
    pthread_mutex_lock(&disk.lock);
    bool room = fits(limit, body, bytes - body->bytes, atomic_load(disk.all));
    pthread_mutex_unlock(&disk.lock);
    return room;
}

void heddle_body_disk_release(heddle_body_disk_count body)
{
    pthread_mutex_lock(&disk.lock);
    add_bytes(body.address, -body.bytes);
    atomic_fetch_sub(disk.all, body.bytes);
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
    if (disk.all == &disk.alone) /* true only in the first call: each loop of the process calls this function */
        atomic_fetch_add(&scoreboard->header->body_disk, disk.used);
    disk.all = &scoreboard->header->body_disk;
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
        disk.used = disk.alone = 0;
        disk.all = &disk.alone;
        memset(by_address, 0, sizeof(by_address));
        disk.scoreboard = NULL;
        disk.slot = NULL;
    }
    pthread_mutex_unlock(&disk.lock);
}
