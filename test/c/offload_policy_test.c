/* sources: offload/policy.c offload/library_judge.c native_code/elf_object.c offload/neutral_functions.c */
#include "check.h"

#include "offload/library_judge.h"
#include "offload/policy.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

/* What is known of native functions, and what that makes of them. */

enum { US = 1000 };

static void run(heddle_function *function, int times, int64_t wall)
{
    for (int i = 0; i < times; i++)
        heddle_function_ran(function, false, wall, -1);
}

static void class_of_a_function_is_the_class_of_its_library(void)
{
    heddle_function *function = heddle_function_record((void *)heddle_function_record);

    CHECK(function == heddle_function_record((void *)heddle_function_record));
    CHECK(function != heddle_function_record((void *)heddle_function_ran));
    CHECK_EQUAL(0, strcmp("offload_policy_test", function->library));
    CHECK_EQUAL(2, heddle_function_count());
    CHECK(heddle_function_at(0) == function && !heddle_function_at(2));
}

static void library_is_listed_by_the_beginning_of_its_file_name(void)
{
    const char *const names[] = {"", "libpq"};

    CHECK(heddle_library_listed("/usr/lib/libpq.so.5", names, 2));
    CHECK(heddle_library_listed("libpq-5.dll", names, 2));
    CHECK(!heddle_library_listed("/libpq/other.so", names, 2));
    CHECK(!heddle_library_listed("/usr/lib/mylibpq.so", names, 2));
    CHECK(!heddle_library_listed("", names, 2));
}

static void changed_lists_apply_to_functions_with_a_record(void)
{
    const char *const mine[] = {"offload_policy"}, *const other[] = {"other"};
    heddle_function *function = heddle_function_record((void *)heddle_function_record);

    CHECK_EQUAL(HEDDLE_LIBRARY_IN_PLACE, function->class); /* this program imports what is about threads */
    CHECK(function->in_place && !function->quick && function->reason);
    CHECK_EQUAL(0, heddle_policy_set_list(HEDDLE_LIST_ALLOWED, mine, 1));
    CHECK_EQUAL(HEDDLE_LIBRARY_ALLOWED, function->class);
    CHECK(!function->in_place && !function->reason);
    CHECK_EQUAL(0, heddle_policy_set_list(HEDDLE_LIST_DENIED, mine, 1));
    CHECK_EQUAL(0, heddle_policy_set_list(HEDDLE_LIST_QUICK, mine, 1));
    CHECK(function->in_place && function->quick);
    CHECK_EQUAL(HEDDLE_LIBRARY_DENIED, function->class);
    CHECK(heddle_function_record((void *)heddle_function_ran)->in_place);
    CHECK(heddle_policy_is_listed(HEDDLE_LIST_DENIED, "/lib/offload_policy.so"));
    CHECK(!heddle_policy_is_listed(HEDDLE_LIST_DENIED, "/lib/other.so"));
    CHECK_EQUAL(0, heddle_policy_set_list(HEDDLE_LIST_DENIED, other, 1));
    CHECK_EQUAL(0, heddle_policy_set_list(HEDDLE_LIST_QUICK, NULL, 0));
    CHECK(!function->in_place && !function->quick);
    CHECK_EQUAL(0, heddle_policy_set_list(HEDDLE_LIST_ALLOWED, NULL, 0));
    CHECK(function->in_place);
}

static void library_is_known_good_only_with_tested_companions(void)
{
    const char *const with[] = {"offload_policy libasan libubsan libtsan libgcc_s"};
    heddle_function *function = heddle_function_record((void *)heddle_function_record);

    CHECK_EQUAL(0, heddle_policy_set_list(HEDDLE_LIST_KNOWN_GOOD, with, 1));
    CHECK_EQUAL(HEDDLE_LIBRARY_KNOWN_GOOD, function->class);
    CHECK(!function->in_place);
#if defined(__linux__) && defined(__SANITIZE_ADDRESS__)
    const char *const alone[] = {"offload_policy"};
    CHECK_EQUAL(0, heddle_policy_set_list(HEDDLE_LIST_KNOWN_GOOD, alone, 1));
    CHECK_EQUAL(HEDDLE_LIBRARY_IN_PLACE, function->class);
    CHECK(strstr(function->reason, "needs lib") && strstr(function->reason, "not tested"));
#endif
    CHECK_EQUAL(0, heddle_policy_set_list(HEDDLE_LIST_KNOWN_GOOD, NULL, 0));
}

/* As Fiddle calls it. */
static void functions_of_libc_are_judged_one_by_one(void)
{
    CHECK(heddle_libc_function_waits("usleep") && heddle_libc_function_waits("__nanosleep"));
    CHECK(!heddle_libc_function_waits("prctl") && !heddle_libc_function_waits("gettid"));
    CHECK(!heddle_libc_function_waits("clock_gettime") && !heddle_libc_function_waits(""));
    heddle_function *function = heddle_function_record((void *)getppid);

    CHECK(function->in_place && function->reason);
}

static void function_that_blocked_the_loop_is_reported_once(void)
{
    int64_t held_up = 0;
    heddle_function *function = heddle_function_record((void *)getpid);

    CHECK(!heddle_policy_take_unreported(&held_up));
    heddle_function_report_stall(function, 30 * US);
    heddle_function_report_stall(function, 50 * US);
    heddle_function_report_stall(function, 40 * US);
    CHECK(heddle_policy_take_unreported(&held_up) == function);
    CHECK_EQUAL(50 * US, held_up);
    heddle_function_report_stall(function, 60 * US);
    CHECK(!heddle_policy_take_unreported(&held_up));
}

static void function_counts_as_slow_after_several_slow_calls(void)
{
    heddle_function *function = heddle_function_record((void *)getpid);

    run(function, 1, 1000 * 1000 * US); /* the first one, with nothing in the caches */
    CHECK(function->pace <= HEDDLE_QUICK_NS);
    run(function, 20, 10 * US);
    CHECK(function->pace <= HEDDLE_QUICK_NS / 2);
    run(function, 4, 1000 * US);
    CHECK(function->pace > HEDDLE_QUICK_NS);
    run(function, 20, 10 * US);
    CHECK(function->pace <= HEDDLE_QUICK_NS);
    CHECK_EQUAL(45, function->calls);
    CHECK_EQUAL(0, function->offloaded);
}

static void expected_duration_rises_fast_and_falls_slowly(void)
{
    heddle_function *function = heddle_function_record((void *)getpid);

    run(function, 1, 100 * US);
    CHECK_EQUAL(100 * US, function->wall);
    run(function, 1, 300 * US);
    CHECK_EQUAL(200 * US, function->wall);
    run(function, 1, 40 * US);
    CHECK_EQUAL(190 * US, function->wall);
}

static void function_computes_if_most_of_its_time_is_cpu_time(void)
{
    heddle_function *function = heddle_function_record((void *)getpid);

    heddle_function_ran(function, false, 1000 * US, 1000 * US); /* inline: nothing was measured */
    CHECK(!heddle_function_computes(function));
    heddle_function_ran(function, true, 1000 * US, -1); /* the machine was busy */
    CHECK(!heddle_function_computes(function));
    heddle_function_ran(function, true, 1000 * US, 650 * US);
    CHECK(!heddle_function_computes(function));
    heddle_function_ran(function, true, 1000 * US, 2000 * US);
    CHECK(heddle_function_computes(function));
    heddle_function_ran(function, true, 1000 * US, -1);
    CHECK(heddle_function_computes(function));
    heddle_function_ran(function, true, 1000 * US, 0);
    CHECK(!heddle_function_computes(function));
    CHECK_EQUAL(5, function->offloaded);
}

static void quick_function_does_not_count_as_computing(void)
{
    heddle_function *function = heddle_function_record((void *)getpid);

    heddle_function_ran(function, true, 40 * US, 40 * US);
    CHECK(!heddle_function_computes(function));
}

/* Closures are made at run time, as many as a program likes. */
static void functions_beyond_the_limit_share_a_record(void)
{
    heddle_function *last = NULL;
    for (uintptr_t address = 16; address <= 16 * 10000; address += 16)
        last = heddle_function_record((void *)address);

    CHECK(heddle_function_count() < 10000);
    CHECK(last == heddle_function_record((void *)(uintptr_t)(16 * 20000)));
    CHECK(heddle_function_record((void *)(uintptr_t)16) == heddle_function_at(0));
    CHECK(last->in_place && !last->quick);
    run(last, 3, US);
    CHECK_EQUAL(3, last->calls);
}

/* Time accounts of requests refer to the name, and compare its address. */
static void functions_of_a_library_share_its_name(void)
{
    CHECK(heddle_function_record((void *)heddle_function_record)->library ==
          heddle_function_record((void *)heddle_function_ran)->library);
}

static void name_of_a_library_is_kept_after_it_was_unloaded(void)
{
    void *library = dlopen("libresolv.so.2", RTLD_NOW);
    if (!library)
        SKIP("has no libresolv");
    const char *name = heddle_function_record(dlsym(library, "ns_sprintrr"))->library;

    CHECK(strcmp(name, "libresolv.so.2") == 0);
    dlclose(library);
    heddle_policy_relocate();
    CHECK(strcmp(name, "libresolv.so.2") == 0);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("offload policy", "class of a function is the class of its library",
              class_of_a_function_is_the_class_of_its_library);
    check_run("offload policy", "library is listed by the beginning of its file name",
              library_is_listed_by_the_beginning_of_its_file_name);
    check_run("offload policy", "changed lists apply to functions with a record",
              changed_lists_apply_to_functions_with_a_record);
    check_run("offload policy", "library is known good only with tested companions",
              library_is_known_good_only_with_tested_companions);
    check_run("offload policy", "functions of libc are judged one by one", functions_of_libc_are_judged_one_by_one);
    check_run("offload policy", "function that blocked the loop is reported once",
              function_that_blocked_the_loop_is_reported_once);
    check_run("offload policy", "function counts as slow after several slow calls",
              function_counts_as_slow_after_several_slow_calls);
    check_run("offload policy", "expected duration rises fast and falls slowly",
              expected_duration_rises_fast_and_falls_slowly);
    check_run("offload policy", "function computes if most of its time is cpu time",
              function_computes_if_most_of_its_time_is_cpu_time);
    check_run("offload policy", "quick function does not count as computing",
              quick_function_does_not_count_as_computing);
    check_run("offload policy", "functions of a library share its name", functions_of_a_library_share_its_name);
    check_run("offload policy", "name of a library is kept after it was unloaded",
              name_of_a_library_is_kept_after_it_was_unloaded);
    check_run("offload policy", "functions beyond the limit share a record", functions_beyond_the_limit_share_a_record);
    return check_end();
}
