/* sources: http/slowest_responses.c */
#include "check.h"
#include "http/slowest_responses.h"

static const int64_t MS = 1000000, MINUTE = INT64_C(60000000000);

static heddle_slowest slowest;
static unsigned looks; /* how often the list was concerned */

static void answer(int64_t now, int64_t taken)
{
    char target[32];
    int size = snprintf(target, sizeof(target), "/%lld", (long long)taken);
    if (!heddle_slowest_concerns(&slowest, now, taken))
        return;
    looks++;
    heddle_slowest_note(&slowest, now, taken, 200, "GET", 3, target, (uint32_t)size);
}

static int64_t least(void)
{
    int64_t found = INT64_MAX;
    for (unsigned i = 0; i < slowest.count; i++)
        found = slowest.list[i].taken < found ? slowest.list[i].taken : found;
    return found;
}

static void quick_response_is_not_listed(void)
{
    for (int i = 0; i < 1000; i++)
        answer(1000 * MS + i, MS / 2);
    CHECK_EQUAL(0, slowest.count);
    CHECK_EQUAL(1, looks); /* the first one finds the list new */
}

static void slowest_responses_are_kept_in_any_order(void)
{
    for (int i = 0; i < 100; i++)
        answer(1000 * MS + i, (2 + i * 37 % 100) * MS);
    CHECK_EQUAL(HEDDLE_SLOWEST, slowest.count);
    CHECK_EQUAL((102 - HEDDLE_SLOWEST) * MS, least());
    CHECK_EQUAL(least(), slowest.floor);
    CHECK_EQUAL(0, heddle_slowest_concerns(&slowest, 2000 * MS, least()));
}

static void old_entry_is_removed_after_some_minutes(void)
{
    for (int i = 0; i < HEDDLE_SLOWEST; i++)
        answer(MINUTE + i, 900 * MS);
    answer(2 * MINUTE, 5 * MS);
    CHECK_EQUAL(900 * MS, least());
    answer(MINUTE + HEDDLE_SLOWEST_KEPT, 5 * MS); /* the first one's time is over */
    CHECK_EQUAL(HEDDLE_SLOWEST, slowest.count);
    CHECK_EQUAL(5 * MS, least());
    heddle_slowest_expire(&slowest, 2 * MINUTE + HEDDLE_SLOWEST_KEPT);
    CHECK_EQUAL(1, slowest.count);
    CHECK_EQUAL(5 * MS, slowest.list[0].taken);
    CHECK_EQUAL(HEDDLE_SLOWEST_LEAST, slowest.floor);
}

static void long_text_of_an_entry_is_truncated(void)
{
    char method[HEDDLE_SLOWEST_TEXT * 2], target[HEDDLE_SLOWEST_TEXT * 2];
    memset(method, 'M', sizeof(method));
    memset(target, 't', sizeof(target));
    heddle_slowest_note(&slowest, MINUTE, 2 * MS, 404, "GET", 3, target, sizeof(target));
    heddle_slowest_note(&slowest, MINUTE, 3 * MS, 404, method, sizeof(method), "/", 1);
    CHECK_EQUAL(HEDDLE_SLOWEST_TEXT, slowest.list[0].size);
    CHECK(memcmp(slowest.list[0].text, "GET ttt", 7) == 0);
    CHECK_EQUAL(HEDDLE_SLOWEST_TEXT, slowest.list[1].size);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("slowest", "quick response is not listed", quick_response_is_not_listed);
    check_run("slowest", "slowest responses are kept in any order", slowest_responses_are_kept_in_any_order);
    check_run("slowest", "old entry is removed after some minutes", old_entry_is_removed_after_some_minutes);
    check_run("slowest", "long text of an entry is truncated", long_text_of_an_entry_is_truncated);
    return check_end();
}
