#include "check.h"
#include "http/latency_histogram.h"

/* Every length of time is counted in the bucket that it lies in, and the buckets leave no gap. */

static void buckets_are_adjacent(void)
{
    uint64_t before = 0;
    for (unsigned bucket = 0; bucket < HEDDLE_LATENCY_BUCKETS - 1; bucket++) {
        uint64_t end = heddle_latency_end(bucket);
        CHECK(end > before);
        CHECK_EQUAL(bucket, heddle_latency_bucket(before));
        CHECK_EQUAL(bucket, heddle_latency_bucket(end - 1));
        CHECK_EQUAL(bucket + 1, heddle_latency_bucket(end));
        before = end;
    }
    CHECK_EQUAL(UINT64_MAX, heddle_latency_end(HEDDLE_LATENCY_BUCKETS - 1));
}

static void bounds_are_at_most_a_quarter_apart(void)
{
    for (unsigned bucket = 1; bucket < HEDDLE_LATENCY_BUCKETS - 1; bucket++) {
        uint64_t start = heddle_latency_end(bucket - 1), end = heddle_latency_end(bucket);
        CHECK((end - start) * 4 <= start);
    }
}

static void first_and_last_bucket_have_the_documented_bounds(void)
{
    CHECK_EQUAL(1024, heddle_latency_end(0));
    CHECK_EQUAL(UINT64_C(1) << 37, heddle_latency_end(HEDDLE_LATENCY_BUCKETS - 2));
    CHECK_EQUAL(HEDDLE_LATENCY_BUCKETS - 1, heddle_latency_bucket(UINT64_MAX));
}

static void observations_are_counted_and_summed(void)
{
    heddle_latency latency = {0};
    heddle_latency_add(&latency, 5000);
    heddle_latency_add(&latency, 5000);
    heddle_latency_add(&latency, INT64_MAX);
    CHECK_EQUAL(2, latency.counts[heddle_latency_bucket(5000)]);
    CHECK_EQUAL(1, latency.counts[HEDDLE_LATENCY_BUCKETS - 1]);
    CHECK_EQUAL((uint64_t)INT64_MAX + 10000, latency.sum);
}

/* Clocks of two cores may differ by a little. */
static void negative_duration_counts_as_zero(void)
{
    heddle_latency latency = {0};
    heddle_latency_add(&latency, -1);
    CHECK_EQUAL(1, latency.counts[0]);
    CHECK_EQUAL(0, latency.sum);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("latency", "buckets are adjacent", buckets_are_adjacent);
    check_run("latency", "bounds are at most a quarter apart", bounds_are_at_most_a_quarter_apart);
    check_run("latency", "first and last bucket have the documented bounds",
              first_and_last_bucket_have_the_documented_bounds);
    check_run("latency", "observations are counted and summed", observations_are_counted_and_summed);
    check_run("latency", "negative duration counts as zero", negative_duration_counts_as_zero);
    return check_end();
}
