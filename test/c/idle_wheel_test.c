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

static void an_empty_wheel_waits_for_nothing(void)
{
    start();
    CHECK_EQUAL(-1, heddle_idle_wheel_find_next(&wheel));
    advance(START + 5000 * TICK);
    CHECK_EQUAL(0, wheel.count);
}

static void a_deadline_is_met_and_not_early(void)
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

static void many_deadlines_in_any_order(void)
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

static void one_taken_out_is_never_called(void)
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

static void one_that_moved_on_is_asked_again(void)
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

static void a_new_deadline_in_the_past_comes_with_the_next_look(void)
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

static void a_long_time_without_a_look_misses_nobody(void)
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

static void a_callback_may_change_the_wheel(void)
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

static void too_many_for_one_call_wait_for_the_next(void)
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
    check_run("wheel", "an empty one waits for nothing", an_empty_wheel_waits_for_nothing);
    check_run("wheel", "a deadline is met and not early", a_deadline_is_met_and_not_early);
    check_run("wheel", "many deadlines in any order", many_deadlines_in_any_order);
    check_run("wheel", "one taken out is never called", one_taken_out_is_never_called);
    check_run("wheel", "one that moved on is asked again", one_that_moved_on_is_asked_again);
    check_run("wheel", "a past deadline comes with the next look", a_new_deadline_in_the_past_comes_with_the_next_look);
    check_run("wheel", "a long time without a look misses nobody", a_long_time_without_a_look_misses_nobody);
    check_run("wheel", "a callback may change the wheel", a_callback_may_change_the_wheel);
    check_run("wheel", "too many for one call wait for the next", too_many_for_one_call_wait_for_the_next);
    return check_end();
}
