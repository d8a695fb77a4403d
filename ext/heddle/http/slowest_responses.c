#include "http/slowest_responses.h"

/* Sets `floor` and `until` from the list. */
static void set_floor(heddle_slowest *slowest)
{
    slowest->floor = HEDDLE_SLOWEST_LEAST;
    slowest->until = INT64_MAX;
    if (slowest->count < HEDDLE_SLOWEST)
        return;
    slowest->floor = INT64_MAX;
    for (unsigned i = 0; i < slowest->count; i++) {
        const heddle_slow *one = &slowest->list[i];
        if (one->taken < slowest->floor)
            slowest->floor = one->taken;
        if (one->at + HEDDLE_SLOWEST_KEPT < slowest->until)
            slowest->until = one->at + HEDDLE_SLOWEST_KEPT;
    }
}

void heddle_slowest_expire(heddle_slowest *slowest, int64_t now)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < slowest->count; i++) {
        if (slowest->list[i].at + HEDDLE_SLOWEST_KEPT <= now)
            continue;
        if (kept != i)
            slowest->list[kept] = slowest->list[i];
        kept++;
    }
    slowest->count = kept;
    set_floor(slowest);
}

static heddle_slow *find_slot(heddle_slowest *slowest)
{
    if (slowest->count < HEDDLE_SLOWEST)
        return &slowest->list[slowest->count++];
    heddle_slow *least = slowest->list;
    for (unsigned i = 1; i < slowest->count; i++) {
        if (slowest->list[i].taken < least->taken)
            least = &slowest->list[i];
    }
    return least;
}

static void put_text(heddle_slow *one, const char *bytes, size_t size)
{
    size_t room = HEDDLE_SLOWEST_TEXT - one->size;
    size = size < room ? size : room;
    memcpy(one->text + one->size, bytes, size);
    one->size += (uint16_t)size;
}

void heddle_slowest_note(heddle_slowest *slowest, int64_t now, int64_t taken, int status, const char *method,
                         uint32_t method_size, const char *target, uint32_t target_size)
{
    if (now >= slowest->until)
        heddle_slowest_expire(slowest, now);
    if (taken <= slowest->floor)
        return;
    heddle_slow *one = find_slot(slowest);
    one->at = now;
    one->taken = taken;
    one->status = status;
    one->size = 0;
    put_text(one, method, method_size);
    put_text(one, " ", 1);
    put_text(one, target, target_size);
    set_floor(slowest);
}
