/* sources: scheduler/account.c */

#include "check.h"
#include "scheduler/account.h"

/* The time account of requests that one runner serves in a row. */

static heddle_account account;
static heddle_spender spender;

static void parts_of_a_request_add_up_to_the_time_since_its_first_byte(void)
{
    int64_t other, complete = heddle_clock_now();
    heddle_account_begin(&account, &spender, 1, false);
    heddle_account_arrived(&account, complete - 5, complete);
    int64_t began = spender.since, total = heddle_account_end(&account, began + 7, &other);
    CHECK_EQUAL(5, account.parts[HEDDLE_SPENT_RECEIVED]);
    CHECK_EQUAL(began - complete, account.parts[HEDDLE_SPENT_QUEUED]);
    CHECK_EQUAL(7, account.parts[HEDDLE_SPENT_RUNNING]);
    CHECK_EQUAL(began + 7 - (complete - 5), total);
    CHECK_EQUAL(0, other);
}

static void garbage_collections_are_subtracted_from_the_part_that_runs(void)
{
    int64_t other;
    heddle_account_begin(&account, &spender, 1, false);
    heddle_collected += 3;
    heddle_account_end(&account, spender.since + 10, &other);
    CHECK_EQUAL(7, account.parts[HEDDLE_SPENT_RUNNING]);
    CHECK_EQUAL(3, account.parts[HEDDLE_SPENT_GC]);
}

static void account_of_a_pipelined_request_begins_at_the_end_of_the_previous_one(void)
{
    int64_t other;
    heddle_account_begin(&account, &spender, 1, false);
    int64_t end = spender.since + 10;
    heddle_account_end(&account, end, &other);
    CHECK(!heddle_spender_counts(&spender));
    heddle_collected += 3; /* between both */
    heddle_account_begin(&account, &spender, 2, true);
    CHECK(heddle_spender_counts(&spender));
    CHECK_EQUAL(end, spender.since);
    heddle_account_arrived(&account, end - 4, end - 4);
    heddle_account_end(&account, end + 5, &other);
    CHECK_EQUAL(4, account.parts[HEDDLE_SPENT_QUEUED]);
    CHECK_EQUAL(2, account.parts[HEDDLE_SPENT_RUNNING]);
    CHECK_EQUAL(3, account.parts[HEDDLE_SPENT_GC]);
}

static void request_that_came_after_the_previous_one_has_no_queue_time(void)
{
    int64_t other;
    heddle_account_begin(&account, &spender, 1, false);
    int64_t end = spender.since + 10;
    heddle_account_end(&account, end, &other);
    heddle_account_begin(&account, &spender, 2, true);
    heddle_account_arrived(&account, end + 1, end + 2);
    CHECK_EQUAL(10, heddle_account_end(&account, end + 11, &other));
    CHECK_EQUAL(1, account.parts[HEDDLE_SPENT_RECEIVED]);
    CHECK_EQUAL(0, account.parts[HEDDLE_SPENT_QUEUED]);
    CHECK_EQUAL(9, account.parts[HEDDLE_SPENT_RUNNING]);
    CHECK_EQUAL(0, other);
}

/* It computed for so long, while its fiber waited for it, was ready, and waited for the client. */
static void check_thread(int64_t computed, int64_t waited, int64_t ready, int64_t client)
{
    int64_t other, sum = 0;
    heddle_account_begin(&account, &spender, 1, false);
    spender.since += waited + ready + client;
    account.parts[HEDDLE_SPENT_THREAD] = waited - computed;
    account.parts[HEDDLE_SPENT_READY] = ready;
    account.parts[HEDDLE_SPENT_CLIENT] = client;
    account.parts[HEDDLE_SPENT_RUNNING] = computed;
    int64_t total = heddle_account_end(&account, spender.since + 5, &other);
    for (int part = 0; part < HEDDLE_SPENT_PARTS; part++) {
        CHECK(account.parts[part] >= 0);
        sum += account.parts[part];
    }
    CHECK_EQUAL(waited + ready + client + 5, total);
    CHECK_EQUAL(total, sum);
    CHECK_EQUAL(0, other);
}

/* Its fiber had not begun to wait for it: both count the same collection. */
static void collection_that_fiber_and_thread_both_count_is_counted_once(void)
{
    int64_t other;
    heddle_account_begin(&account, &spender, 1, false);
    heddle_collected += 8;
    account.parts[HEDDLE_SPENT_GC] = 8;
    account.parts[HEDDLE_SPENT_THREAD] = -8;
    CHECK_EQUAL(10, heddle_account_end(&account, spender.since + 10, &other));
    CHECK_EQUAL(10, account.parts[HEDDLE_SPENT_GC] + account.parts[HEDDLE_SPENT_RUNNING]);
    CHECK_EQUAL(0, account.parts[HEDDLE_SPENT_THREAD]);
    CHECK_EQUAL(0, other);
}

static void time_of_a_request_thread_is_counted_once(void)
{
    check_thread(60, 100, 0, 0);
    check_thread(120, 100, 50, 70);
    check_thread(200, 100, 50, 70);
    check_thread(240, 100, 50, 70);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("account", "parts of a request add up to the time since its first byte",
              parts_of_a_request_add_up_to_the_time_since_its_first_byte);
    check_run("account", "garbage collections are subtracted from the part that runs",
              garbage_collections_are_subtracted_from_the_part_that_runs);
    check_run("account", "account of a pipelined request begins at the end of the previous one",
              account_of_a_pipelined_request_begins_at_the_end_of_the_previous_one);
    check_run("account", "request that came after the previous one has no queue time",
              request_that_came_after_the_previous_one_has_no_queue_time);
    check_run("account", "collection that fiber and thread both count is counted once",
              collection_that_fiber_and_thread_both_count_is_counted_once);
    check_run("account", "time of a request thread is counted once", time_of_a_request_thread_is_counted_once);
    return check_end();
}
