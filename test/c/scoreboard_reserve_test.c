/* sources: net/scoreboard.c net/shared_memory.c */
#include "check.h"
#include "net/scoreboard.h"

/* When a reserve is to step in, and which requests hold up some worker. */

enum { SLOTS = 6 };

static const int64_t DELAY = 100;
static heddle_scoreboard scoreboard;

static heddle_scoreboard_slot *add(uint32_t index, uint32_t rank)
{
    heddle_scoreboard_slot *slot = &scoreboard.slots[heddle_scoreboard_acquire(&scoreboard, 1, index)];
    HEDDLE_SCOREBOARD_SET(slot->open, 1);
    HEDDLE_SCOREBOARD_SET(slot->reserve, rank);
    return slot;
}

static void stick(heddle_scoreboard_slot *slot, int64_t since, uint32_t label)
{
    HEDDLE_SCOREBOARD_SET(slot->stuck, since > 0);
    HEDDLE_SCOREBOARD_SET(slot->stuck_since, since);
    HEDDLE_SCOREBOARD_SET(slot->label, label);
}

static int64_t due(const heddle_scoreboard_slot *reserve)
{
    return heddle_scoreboard_reserve_due(&scoreboard, reserve, DELAY);
}

static void reserve_serves_when_all_workers_have_been_stuck_for_long_enough(void)
{
    CHECK_EQUAL(0, heddle_scoreboard_create(&scoreboard, SLOTS));
    heddle_scoreboard_slot *one = add(0, 0), *two = add(1, 0), *reserve = add(2, 1);
    CHECK_EQUAL(INT64_MAX, due(reserve));
    stick(one, 5000, 7);
    CHECK_EQUAL(INT64_MAX, due(reserve));
    stick(two, 4000, 7);
    CHECK_EQUAL(5000 + DELAY, due(reserve));
    stick(two, 0, 0);
    CHECK_EQUAL(INT64_MAX, due(reserve));
    heddle_scoreboard_close(&scoreboard);
}

static void draining_and_ended_workers_do_not_keep_a_reserve_from_serving(void)
{
    CHECK_EQUAL(0, heddle_scoreboard_create(&scoreboard, SLOTS));
    heddle_scoreboard_slot *one = add(0, 0), *two = add(1, 0), *reserve = add(2, 1);
    stick(one, 5000, 7);
    HEDDLE_SCOREBOARD_SET(two->open, 0);
    CHECK_EQUAL(5000 + DELAY, due(reserve));
    HEDDLE_SCOREBOARD_SET(two->open, 1);
    heddle_scoreboard_release(&scoreboard, 1);
    CHECK_EQUAL(5000 + DELAY, due(reserve));
    heddle_scoreboard_release(&scoreboard, 0);
    CHECK_EQUAL(INT64_MAX, due(reserve)); /* nobody is there: the master starts others */
    heddle_scoreboard_close(&scoreboard);
}

static void second_reserve_serves_only_when_the_first_one_is_stuck(void)
{
    CHECK_EQUAL(0, heddle_scoreboard_create(&scoreboard, SLOTS));
    heddle_scoreboard_slot *one = add(0, 0), *first = add(1, 1), *second = add(2, 2);
    stick(one, 5000, 7);
    CHECK_EQUAL(5000 + DELAY, due(first));
    CHECK_EQUAL(INT64_MAX, due(second));
    stick(first, 6000, 8);
    CHECK_EQUAL(6000 + DELAY, due(second));
    CHECK_EQUAL(5000 + DELAY, due(first));
    heddle_scoreboard_close(&scoreboard);
}

static void only_labels_of_workers_that_are_stuck_now_count(void)
{
    CHECK_EQUAL(0, heddle_scoreboard_create(&scoreboard, SLOTS));
    heddle_scoreboard_slot *one = add(0, 0);
    stick(one, 5000, 7);
    CHECK(heddle_scoreboard_label_blocks(&scoreboard, 7));
    CHECK(!heddle_scoreboard_label_blocks(&scoreboard, 8));
    CHECK(!heddle_scoreboard_label_blocks(&scoreboard, 0));
    stick(one, 0, 7);
    CHECK(!heddle_scoreboard_label_blocks(&scoreboard, 7));
    stick(one, 5000, 0); /* what holds it up is no request */
    CHECK(!heddle_scoreboard_label_blocks(&scoreboard, 0));
    heddle_scoreboard_close(&scoreboard);
}

#define RUN(test) check_run("scoreboard for reserves", #test, test)

int main(int count, char **arguments)
{
    check_filter = count > 1 ? arguments[1] : NULL;
    RUN(reserve_serves_when_all_workers_have_been_stuck_for_long_enough);
    RUN(draining_and_ended_workers_do_not_keep_a_reserve_from_serving);
    RUN(second_reserve_serves_only_when_the_first_one_is_stuck);
    RUN(only_labels_of_workers_that_are_stuck_now_count);
    return check_end();
}
