/* sources: net/pool_shares.c net/scoreboard.c net/shared_memory.c */
#include "check.h"
#include "net/pool_shares.h"

#include <pthread.h>

/* One limit for the pools of all workers: never more shares than it, the fewest first, nothing lost with a worker. */

enum { SLOTS = 6, TOTAL = 4, KEY = 7 };

static const int64_t NOW = INT64_C(5000000000);
static heddle_scoreboard scoreboard;
static uint32_t pool;

static void open_pool(uint32_t total)
{
    CHECK_EQUAL(0, heddle_scoreboard_create(&scoreboard, SLOTS));
    for (uint32_t i = 0; i < SLOTS; i++)
        CHECK_EQUAL(i, heddle_scoreboard_acquire(&scoreboard, 1, i));
    pool = (uint32_t)MUST(heddle_pool_open(&scoreboard, KEY, total));
}

static bool take(uint32_t slot)
{
    return heddle_pool_take(&scoreboard, pool, slot, NOW);
}

static void wait_since(uint32_t slot, int64_t milliseconds)
{
    heddle_pool_wait(&scoreboard, pool, slot, NOW - milliseconds * 1000000);
}

static void limit_applies_to_all_workers_together(void)
{
    open_pool(TOTAL);
    for (uint32_t i = 0; i < TOTAL; i++)
        CHECK(take(i % 2));
    CHECK(!take(0));
    CHECK(!take(2));
    CHECK_EQUAL(TOTAL, heddle_pool_taken(&scoreboard, pool));
    heddle_pool_return(&scoreboard, pool, 1);
    CHECK(take(2));
    CHECK(!take(2));
    heddle_pool_return(&scoreboard, pool, 5); /* has none */
    CHECK(!take(2));
    heddle_scoreboard_close(&scoreboard);
}

static void name_identifies_one_pool(void)
{
    open_pool(TOTAL);
    CHECK_EQUAL((int)pool, heddle_pool_open(&scoreboard, KEY, 1));
    CHECK(take(0));
    CHECK(!take(0)); /* the limit is the last one's */
    for (uint64_t key = 1000; key < 1000 + HEDDLE_SHARED_POOLS - 1; key++)
        CHECK(heddle_pool_open(&scoreboard, key, 1) > 0);
    CHECK_EQUAL(-1, heddle_pool_open(&scoreboard, 2000, 1));
    heddle_scoreboard_close(&scoreboard);
}

static void shares_of_an_ended_worker_are_released(void)
{
    open_pool(TOTAL);
    for (int i = 0; i < 3; i++)
        CHECK(take(0));
    CHECK(take(1));
    wait_since(0, 0);
    heddle_pool_release_slot(&scoreboard, 0);
    CHECK_EQUAL(1, heddle_pool_taken(&scoreboard, pool));
    CHECK_EQUAL(-1, heddle_pool_least_waiting(&scoreboard, pool, 1, NOW));
    for (int i = 0; i < 3; i++)
        CHECK(take(2));
    heddle_scoreboard_close(&scoreboard);
}

static void worker_with_the_fewest_shares_is_served_first(void)
{
    open_pool(TOTAL);
    for (int i = 0; i < 3; i++)
        CHECK(take(0));
    wait_since(1, 0);
    CHECK_EQUAL(-1, heddle_pool_least_waiting(&scoreboard, pool, 0, NOW)); /* one is free */
    CHECK(!take(0)); /* the last one is left for the other */
    CHECK(take(1));
    CHECK_EQUAL(-1, heddle_pool_least_waiting(&scoreboard, pool, 0, NOW));
    wait_since(1, 0);
    CHECK_EQUAL(1, heddle_pool_least_waiting(&scoreboard, pool, 0, NOW));
    heddle_scoreboard_close(&scoreboard);
}

static void worker_that_waits_longer_is_served_first_among_equals(void)
{
    open_pool(1);
    wait_since(0, 10);
    wait_since(1, 20);
    CHECK(!take(0));
    CHECK(!take(2)); /* has not waited at all */
    CHECK(take(1));
    heddle_pool_return(&scoreboard, pool, 1);
    wait_since(1, 0); /* behind the other */
    CHECK(!take(1));
    CHECK(take(0));
    heddle_scoreboard_close(&scoreboard);
}

static void no_worker_defers_while_enough_shares_are_free(void)
{
    open_pool(TOTAL);
    CHECK(take(0));
    wait_since(1, 0);
    CHECK(take(0));
    CHECK(take(0));
    CHECK(!take(0));
    heddle_scoreboard_close(&scoreboard);
}

static void no_worker_defers_to_a_stuck_worker(void)
{
    open_pool(1);
    wait_since(1, HEDDLE_POOL_REPORT_TIMEOUT / 1000000 + 1);
    CHECK_EQUAL(-1, heddle_pool_least_waiting(&scoreboard, pool, 0, NOW));
    CHECK(take(0));
    heddle_scoreboard_close(&scoreboard);
}

static void change_is_announced_to_waiting_workers(void)
{
    open_pool(1);
    uint32_t before = atomic_load(&scoreboard.header->pool_changes);
    CHECK(take(0));
    heddle_pool_return(&scoreboard, pool, 0);
    CHECK_EQUAL(before, atomic_load(&scoreboard.header->pool_changes)); /* nobody waits */
    wait_since(1, 100);
    CHECK_EQUAL(before + 1, atomic_load(&scoreboard.header->pool_changes));
    wait_since(1, 99); /* too soon */
    CHECK_EQUAL(before + 1, atomic_load(&scoreboard.header->pool_changes));
    wait_since(1, 0);
    CHECK_EQUAL(before + 2, atomic_load(&scoreboard.header->pool_changes));
    heddle_scoreboard_close(&scoreboard);
}

enum { ROUNDS = 20000 };

static _Atomic int held, most;

static void *take_and_return(void *slot)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (!heddle_pool_take(&scoreboard, pool, (uint32_t)(uintptr_t)slot, NOW)) {
            heddle_pool_wait(&scoreboard, pool, (uint32_t)(uintptr_t)slot, NOW);
            continue;
        }
        int now = atomic_fetch_add(&held, 1) + 1, before = atomic_load(&most);
        while (now > before && !atomic_compare_exchange_weak(&most, &before, now))
            continue;
        atomic_fetch_sub(&held, 1);
        heddle_pool_return(&scoreboard, pool, (uint32_t)(uintptr_t)slot);
    }
    heddle_pool_end_wait(&scoreboard, pool, (uint32_t)(uintptr_t)slot);
    return NULL;
}

static void concurrent_workers_never_exceed_the_limit(void)
{
    pthread_t threads[SLOTS];
    open_pool(2);
    for (uintptr_t i = 0; i < SLOTS; i++)
        CHECK_EQUAL(0, pthread_create(&threads[i], NULL, take_and_return, (void *)i));
    for (int i = 0; i < SLOTS; i++)
        pthread_join(threads[i], NULL);
    CHECK(atomic_load(&most) >= 1 && atomic_load(&most) <= 2);
    CHECK_EQUAL(0, heddle_pool_taken(&scoreboard, pool));
    heddle_scoreboard_close(&scoreboard);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("pool shares", "limit applies to all workers together", limit_applies_to_all_workers_together);
    check_run("pool shares", "name identifies one pool", name_identifies_one_pool);
    check_run("pool shares", "shares of an ended worker are released", shares_of_an_ended_worker_are_released);
    check_run("pool shares", "worker with the fewest shares is served first",
              worker_with_the_fewest_shares_is_served_first);
    check_run("pool shares", "worker that waits longer is served first among equals",
              worker_that_waits_longer_is_served_first_among_equals);
    check_run("pool shares", "no worker defers while enough shares are free",
              no_worker_defers_while_enough_shares_are_free);
    check_run("pool shares", "no worker defers to a stuck worker", no_worker_defers_to_a_stuck_worker);
    check_run("pool shares", "change is announced to waiting workers", change_is_announced_to_waiting_workers);
    check_run("pool shares", "concurrent workers never exceed the limit", concurrent_workers_never_exceed_the_limit);
    return check_end();
}
