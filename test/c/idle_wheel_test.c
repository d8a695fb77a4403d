/* sources: net/idle_wheel.c */
#include "check.h"
#include "net/idle_wheel.h"

#include <limits.h>

/* Deadlines are met, never early, at most a tick late when they are looked at; what moved on is asked again. */

enum { RECORDS = 5000 };

#define TICK HEDDLE_IDLE_WHEEL_TICK
#define START (INT64_C(1000) * TICK + 17)

typedef struct {
    heddle_idle_entry entry;
    int64_t deadline;
    int64_t called_at;
    int calls;
} record;

static heddle_idle_wheel wheel;
static int64_t now;
static int64_t answer; /* what the callback says: a new deadline, or -1 */

static int64_t note(heddle_idle_entry *entry, void *data)
{
    record *self = (record *)entry;
    CHECK(!heddle_idle_wheel_has(entry));
    CHECK_EQUAL(0, *(int *)data);
    self->calls++;
    self->called_at = now;
    return answer;
}

static void start(void)
{
    now = START;
    answer = -1;
    heddle_idle_wheel_start(&wheel, now);
}

static void advance(int64_t to)
{
    int data = 0;
    now = to;
    heddle_idle_wheel_advance(&wheel, now, UINT_MAX, note, &data);
}

static void empty_wheel_has_no_next_deadline(void)
{
    start();
    CHECK_EQUAL(-1, heddle_idle_wheel_find_next(&wheel));
    advance(START + 5000 * TICK);
    CHECK_EQUAL(0, wheel.count);
}

static void deadline_expires_in_time_and_not_early(void)
{
    const int64_t distances[] = {0, 1, TICK - 1, TICK, 10 * TICK + 3, 1023 * TICK, 1024 * TICK, 1025 * TICK,
                                 5000 * TICK + 1};
    for (size_t i = 0; i < sizeof(distances) / sizeof(distances[0]); i++) {
        start();
        record one = {.deadline = START + distances[i]};
        heddle_idle_wheel_add(&wheel, &one.entry, one.deadline);
        int turns = 0;
        while (one.calls == 0) {
            int64_t next = heddle_idle_wheel_find_next(&wheel);
            CHECK(next > now - TICK);
            CHECK(next <= one.deadline + TICK);
            advance(next > now ? next : now + 1);
            CHECK(++turns < 10);
        }
        CHECK(one.called_at >= one.deadline);
        CHECK(one.called_at <= one.deadline + TICK);
        CHECK_EQUAL(-1, heddle_idle_wheel_find_next(&wheel));
    }
}

static void many_deadlines_expire_in_any_order(void)
{
    static record records[RECORDS];
    unsigned seed = 7;
    start();
    for (int i = 0; i < RECORDS; i++) {
        seed = seed * 1103515245 + 12345;
        records[i].deadline = START + (int64_t)(seed % 300000) * 1000000;
        heddle_idle_wheel_add(&wheel, &records[i].entry, records[i].deadline);
    }
    CHECK_EQUAL(RECORDS, wheel.count);
    while (wheel.count)
        advance(heddle_idle_wheel_find_next(&wheel));
    for (int i = 0; i < RECORDS; i++) {
        CHECK_EQUAL(1, records[i].calls);
        CHECK(records[i].called_at >= records[i].deadline);
        CHECK(records[i].called_at <= records[i].deadline + TICK);
    }
}

static void removed_entry_is_never_called(void)
{
    start();
    record first = {0}, second = {0}, third = {0};
    heddle_idle_wheel_add(&wheel, &first.entry, START + TICK);
    heddle_idle_wheel_add(&wheel, &second.entry, START + TICK);
    heddle_idle_wheel_add(&wheel, &third.entry, START + TICK);
    heddle_idle_wheel_remove(&wheel, &second.entry);
    heddle_idle_wheel_remove(&wheel, &second.entry);
    CHECK(!heddle_idle_wheel_has(&second.entry));
    advance(START + 3 * TICK);
    CHECK_EQUAL(1, first.calls);
    CHECK_EQUAL(0, second.calls);
    CHECK_EQUAL(1, third.calls);
}

static void entry_with_a_later_deadline_is_called_again(void)
{
    start();
    record one = {0};
    heddle_idle_wheel_add(&wheel, &one.entry, START + 10 * TICK);
    answer = START + 2000 * TICK;
    advance(START + 12 * TICK);
    CHECK_EQUAL(1, one.calls);
    CHECK(heddle_idle_wheel_has(&one.entry));
    answer = -1;
    advance(START + 1999 * TICK);
    CHECK_EQUAL(1, one.calls);
    advance(START + 2001 * TICK);
    CHECK_EQUAL(2, one.calls);
    CHECK(!heddle_idle_wheel_has(&one.entry));
}

static void new_deadline_in_the_past_expires_at_the_next_advance(void)
{
    start();
    record one = {0};
    heddle_idle_wheel_add(&wheel, &one.entry, START);
    answer = START; /* as if nothing had happened: asked again, but not for ever */
    advance(START + TICK);
    CHECK_EQUAL(1, one.calls);
    advance(START + 2 * TICK);
    CHECK_EQUAL(2, one.calls);
    heddle_idle_wheel_remove(&wheel, &one.entry);
}

static void no_entry_is_missed_after_a_long_pause(void)
{
    static record records[100];
    start();
    for (int i = 0; i < 100; i++)
        heddle_idle_wheel_add(&wheel, &records[i].entry, START + i * 50 * TICK);
    advance(START + 100000 * TICK);
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(1, records[i].calls);
    record late = {0};
    heddle_idle_wheel_add(&wheel, &late.entry, now + TICK);
    advance(now + 3 * TICK);
    CHECK_EQUAL(1, late.calls);
}

static record bystander;

static int64_t meddle(heddle_idle_entry *entry, void *data)
{
    record *self = (record *)entry;
    self->calls++;
    if (self != &bystander)
        heddle_idle_wheel_remove(&wheel, &bystander.entry);
    record *added = data;
    if (!heddle_idle_wheel_has(&added->entry))
        heddle_idle_wheel_add(&wheel, &added->entry, now + 5 * TICK);
    return -1;
}

static void callback_may_add_and_remove_entries(void)
{
    start();
    bystander = (record){0};
    record one = {0}, added = {0};
    /* Of one slot the last one put in is not promised to come first: whoever does takes the other out, or nobody. */
    heddle_idle_wheel_add(&wheel, &one.entry, START + TICK);
    heddle_idle_wheel_add(&wheel, &bystander.entry, START + TICK);
    now = START + 3 * TICK;
    heddle_idle_wheel_advance(&wheel, now, UINT_MAX, meddle, &added);
    CHECK_EQUAL(1, one.calls);
    CHECK(!heddle_idle_wheel_has(&bystander.entry));
    CHECK(heddle_idle_wheel_has(&added.entry));
    CHECK_EQUAL(1, wheel.count);
}

static void entries_beyond_the_limit_of_a_call_expire_in_the_next(void)
{
    static record records[1000];
    int data = 0, calls = 0;
    start();
    for (int i = 0; i < 1000; i++)
        heddle_idle_wheel_add(&wheel, &records[i].entry, START + (i % 2 + 1) * TICK);
    now = START + 4 * TICK;
    for (int sum = 256; sum < 1000; sum += 256) {
        heddle_idle_wheel_advance(&wheel, now, 256, note, &data);
        CHECK_EQUAL(1000 - sum, wheel.count);
        CHECK_EQUAL(0, heddle_idle_wheel_find_next(&wheel));
    }
    record *waits = records;
    while (waits->calls)
        waits++;
    CHECK(heddle_idle_wheel_has(&waits->entry));
    heddle_idle_wheel_remove(&wheel, &waits->entry);
    heddle_idle_wheel_advance(&wheel, now, 256, note, &data);
    for (int i = 0; i < 1000; i++)
        calls += records[i].calls;
    CHECK_EQUAL(999, calls);
    CHECK_EQUAL(-1, heddle_idle_wheel_find_next(&wheel));
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("wheel", "empty wheel has no next deadline", empty_wheel_has_no_next_deadline);
    check_run("wheel", "deadline expires in time and not early", deadline_expires_in_time_and_not_early);
    check_run("wheel", "many deadlines expire in any order", many_deadlines_expire_in_any_order);
    check_run("wheel", "removed entry is never called", removed_entry_is_never_called);
    check_run("wheel", "entry with a later deadline is called again", entry_with_a_later_deadline_is_called_again);
    check_run("wheel", "new deadline in the past expires at the next advance",
              new_deadline_in_the_past_expires_at_the_next_advance);
    check_run("wheel", "no entry is missed after a long pause", no_entry_is_missed_after_a_long_pause);
    check_run("wheel", "callback may add and remove entries", callback_may_add_and_remove_entries);
    check_run("wheel", "entries beyond the limit of a call expire in the next",
              entries_beyond_the_limit_of_a_call_expire_in_the_next);
    return check_end();
}
