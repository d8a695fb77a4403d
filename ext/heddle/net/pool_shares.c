/* The shares of pools in the scoreboard's shared memory: see pool_shares.h. */

#include "net/pool_shares.h"

/* A share's owner is the number of the worker's slot + 1. 0 means that the share is free. */
static uint16_t owner_of(uint32_t slot)
{
    return (uint16_t)(slot + 1);
}

static heddle_shared_pool *pool_at(const heddle_scoreboard *scoreboard, uint32_t pool)
{
    char *pools = (char *)(scoreboard->slots + scoreboard->slot_count);
    return (heddle_shared_pool *)(pools + pool * heddle_shared_pool_size(scoreboard->slot_count));
}

/* Notifies all workers through the scoreboard's eventfd. */
static void announce_change(const heddle_scoreboard *scoreboard)
{
    atomic_fetch_add(&scoreboard->header->pool_changes, 1);
    heddle_scoreboard_notify(scoreboard);
}

int heddle_pool_open(const heddle_scoreboard *scoreboard, uint64_t key, uint32_t total)
{
    for (uint32_t i = 0; i < HEDDLE_SHARED_POOLS; i++) {
        heddle_shared_pool *pool = pool_at(scoreboard, i);
        uint64_t found = 0;
        if (!atomic_compare_exchange_strong(&pool->key, &found, key) && found != key)
            continue;
        atomic_store(&pool->total, total < HEDDLE_POOL_SHARES ? total : HEDDLE_POOL_SHARES);
        return (int)i;
    }
    return -1;
}

/* -- waiting workers ---------------------------------------------------------------------------------------------- */

/*
 * When a worker began to wait, and when it last reported that it waits, in ms. Both numbers wrap around, so only
 * differences are compared.
 */
typedef struct {
    uint32_t waiting_since, reported_at;
} waiting_word;

/*
 * The interval in ms at which a waiting worker notifies the other workers again, because they may have had no share to
 * return when it last notified them.
 */
enum { REPEAT = 50 };

static uint32_t to_milliseconds(int64_t now)
{
    return (uint32_t)(now / 1000000);
}

static int32_t measure_report_age(waiting_word word, int64_t now)
{
    return (int32_t)(to_milliseconds(now) - word.reported_at);
}

static waiting_word unpack_waiting(uint64_t packed)
{
    return (waiting_word){.waiting_since = (uint32_t)(packed >> 32), .reported_at = (uint32_t)packed};
}

static uint64_t pack_waiting(waiting_word word)
{
    /* never 0, which would mean that the worker does not wait */
    return (uint64_t)(word.waiting_since | 1) << 32 | word.reported_at;
}

static bool read_waiting(heddle_shared_pool *pool, uint32_t slot, int64_t now, waiting_word *word)
{
    uint64_t packed = atomic_load(&pool->waiting[slot]);
    *word = unpack_waiting(packed);
    return packed && measure_report_age(*word, now) <= (int32_t)to_milliseconds(HEDDLE_POOL_REPORT_TIMEOUT);
}

static bool has_other_waiter(const heddle_scoreboard *scoreboard, heddle_shared_pool *pool, uint32_t slot)
{
    for (uint32_t i = 0; i < scoreboard->slot_count; i++) {
        if (i != slot && atomic_load(&pool->waiting[i]))
            return true;
    }
    return false;
}

void heddle_pool_wait(const heddle_scoreboard *scoreboard, uint32_t number, uint32_t slot, int64_t now)
{
    heddle_shared_pool *pool = pool_at(scoreboard, number);
    uint64_t packed = atomic_load(&pool->waiting[slot]);
    waiting_word word = packed ? unpack_waiting(packed) : (waiting_word){.waiting_since = to_milliseconds(now)};
    if (packed && measure_report_age(word, now) < REPEAT)
        return;
    word.reported_at = to_milliseconds(now);
    atomic_store(&pool->waiting[slot], pack_waiting(word));
    announce_change(scoreboard);
}

void heddle_pool_end_wait(const heddle_scoreboard *scoreboard, uint32_t number, uint32_t slot)
{
    heddle_shared_pool *pool = pool_at(scoreboard, number);
    if (atomic_exchange(&pool->waiting[slot], 0) && has_other_waiter(scoreboard, pool, slot))
        announce_change(scoreboard); /* a worker further back in the queue may take a share now */
}

/* -- shares ------------------------------------------------------------------------------------------------------- */

static uint32_t count_owned(heddle_shared_pool *pool, uint16_t owner)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < HEDDLE_POOL_SHARES; i++)
        count += atomic_load_explicit(&pool->owners[i], memory_order_relaxed) == owner;
    return count;
}

uint32_t heddle_pool_taken(const heddle_scoreboard *scoreboard, uint32_t number)
{
    return HEDDLE_POOL_SHARES - count_owned(pool_at(scoreboard, number), 0);
}

static uint32_t count_free(heddle_shared_pool *pool)
{
    uint32_t taken = HEDDLE_POOL_SHARES - count_owned(pool, 0), total = atomic_load(&pool->total);
    return taken < total ? total - taken : 0;
}

int heddle_pool_least_waiting(const heddle_scoreboard *scoreboard, uint32_t number, uint32_t slot, int64_t now)
{
    heddle_shared_pool *pool = pool_at(scoreboard, number);
    int least = -1;
    waiting_word word;
    for (uint32_t i = 0; i < scoreboard->slot_count; i++) {
        if (i == slot || !read_waiting(pool, i, now, &word))
            continue;
        int owned = (int)count_owned(pool, owner_of(i));
        least = least < 0 || owned < least ? owned : least;
    }
    return least >= 0 && count_free(pool) > 0 ? -1 : least; /* if a share is free, the waiting worker can take it */
}

/*
 * Returns how many waiting workers get a share before this one: those with fewer shares, and those with as many shares
 * if they began to wait earlier. If this worker does not wait, all waiting workers with as many shares come before it.
 */
static uint32_t count_before(const heddle_scoreboard *scoreboard, heddle_shared_pool *pool, uint32_t slot, int64_t now)
{
    waiting_word mine, other;
    uint32_t before = 0;
    if (!has_other_waiter(scoreboard, pool, slot))
        return 0;
    uint32_t owned = count_owned(pool, owner_of(slot));
    bool waits = read_waiting(pool, slot, now, &mine);
    for (uint32_t i = 0; i < scoreboard->slot_count; i++) {
        if (i == slot || !read_waiting(pool, i, now, &other))
            continue;
        uint32_t theirs = count_owned(pool, owner_of(i));
        int32_t longer = waits ? (int32_t)(mine.waiting_since - other.waiting_since) : 1;
        before += theirs < owned || (theirs == owned && (longer > 0 || (longer == 0 && i < slot)));
    }
    return before;
}

bool heddle_pool_take(const heddle_scoreboard *scoreboard, uint32_t number, uint32_t slot, int64_t now)
{
    heddle_shared_pool *pool = pool_at(scoreboard, number);
    uint32_t total = atomic_load(&pool->total);
    if (count_free(pool) <= count_before(scoreboard, pool, slot, now))
        return false;
    for (uint32_t i = 0; i < total && i < HEDDLE_POOL_SHARES; i++) {
        uint16_t nobody = 0;
        if (atomic_compare_exchange_strong(&pool->owners[i], &nobody, owner_of(slot))) {
            /* if the worker needs one more share, its wait begins anew, so that longer waits come first */
            heddle_pool_end_wait(scoreboard, number, slot);
            return true;
        }
    }
    return false;
}

void heddle_pool_return(const heddle_scoreboard *scoreboard, uint32_t number, uint32_t slot)
{
    heddle_shared_pool *pool = pool_at(scoreboard, number);
    /* Searches from the end, so that shares above a lowered limit are given back first. */
    for (uint32_t i = HEDDLE_POOL_SHARES; i-- > 0;) {
        uint16_t mine = owner_of(slot);
        if (!atomic_compare_exchange_strong(&pool->owners[i], &mine, 0))
            continue;
        if (has_other_waiter(scoreboard, pool, slot))
            announce_change(scoreboard);
        return;
    }
}

void heddle_pool_release_slot(const heddle_scoreboard *scoreboard, uint32_t slot)
{
    for (uint32_t number = 0; number < HEDDLE_SHARED_POOLS; number++) {
        heddle_shared_pool *pool = pool_at(scoreboard, number);
        if (!atomic_load(&pool->key))
            continue;
        atomic_store(&pool->waiting[slot], 0);
        for (uint32_t i = 0; i < HEDDLE_POOL_SHARES; i++) {
            uint16_t owner = owner_of(slot);
            atomic_compare_exchange_strong(&pool->owners[i], &owner, 0);
        }
    }
    /* Does not notify the workers: the caller frees the slot and then notifies them. */
    atomic_fetch_add(&scoreboard->header->pool_changes, 1);
}
