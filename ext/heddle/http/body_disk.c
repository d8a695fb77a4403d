#include "http/body_disk.h"

#include <pthread.h>

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

/* Checked after adding: of two processes that take room at the same time, at least one sees the other's bytes. */
static bool fits_limit(uint64_t limit)
{
    uint64_t others = disk.slot ? heddle_scoreboard_body_disk(disk.scoreboard, disk.slot) : 0;
    return disk.used <= limit && others <= limit - disk.used;
}

bool heddle_body_disk_take(uint64_t bytes, uint64_t limit)
{
    bool taken = false;
    pthread_mutex_lock(&disk.lock);
    if (bytes <= UINT64_MAX - disk.used) {
        disk.used += bytes;
        show_on_scoreboard();
        taken = fits_limit(limit);
        if (!taken) {
            disk.used -= bytes;
            show_on_scoreboard();
        }
    }
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

bool heddle_body_disk_has_room(uint64_t bytes, uint64_t limit)
{
    pthread_mutex_lock(&disk.lock);
    bool room = bytes <= limit && fits_limit(limit - bytes);
    pthread_mutex_unlock(&disk.lock);
    return room;
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
