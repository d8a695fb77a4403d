/* sources: http/body/disk.c net/scoreboard.c */
#include "check.h"
#include "http/body/disk.h"

/* C tests have no extconf.rb that would find it. */
#ifdef __linux__
#define HAVE_MEMFD_CREATE 1
#endif
#include "net/shared_memory.c"

enum { LIMIT = 1000 };

static heddle_scoreboard scoreboard;

static heddle_scoreboard_slot *join_scoreboard(void)
{
    CHECK_EQUAL(0, heddle_scoreboard_create(&scoreboard, 3));
    for (uint32_t worker = 0; worker < 3; worker++)
        CHECK_EQUAL(worker, heddle_scoreboard_acquire(&scoreboard, 1, worker));
    heddle_body_disk_share(&scoreboard, 0);
    return scoreboard.slots;
}

/* What another worker does. */
static void take_in_slot(heddle_scoreboard_slot *slot, uint64_t bytes)
{
    atomic_fetch_add(&scoreboard.header->body_disk, bytes);
    atomic_fetch_add(&slot->body_disk, bytes);
}

static void leave_scoreboard(void)
{
    heddle_body_disk_before_fork();
    heddle_body_disk_after_fork(true); /* what a child does: no slot, no bytes */
    heddle_scoreboard_close(&scoreboard);
}

static bool take(uint64_t bytes, uint64_t limit)
{
    return heddle_body_disk_take(&(heddle_body_disk_count){0}, bytes, limit);
}

static void release(uint64_t bytes)
{
    heddle_body_disk_release((heddle_body_disk_count){.bytes = bytes});
}

/* Says the same as taking it would. */
static bool has_room(uint64_t bytes, uint64_t limit)
{
    bool taken = take(bytes, limit);
    if (taken)
        release(bytes);
    CHECK_EQUAL(taken, heddle_body_disk_has_room(&(heddle_body_disk_count){0}, bytes, limit));
    return taken;
}

static void single_process_may_use_the_whole_limit(void)
{
    CHECK(take(LIMIT, LIMIT));
    CHECK(!take(1, LIMIT));
    CHECK(!has_room(1, LIMIT));
    release(LIMIT);
    CHECK(has_room(LIMIT, LIMIT));
    CHECK_EQUAL(0, heddle_body_disk_used());
}

static void bytes_of_other_processes_count_against_the_limit(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard();
    take_in_slot(&slots[1], 400);
    take_in_slot(&slots[2], 500);
    CHECK(has_room(100, LIMIT));
    CHECK(!has_room(101, LIMIT));
    CHECK(!take(101, LIMIT));
    CHECK_EQUAL(0, heddle_body_disk_used());
    CHECK(take(100, LIMIT));
    leave_scoreboard();
}

static void scoreboard_shows_the_bytes_of_this_process(void)
{
    CHECK(take(100, LIMIT));
    heddle_scoreboard_slot *slots = join_scoreboard();
    heddle_body_disk_share(&scoreboard, 0); /* as each loop does */
    CHECK_EQUAL(100, scoreboard.header->body_disk);
    CHECK(take(300, LIMIT));
    CHECK_EQUAL(400, scoreboard.header->body_disk);
    CHECK_EQUAL(400, slots[0].body_disk);
    CHECK(!take(LIMIT, LIMIT));
    CHECK_EQUAL(400, scoreboard.header->body_disk);
    release(200);
    CHECK_EQUAL(200, scoreboard.header->body_disk);
    CHECK_EQUAL(200, slots[0].body_disk);
    leave_scoreboard();
}

static void bytes_of_an_ended_worker_do_not_count(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard();
    take_in_slot(&slots[1], LIMIT);
    CHECK(!take(1, LIMIT));
    heddle_scoreboard_release(&scoreboard, 1);
    CHECK(take(LIMIT, LIMIT));
    leave_scoreboard();
}

static void forged_numbers_on_the_scoreboard_cause_no_overflow(void)
{
    join_scoreboard();
    atomic_store(&scoreboard.header->body_disk, UINT64_MAX);
    CHECK(!take(1, LIMIT));
    CHECK(!take(UINT64_MAX, UINT64_MAX - 1));
    leave_scoreboard();
}

static bool grow(heddle_body_disk_count *body, uint64_t bytes)
{
    bool room = heddle_body_disk_has_room(body, bytes, LIMIT);
    CHECK_EQUAL(room, heddle_body_disk_take(body, bytes, LIMIT));
    return room;
}

static void address_may_use_half_of_the_limit(void)
{
    heddle_body_disk_count one = {.address = 7}, other = {.address = 7}, third = {.address = HEDDLE_ADDRESS_BUCKETS};
    CHECK(grow(&one, LIMIT / 2 - 100));
    CHECK(!grow(&other, 101));
    CHECK_EQUAL(0, other.bytes);
    CHECK(grow(&other, 100));
    CHECK(!grow(&one, LIMIT / 2));
    CHECK_EQUAL(LIMIT / 2 - 100, one.bytes);
    CHECK(grow(&third, 300));
    CHECK(grow(&third, LIMIT / 2));
    CHECK_EQUAL(LIMIT, heddle_body_disk_used());
    heddle_body_disk_release(third);
    heddle_body_disk_release(other);
    CHECK(grow(&one, LIMIT / 2));
    heddle_body_disk_release(one);
    CHECK_EQUAL(0, heddle_body_disk_used());
}

static void further_addresses_leave_as_much_as_they_have(void)
{
    heddle_body_disk_count first[3], bodies[3];
    for (uint16_t i = 0; i < 3; i++) {
        uint64_t share = LIMIT >> (i + 1);
        first[i] = bodies[i] = (heddle_body_disk_count){.address = i + 1};
        CHECK(grow(&first[i], 1));
        CHECK(!grow(&bodies[i], share));
        CHECK(grow(&bodies[i], share - 1));
    }
    for (int i = 0; i < 3; i++) {
        heddle_body_disk_release(first[i]);
        heddle_body_disk_release(bodies[i]);
    }
}

static void only_body_of_an_address_may_use_the_whole_limit(void)
{
    heddle_body_disk_count one = {.address = 7}, other = {.address = 7};
    CHECK(grow(&one, LIMIT / 2 + 1));
    CHECK(!grow(&other, 1));
    CHECK(grow(&one, LIMIT));
    heddle_body_disk_release(one);
    CHECK(grow(&other, LIMIT));
    heddle_body_disk_release(other);
}

static void address_has_a_share_in_each_process_beyond_half_of_the_limit(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard();
    heddle_body_disk_count one = {.address = 7}, other = {.address = 7}, without = {0};
    take_in_slot(&slots[1], LIMIT / 2);
    CHECK(grow(&one, 100));
    CHECK(!grow(&other, LIMIT / 8 - 99)); /* a third of what is left then */
    CHECK(grow(&other, LIMIT / 8 - 100));
    CHECK(!grow(&one, 101));
    CHECK(grow(&without, LIMIT / 2 - LIMIT / 8));
    heddle_body_disk_release(without);
    heddle_scoreboard_release(&scoreboard, 2);
    CHECK(grow(&one, LIMIT / 6 - other.bytes));
    CHECK(!grow(&one, one.bytes + 1));
    leave_scoreboard();
    one.bytes = 0;
    CHECK(grow(&one, LIMIT / 2 + 1)); /* a child counts from the beginning */
    heddle_body_disk_release(one);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("body disk", "single process may use the whole limit", single_process_may_use_the_whole_limit);
    check_run("body disk", "bytes of other processes count against the limit",
              bytes_of_other_processes_count_against_the_limit);
    check_run("body disk", "scoreboard shows the bytes of this process", scoreboard_shows_the_bytes_of_this_process);
    check_run("body disk", "bytes of an ended worker do not count", bytes_of_an_ended_worker_do_not_count);
    check_run("body disk", "address may use half of the limit", address_may_use_half_of_the_limit);
    check_run("body disk", "further addresses leave as much as they have",
              further_addresses_leave_as_much_as_they_have);
    check_run("body disk", "only body of an address may use the whole limit",
              only_body_of_an_address_may_use_the_whole_limit);
    check_run("body disk", "address has a share in each process beyond half of the limit",
              address_has_a_share_in_each_process_beyond_half_of_the_limit);
    check_run("body disk", "forged numbers on the scoreboard cause no overflow",
              forged_numbers_on_the_scoreboard_cause_no_overflow);
    return check_end();
}
