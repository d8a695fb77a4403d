/* sources: http/body_disk.c net/scoreboard.c */
#include "check.h"
#include "http/body_disk.h"

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

static void leave_scoreboard(void)
{
    heddle_body_disk_before_fork();
    heddle_body_disk_after_fork(true); /* what a child does: no slot, no bytes */
    heddle_scoreboard_close(&scoreboard);
}

static void a_process_alone_has_the_whole_limit(void)
{
    CHECK(heddle_body_disk_take(LIMIT, LIMIT));
    CHECK(!heddle_body_disk_take(1, LIMIT));
    CHECK(!heddle_body_disk_has_room(1, LIMIT));
    heddle_body_disk_release(LIMIT);
    CHECK(heddle_body_disk_has_room(LIMIT, LIMIT));
    CHECK_EQUAL(0, heddle_body_disk_used());
}

static void the_bytes_of_the_others_count(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard();
    atomic_store(&slots[1].body_disk, 400);
    atomic_store(&slots[2].body_disk, 500);
    CHECK(heddle_body_disk_has_room(100, LIMIT));
    CHECK(!heddle_body_disk_has_room(101, LIMIT));
    CHECK(!heddle_body_disk_take(101, LIMIT));
    CHECK_EQUAL(0, heddle_body_disk_used());
    CHECK(heddle_body_disk_take(100, LIMIT));
    leave_scoreboard();
}

static void the_others_see_what_this_process_has(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard();
    CHECK(heddle_body_disk_take(300, LIMIT));
    CHECK_EQUAL(300, heddle_scoreboard_body_disk(&scoreboard, &slots[1]));
    CHECK(!heddle_body_disk_take(LIMIT, LIMIT));
    CHECK_EQUAL(300, heddle_scoreboard_body_disk(&scoreboard, &slots[1]));
    heddle_body_disk_release(100);
    CHECK_EQUAL(200, heddle_scoreboard_body_disk(&scoreboard, &slots[1]));
    leave_scoreboard();
}

static void what_a_worker_had_counts_no_more_when_it_is_gone(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard();
    atomic_store(&slots[1].body_disk, LIMIT);
    CHECK(!heddle_body_disk_take(1, LIMIT));
    heddle_scoreboard_release(&scoreboard, 1);
    CHECK(heddle_body_disk_take(LIMIT, LIMIT));
    leave_scoreboard();
}

static void forged_numbers_do_not_overflow(void)
{
    heddle_scoreboard_slot *slots = join_scoreboard();
    atomic_store(&slots[1].body_disk, UINT64_MAX);
    atomic_store(&slots[2].body_disk, 2);
    CHECK(!heddle_body_disk_take(1, LIMIT));
    CHECK(!heddle_body_disk_take(UINT64_MAX, UINT64_MAX - 1));
    leave_scoreboard();
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("body disk", "a process alone has the whole limit", a_process_alone_has_the_whole_limit);
    check_run("body disk", "the bytes of the others count", the_bytes_of_the_others_count);
    check_run("body disk", "the others see what this process has", the_others_see_what_this_process_has);
    check_run("body disk", "what a worker had counts no more when it is gone",
              what_a_worker_had_counts_no_more_when_it_is_gone);
    check_run("body disk", "forged numbers do not overflow", forged_numbers_do_not_overflow);
    return check_end();
}
