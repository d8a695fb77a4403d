#include "http/body/disk.h"

#include <sched.h>

/* How often a process checks whether others that ask for the same room have decided: one of them may be stopped. */
enum { MAX_POLLS = 200 };

/* The lock makes a change of `used` and of the slot's word one step. */
static struct {
    pthread_mutex_t lock;
    uint64_t used;
    const heddle_scoreboard *scoreboard;
    heddle_scoreboard_slot *slot; /* NULL: the server has only this process */
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void show_on_scoreboard(void)
{
    if (disk.slot)
        atomic_store(&disk.slot->body_disk, disk.used);
}

static bool fits_limit(uint64_t limit, uint64_t bytes, uint64_t others, uint64_t asked)
{
    return disk.used <= limit && bytes <= limit - disk.used && others <= limit - disk.used - bytes &&
           asked <= limit - disk.used - bytes - others;
}

/*
 * Asks on the scoreboard first, and reads it afterwards: of two processes that ask at the same time, at least one sees
 * the other. Where there is room for one of them only, the one with the later slot withdraws, and waits without asking;
 * the other waits for that. So they refuse each other only if one of them is stopped in between.
 */
static bool agree_with_others(uint64_t bytes, uint64_t limit)
{
    bool asks = false;
    for (int i = 0; i < MAX_POLLS; i++) {
        heddle_scoreboard_bodies others = heddle_scoreboard_body_disk(disk.scoreboard, disk.slot);
        if (!fits_limit(limit, bytes, others.held, 0))
            return false;
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

static bool take_alone(uint64_t bytes, uint64_t limit)
{
    if (!fits_limit(limit, bytes, 0, 0))
        return false;
    disk.used += bytes;
    return true;
}

static bool take_among_others(uint64_t bytes, uint64_t limit)
{
    bool agreed = agree_with_others(bytes, limit);
    if (agreed) {
        disk.used += bytes;
        show_on_scoreboard();
    }
    atomic_store(&disk.slot->body_disk_asked, 0);
    return agreed;
}

bool heddle_body_disk_take(uint64_t bytes, uint64_t limit)
{
    pthread_mutex_lock(&disk.lock);
    bool taken = disk.slot ? take_among_others(bytes, limit) : take_alone(bytes, limit);
    pthread_mutex_unlock(&disk.lock);
    return taken;
}

void heddle_body_disk_release(uint64_t bytes)
{
    pthread_mutex_lock(&disk.lock);
    disk.used -= bytes;
    show_on_scoreboard();
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
    show_on_scoreboard();
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
        disk.scoreboard = NULL;
        disk.slot = NULL;
    }
    pthread_mutex_unlock(&disk.lock);
}
