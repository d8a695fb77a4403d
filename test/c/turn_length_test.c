#include "check.h"

#include "net/turn_length.h"

static heddle_turn_length length;
static int64_t now;

static void note_turns(unsigned count, unsigned usable, int64_t apart)
{
    for (unsigned i = 0; i < count; i++)
        heddle_turn_length_note(&length, usable, now += apart);
}

/* A client that had one request at a time has left. */
static void begin(void)
{
    now = HEDDLE_TURN_WINDOW; /* as in a process that has run for a while */
    heddle_turn_length_init(&length);
    note_turns(1, 1, 0);
    heddle_turn_length_start_window(&length, now);
}

static void turns_are_long_before_such_a_client_comes(void)
{
    heddle_turn_length_init(&length);
    CHECK_EQUAL(HEDDLE_LONGEST_TURN, length.items);
    note_turns(1, 5, 0);
    CHECK_EQUAL(5, length.items);
    note_turns(1, 1, 0);
    CHECK_EQUAL(1, length.items);
}

static void a_turn_is_one_item_for_a_while_afterwards(void)
{
    begin();
    note_turns(HEDDLE_TURNS_WATCHED - 1, 100, HEDDLE_TURN_WINDOW);
    CHECK_EQUAL(1, length.items);
}

static void turns_grow_to_what_every_connection_can_use(void)
{
    begin();
    for (unsigned expected = 2; expected <= 8; expected *= 2) {
        note_turns(HEDDLE_TURNS_WATCHED, 10, HEDDLE_TURN_WINDOW);
        CHECK_EQUAL(expected, length.items);
    }
    note_turns(HEDDLE_TURNS_WATCHED, 10, HEDDLE_TURN_WINDOW);
    CHECK_EQUAL(10, length.items);
    note_turns(9 * HEDDLE_TURNS_WATCHED, 100, HEDDLE_TURN_WINDOW);
    CHECK_EQUAL(HEDDLE_LONGEST_TURN, length.items);
}

static void turns_that_follow_fast_are_watched_for_a_while(void)
{
    begin();
    note_turns(1000 * HEDDLE_TURNS_WATCHED, 10, 0);
    CHECK_EQUAL(1, length.items);
    note_turns(1, 10, HEDDLE_TURN_WINDOW);
    CHECK_EQUAL(2, length.items);
}

static void a_client_with_one_request_at_a_time_makes_turns_short_at_once(void)
{
    begin();
    note_turns(9 * HEDDLE_TURNS_WATCHED, 10, HEDDLE_TURN_WINDOW);
    note_turns(1, 1, 0);
    CHECK_EQUAL(1, length.items);
}

static void turns_stay_short_while_such_a_client_has_some(void)
{
    begin();
    for (unsigned round = 0; round < 10 * HEDDLE_TURNS_WATCHED; round++) {
        note_turns(HEDDLE_TURNS_WATCHED / 2, 10, HEDDLE_TURN_WINDOW);
        note_turns(1, 1, 0);
        CHECK_EQUAL(1, length.items);
    }
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("turns", "turns are long before a client with one request at a time comes",
              turns_are_long_before_such_a_client_comes);
    check_run("turns", "a turn is one item for a while afterwards", a_turn_is_one_item_for_a_while_afterwards);
    check_run("turns", "turns grow to what every connection can use", turns_grow_to_what_every_connection_can_use);
    check_run("turns", "turns that follow fast are watched for a while",
              turns_that_follow_fast_are_watched_for_a_while);
    check_run("turns", "a client with one request at a time makes turns short at once",
              a_client_with_one_request_at_a_time_makes_turns_short_at_once);
    check_run("turns", "turns stay short while such a client has some", turns_stay_short_while_such_a_client_has_some);
    return check_end();
}
