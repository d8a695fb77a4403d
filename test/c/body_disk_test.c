/* sources: http/body/disk.c net/scoreboard.c */
/* wrap: sched_yield */
#include "check.h"
#include "http/body/disk.h"

/* C tests have no extconf.rb that would find it. */
#ifdef __linux__
#define HAVE_MEMFD_CREATE 1
#endif
#include "net/shared_memory.c"

enum { LIMIT = 1000 };

static heddle_scoreboard scoreboard;

/* What another process does while this one waits for it, and how often this one has waited. */
static void (*other_process)(void);
static int waits;

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    waits++;
    if (other_process)
        other_process();
    return 0;
}

static heddle_scoreboard_slot *join_scoreboard_at(uint32_t slot)
{
    CHECK_EQUAL(0, heddle_scoreboard_create(&scoreboard, 3));
    for (uint32_t worker = 0; worker < 3; worker++)
        CHECK_EQUAL(worker, heddle_scoreboard_acquire(&scoreboard, 1, worker));
    heddle_body_disk_share(&scoreboard, slot);
    other_process = NULL;
    waits = 0;
    return scoreboard.slots;
}

static heddle_scoreboard_slot *join_scoreboard(void)
{
    return join_scoreboard_at(0);
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
    atomic_store(&slots[1].body_disk, 400);
    atomic_store(&slots[2].body_disk, 500);
    CHECK(has_room(100, LIMIT));
    CHECK(!has_room(101, LIMIT));
    CHECK(!take(101, LIMIT));
    CHECK_EQUAL(0, heddle_body_disk_used());
    CHECK(take(100, LIMIT));
    leave_scoreboard();
}

static void scoreboard_shows_the_bytes_of_this_process(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard();
    CHECK(take(300, LIMIT));
    CHECK_EQUAL(300, heddle_scoreboard_body_disk(&scoreboard, &slots[1]).held);
    CHECK(!take(LIMIT, LIMIT));
    CHECK_EQUAL(300, heddle_scoreboard_body_disk(&scoreboard, &slots[1]).held);
    release(100);
    CHECK_EQUAL(200, heddle_scoreboard_body_disk(&scoreboard, &slots[1]).held);
    leave_scoreboard();
}

static void bytes_of_an_ended_worker_do_not_count(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard();
    atomic_store(&slots[1].body_disk, LIMIT);
    CHECK(!take(1, LIMIT));
    heddle_scoreboard_release(&scoreboard, 1);
    CHECK(take(LIMIT, LIMIT));
    leave_scoreboard();
}

static void forged_numbers_on_the_scoreboard_cause_no_overflow(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard();
    atomic_store(&slots[1].body_disk, UINT64_MAX);
    atomic_store(&slots[2].body_disk, 2);
    atomic_store(&slots[2].body_disk_asked, UINT64_MAX);
    CHECK(!take(1, LIMIT));
    CHECK(!take(UINT64_MAX, UINT64_MAX - 1));
    leave_scoreboard();
}

static void withdraw_the_later(void)
{
    CHECK_EQUAL(600, atomic_load(&scoreboard.slots[0].body_disk_asked));
    atomic_store(&scoreboard.slots[1].body_disk_asked, 0);
}

static void last_room_goes_to_the_earlier_slot_when_two_processes_ask(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard();
    atomic_store(&slots[1].body_disk_asked, 600);
    other_process = withdraw_the_later;
    CHECK(take(600, LIMIT));
    CHECK_EQUAL(600, atomic_load(&slots[0].body_disk));
    CHECK_EQUAL(0, atomic_load(&slots[0].body_disk_asked));
    leave_scoreboard();
}

static void withdraw_the_earlier(void)
{
    CHECK_EQUAL(0, atomic_load(&scoreboard.slots[1].body_disk_asked));
    if (waits == 3)
        atomic_store(&scoreboard.slots[0].body_disk_asked, 0);
}

static void later_slot_gets_the_room_when_the_earlier_one_withdraws(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard_at(1);
    atomic_store(&slots[0].body_disk_asked, 600);
    other_process = withdraw_the_earlier;
    CHECK(take(600, LIMIT));
    CHECK_EQUAL(3, waits);
    leave_scoreboard();
}

static void grant_the_earlier(void)
{
    atomic_store(&scoreboard.slots[0].body_disk, 600);
    atomic_store(&scoreboard.slots[0].body_disk_asked, 0);
}

static void later_slot_gets_no_room_when_the_earlier_one_takes_it(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard_at(1);
    atomic_store(&slots[0].body_disk_asked, 600);
    other_process = grant_the_earlier;
    CHECK(!take(600, LIMIT));
    CHECK_EQUAL(0, atomic_load(&slots[1].body_disk_asked));
    leave_scoreboard();
}

static void stopped_process_delays_the_others_only_briefly(void)
{
    for (uint32_t other = 0; other <= 2; other += 2) {
        heddle_scoreboard_slot *slots = join_scoreboard_at(1);
        atomic_store(&slots[other].body_disk_asked, 600);
        CHECK(!take(600, LIMIT));
        CHECK(waits > 0 && waits < 1000);
        CHECK_EQUAL(0, atomic_load(&slots[1].body_disk_asked));
        CHECK(take(400, LIMIT));
        leave_scoreboard();
    }
}

static void request_does_not_wait_when_there_is_room_for_all(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard_at(1);
    atomic_store(&slots[0].body_disk_asked, 300);
    atomic_store(&slots[2].body_disk_asked, 300);
    CHECK(take(400, LIMIT));
    CHECK_EQUAL(0, waits);
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
    atomic_store(&slots[1].body_disk, LIMIT / 2);
    CHECK(grow(&one, 100));
    CHECK(!grow(&other, LIMIT / 2 / 3 - 99));
    CHECK(grow(&other, LIMIT / 2 / 3 - 100));
    CHECK(!grow(&one, 101));
    CHECK(grow(&without, LIMIT / 2 - LIMIT / 2 / 3));
    heddle_body_disk_release(without);
    heddle_scoreboard_release(&scoreboard, 2);
    CHECK(grow(&one, LIMIT / 2 / 2 - other.bytes));
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
    check_run("body disk", "last room goes to the earlier slot when two processes ask",
              last_room_goes_to_the_earlier_slot_when_two_processes_ask);
    check_run("body disk", "later slot gets the room when the earlier one withdraws",
              later_slot_gets_the_room_when_the_earlier_one_withdraws);
    check_run("body disk", "later slot gets no room when the earlier one takes it",
              later_slot_gets_no_room_when_the_earlier_one_takes_it);
    check_run("body disk", "stopped process delays the others only briefly",
              stopped_process_delays_the_others_only_briefly);
    check_run("body disk", "request does not wait when there is room for all",
              request_does_not_wait_when_there_is_room_for_all);
    check_run("body disk", "address may use half of the limit", address_may_use_half_of_the_limit);
    check_run("body disk", "only body of an address may use the whole limit",
              only_body_of_an_address_may_use_the_whole_limit);
    check_run("body disk", "address has a share in each process beyond half of the limit",
              address_has_a_share_in_each_process_beyond_half_of_the_limit);
    check_run("body disk", "forged numbers on the scoreboard cause no overflow",
              forged_numbers_on_the_scoreboard_cause_no_overflow);
    return check_end();
}
