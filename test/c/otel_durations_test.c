#include "check.h"
#include "http/otel_durations.h"

#include <string.h>

/* Each combination has a histogram of its own while there is room. */

static heddle_otel_durations durations;

static uint64_t count_of(const heddle_duration_series *series)
{
    uint64_t count = 0;
    for (unsigned i = 0; i <= HEDDLE_DURATION_BOUNDS; i++)
        count += series->counts[i];
    return count;
}

static void duration_equal_to_a_bound_counts_in_the_lower_bucket(void)
{
    memset(&durations, 0, sizeof(durations));
    const int64_t ms = 1000000;
    heddle_otel_durations_add(&durations, HEDDLE_GET, false, 11, 200, 5 * ms);
    heddle_otel_durations_add(&durations, HEDDLE_GET, false, 11, 200, 5 * ms + 1);
    heddle_otel_durations_add(&durations, HEDDLE_GET, false, 11, 200, 10000 * ms + 1);
    heddle_otel_durations_add(&durations, HEDDLE_GET, false, 11, 200, -1);
    const heddle_duration_series *series = heddle_duration_series_of(&durations, HEDDLE_GET, false, 11, 200);
    CHECK_EQUAL(2, series->counts[0]);
    CHECK_EQUAL(1, series->counts[1]);
    CHECK_EQUAL(1, series->counts[HEDDLE_DURATION_BOUNDS]);
    CHECK_EQUAL(10010 * ms + 2, (int64_t)series->sum);
}

static void combinations_have_separate_histograms(void)
{
    memset(&durations, 0, sizeof(durations));
    heddle_otel_durations_add(&durations, HEDDLE_GET, false, 11, 200, 1);
    heddle_otel_durations_add(&durations, HEDDLE_POST, false, 11, 200, 1);
    heddle_otel_durations_add(&durations, HEDDLE_GET, true, 11, 200, 1);
    heddle_otel_durations_add(&durations, HEDDLE_GET, false, 20, 200, 1);
    heddle_otel_durations_add(&durations, HEDDLE_GET, false, 11, 404, 1);
    CHECK_EQUAL(1, count_of(heddle_duration_series_of(&durations, HEDDLE_GET, false, 11, 200)));
    CHECK_EQUAL(1, count_of(heddle_duration_series_of(&durations, HEDDLE_GET, true, 11, 200)));
    CHECK_EQUAL(0, count_of(&durations.series[HEDDLE_DURATION_SERIES]));
}

static void combinations_beyond_the_limit_are_counted_together(void)
{
    memset(&durations, 0, sizeof(durations));
    for (int status = 100; status < 400; status++)
        heddle_otel_durations_add(&durations, HEDDLE_GET, false, 11, status, 1);
    CHECK_EQUAL(300 - HEDDLE_DURATION_SERIES, (int)count_of(&durations.series[HEDDLE_DURATION_SERIES]));
    heddle_otel_durations_add(&durations, HEDDLE_GET, false, 11, 100, 1);
    CHECK_EQUAL(2, count_of(heddle_duration_series_of(&durations, HEDDLE_GET, false, 11, 100)));
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("request durations", "duration equal to a bound counts in the lower bucket",
              duration_equal_to_a_bound_counts_in_the_lower_bucket);
    check_run("request durations", "combinations have separate histograms", combinations_have_separate_histograms);
    check_run("request durations", "combinations beyond the limit are counted together",
              combinations_beyond_the_limit_are_counted_together);
    return check_end();
}
