/* sources: net/scoreboard.c */
#include "check.h"
#include "net/scoreboard.h"

/* C tests have no extconf.rb that would find it. */
#ifdef __linux__
#define HAVE_MEMFD_CREATE 1
#endif
#include "net/shared_memory.c"

/* Every worker can write the whole mapping: no process reads beyond it, whatever its header says. */

enum { SLOTS = 2 };

/* Far beyond the mapping. */
enum { FORGED = 1000000 };

static heddle_scoreboard scoreboard;

static void open_scoreboard(void)
{
    CHECK_EQUAL(0, heddle_scoreboard_create(&scoreboard, SLOTS));
    CHECK_EQUAL(0, heddle_scoreboard_acquire(&scoreboard, 1, 0));
}

static void a_forged_count_of_used_slots_is_clamped(void)
{
    open_scoreboard();
    atomic_store(&scoreboard.header->used, FORGED);
    CHECK(!heddle_scoreboard_other_accepts(&scoreboard, &scoreboard.slots[0], 1));
    CHECK(!heddle_scoreboard_has_less_loaded(&scoreboard, &scoreboard.slots[0], 1));
    heddle_scoreboard_close(&scoreboard);
}

static void forged_count_of_slots_assigns_no_slot_beyond_the_mapping(void)
{
    open_scoreboard();
    scoreboard.header->slot_count = FORGED;
    CHECK_EQUAL(1, heddle_scoreboard_acquire(&scoreboard, 1, 1));
    CHECK_EQUAL(-1, heddle_scoreboard_acquire(&scoreboard, 1, 2));
    heddle_scoreboard_close(&scoreboard);
}

static void header_that_claims_more_than_the_mapping_is_rejected(void)
{
    open_scoreboard();
    scoreboard.header->slot_count = FORGED;
    heddle_scoreboard other;
    CHECK_EQUAL(-EPROTO, heddle_scoreboard_open(&other, MUST(dup(scoreboard.memory.fd)), -1));
    heddle_scoreboard_close(&scoreboard);
}

/* Whoever maps it would be ended by SIGBUS. */
static void memory_cannot_be_shrunk(void)
{
    open_scoreboard();
    CHECK_EQUAL(-1, ftruncate(scoreboard.memory.fd, 0));
    CHECK_EQUAL(EPERM, errno);
    CHECK_EQUAL(1, scoreboard.slots[0].generation);
    heddle_scoreboard_close(&scoreboard);
}

/* Two workers that accept, and the first one's loop is awake. */
static heddle_scoreboard_slot *open_two(void)
{
    open_scoreboard();
    CHECK_EQUAL(1, heddle_scoreboard_acquire(&scoreboard, 1, 1));
    scoreboard.slots[0].accepting = scoreboard.slots[1].accepting = 1;
    scoreboard.slots[0].tick_began = 1;
    return &scoreboard.slots[1];
}

static bool has_sleeper(void)
{
    return heddle_scoreboard_has_sleeper(&scoreboard, &scoreboard.slots[0]);
}

static void worker_counts_as_sleeping_if_it_accepts_has_room_and_is_between_ticks(void)
{
    heddle_scoreboard_slot *other = open_two();
    CHECK(has_sleeper());
    CHECK(!heddle_scoreboard_has_sleeper(&scoreboard, other));
    other->accepting = 0;
    CHECK(!has_sleeper());
    other->accepting = other->stuck = 1;
    CHECK(!has_sleeper());
    other->stuck = 0;
    other->limit = other->in_flight = 2;
    CHECK(!has_sleeper());
    other->limit = 3;
    CHECK(has_sleeper());
    other->tick_began = 1;
    CHECK(!has_sleeper());
    heddle_scoreboard_close(&scoreboard);
}

static void queue_counts_as_shorter_from_two_requests_on(void)
{
    heddle_scoreboard_slot *other = open_two(), *mine = &scoreboard.slots[0];
    other->tick_began = 1;
    mine->in_flight = 1;
    CHECK(!heddle_scoreboard_has_shorter_queue(&scoreboard, mine));
    mine->in_flight = 2;
    CHECK(heddle_scoreboard_has_shorter_queue(&scoreboard, mine));
    CHECK(!heddle_scoreboard_has_shorter_queue(&scoreboard, other));
    other->in_flight = 16;
    mine->in_flight = 19;
    CHECK(!heddle_scoreboard_has_shorter_queue(&scoreboard, mine));
    mine->in_flight = 20;
    CHECK(heddle_scoreboard_has_shorter_queue(&scoreboard, mine));
    other->stuck = 1;
    CHECK(!heddle_scoreboard_has_shorter_queue(&scoreboard, mine));
    heddle_scoreboard_close(&scoreboard);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("scoreboard", "a forged count of used slots is clamped", a_forged_count_of_used_slots_is_clamped);
    check_run("scoreboard", "forged count of slots assigns no slot beyond the mapping",
              forged_count_of_slots_assigns_no_slot_beyond_the_mapping);
    check_run("scoreboard", "header that claims more than the mapping is rejected",
              header_that_claims_more_than_the_mapping_is_rejected);
    check_run("scoreboard", "memory cannot be shrunk", memory_cannot_be_shrunk);
    check_run("scoreboard", "worker counts as sleeping if it accepts has room and is between ticks",
              worker_counts_as_sleeping_if_it_accepts_has_room_and_is_between_ticks);
    check_run("scoreboard", "queue counts as shorter from two requests on",
              queue_counts_as_shorter_from_two_requests_on);
    return check_end();
}
