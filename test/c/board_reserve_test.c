/* sources: net/board.c net/shared_memory.c */
#include "check.h"
#include "net/board.h"

/* When a reserve is to step in, and which requests hold up some worker. */

enum { SLOTS = 6 };

static const int64_t PATIENCE = 100;
static heddle_board board;

static heddle_board_slot *add(uint32_t index, uint32_t rank)
{
    heddle_board_slot *slot = &board.slots[heddle_board_take(&board, 1, index)];
    HEDDLE_BOARD_SET(slot->open, 1);
    HEDDLE_BOARD_SET(slot->reserve, rank);
    return slot;
}

static void stick(heddle_board_slot *slot, int64_t since, uint32_t label)
{
    HEDDLE_BOARD_SET(slot->stuck, since > 0);
    HEDDLE_BOARD_SET(slot->stuck_since, since);
    HEDDLE_BOARD_SET(slot->label, label);
}

static int64_t due(const heddle_board_slot *reserve)
{
    return heddle_board_reserve_due(&board, reserve, PATIENCE);
}

static void a_reserve_steps_in_when_the_last_worker_has_been_held_up_for_long_enough(void)
{
    CHECK_EQUAL(0, heddle_board_create(&board, SLOTS));
    heddle_board_slot *one = add(0, 0), *two = add(1, 0), *reserve = add(2, 1);
    CHECK_EQUAL(INT64_MAX, due(reserve));
    stick(one, 5000, 7);
    CHECK_EQUAL(INT64_MAX, due(reserve));
    stick(two, 4000, 7);
    CHECK_EQUAL(5000 + PATIENCE, due(reserve));
    stick(two, 0, 0);
    CHECK_EQUAL(INT64_MAX, due(reserve));
    heddle_board_close(&board);
}

static void who_drains_or_is_gone_keeps_no_reserve_back(void)
{
    CHECK_EQUAL(0, heddle_board_create(&board, SLOTS));
    heddle_board_slot *one = add(0, 0), *two = add(1, 0), *reserve = add(2, 1);
    stick(one, 5000, 7);
    HEDDLE_BOARD_SET(two->open, 0);
    CHECK_EQUAL(5000 + PATIENCE, due(reserve));
    HEDDLE_BOARD_SET(two->open, 1);
    heddle_board_free(&board, 1);
    CHECK_EQUAL(5000 + PATIENCE, due(reserve));
    heddle_board_free(&board, 0);
    CHECK_EQUAL(INT64_MAX, due(reserve)); /* nobody is there: the master starts others */
    heddle_board_close(&board);
}

static void a_second_reserve_waits_for_the_first_one(void)
{
    CHECK_EQUAL(0, heddle_board_create(&board, SLOTS));
    heddle_board_slot *one = add(0, 0), *first = add(1, 1), *second = add(2, 2);
    stick(one, 5000, 7);
    CHECK_EQUAL(5000 + PATIENCE, due(first));
    CHECK_EQUAL(INT64_MAX, due(second));
    stick(first, 6000, 8);
    CHECK_EQUAL(6000 + PATIENCE, due(second));
    CHECK_EQUAL(5000 + PATIENCE, due(first));
    heddle_board_close(&board);
}

static void only_the_labels_of_those_that_are_held_up_now_count(void)
{
    CHECK_EQUAL(0, heddle_board_create(&board, SLOTS));
    heddle_board_slot *one = add(0, 0);
    stick(one, 5000, 7);
    CHECK(heddle_board_holds_up(&board, 7));
    CHECK(!heddle_board_holds_up(&board, 8));
    CHECK(!heddle_board_holds_up(&board, 0));
    stick(one, 0, 7);
    CHECK(!heddle_board_holds_up(&board, 7));
    stick(one, 5000, 0); /* what holds it up is no request */
    CHECK(!heddle_board_holds_up(&board, 0));
    heddle_board_close(&board);
}

#define RUN(test) check_run("board for reserves", #test, test)

int main(int count, char **arguments)
{
    check_filter = count > 1 ? arguments[1] : NULL;
    RUN(a_reserve_steps_in_when_the_last_worker_has_been_held_up_for_long_enough);
    RUN(who_drains_or_is_gone_keeps_no_reserve_back);
    RUN(a_second_reserve_waits_for_the_first_one);
    RUN(only_the_labels_of_those_that_are_held_up_now_count);
    return check_end();
}
