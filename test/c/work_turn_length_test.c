#include "check.h"

#include "net/work_turn_length.h"

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

static void turns_are_long_until_a_client_with_few_items_comes(void)
{
    heddle_turn_length_init(&length);
    CHECK_EQUAL(HEDDLE_LONGEST_TURN, length.items);
    note_turns(1, 5, 0);
    CHECK_EQUAL(5, length.items);
    note_turns(1, 1, 0);
    CHECK_EQUAL(1, length.items);
}

static void turn_stays_short_until_enough_turns_were_observed(void)
{
    begin();
    note_turns(HEDDLE_TURNS_WATCHED - 1, 100, HEDDLE_TURN_WINDOW);
    CHECK_EQUAL(1, length.items);
}

static void turns_grow_to_the_number_that_every_connection_has_ready(void)
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

static void turns_stay_short_until_they_were_observed_for_some_time(void)
{
    begin();
    note_turns(1000 * HEDDLE_TURNS_WATCHED, 10, 0);
    CHECK_EQUAL(1, length.items);
    note_turns(1, 10, HEDDLE_TURN_WINDOW);
    CHECK_EQUAL(2, length.items);
}

static void client_with_one_request_at_a_time_shortens_turns_at_once(void)
{
    begin();
    note_turns(9 * HEDDLE_TURNS_WATCHED, 10, HEDDLE_TURN_WINDOW);
    note_turns(1, 1, 0);
    CHECK_EQUAL(1, length.items);
}

static void turns_stay_short_while_a_client_sends_one_request_at_a_time(void)
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
    check_run("turns", "turns are long until a client with few items comes",
              turns_are_long_until_a_client_with_few_items_comes);
    check_run("turns", "turn stays short until enough turns were observed",
              turn_stays_short_until_enough_turns_were_observed);
    check_run("turns", "turns grow to the number that every connection has ready",
              turns_grow_to_the_number_that_every_connection_has_ready);
    check_run("turns", "turns stay short until they were observed for some time",
              turns_stay_short_until_they_were_observed_for_some_time);
    check_run("turns", "client with one request at a time shortens turns at once",
              client_with_one_request_at_a_time_shortens_turns_at_once);
    check_run("turns", "turns stay short while a client sends one request at a time",
              turns_stay_short_while_a_client_sends_one_request_at_a_time);
    return check_end();
}
