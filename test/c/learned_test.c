/* sources: net/learned.c net/shared_memory.c net/learned_endpoint.c */
/* link: -lm */
#include "check.h"
#include "net/learned.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/* What holds up its worker is remembered by endpoint, decays by time, and is shared by who writes at the same time. */

#define SECOND INT64_C(1000000000)
#define NOW (INT64_C(5000) * SECOND)
#define NEAR(expected, actual)                                                                                        \
    do {                                                                                                              \
        long long near_actual = (actual), near_expected = (expected);                                                 \
        CHECK(near_actual >= near_expected - 2000000 && near_actual <= near_expected + 2000000);                      \
    } while (0)

enum { SLOTS = 8 };

static heddle_learned learned;

static void start(void)
{
    CHECK_EQUAL(0, heddle_learned_create(&learned, SLOTS));
    learned.half_life = 100 * SECOND;
}

static void stop(void)
{
    heddle_learned_close(&learned);
    heddle_learned_close(&learned);
}

static void is_endpoint(const char *expected, const char *method, const char *target)
{
    char name[HEDDLE_LEARNED_NAME];
    /* From the heap, so that a read beyond the end is seen. */
    char *copy = malloc(strlen(target) + 1);
    size_t size = strlen(target);
    memcpy(copy, target, size);
    copy = realloc(copy, size ? size : 1);
    CHECK_EQUAL(strlen(expected), heddle_endpoint_write(name, method, strlen(method), copy, size));
    free(copy);
    if (strcmp(expected, name) != 0)
        printf("    %s\n", name);
    CHECK(strcmp(expected, name) == 0);
}

static void ids_in_paths_are_all_the_same(void)
{
    is_endpoint("GET /", "GET", "/");
    is_endpoint("GET /", "GET", "");
    is_endpoint("GET /users", "GET", "/users?id=7&page=2");
    is_endpoint("GET /users/:id/edit", "GET", "/users/7/edit");
    is_endpoint("GET /users/:id/edit", "GET", "/users/:id/edit");
    is_endpoint("PUT /users/:id.json", "PUT", "/users/123456.json?a=/b/9");
    is_endpoint("GET /o/:id/", "GET", "/o/0b6c2e66-52a1-4a0e-9c0e-2f0b3a1d9a11/");
    is_endpoint("GET /o/:id", "GET", "/o/DEADBEEF00112233");
    is_endpoint("GET /blobs/:id/x", "GET", "/blobs/da39a3ee5e6b4b0d3255bfef95601890afd80709/x");
    is_endpoint("GET /v2/accede/decade", "GET", "/v2/accede/decade");
    is_endpoint("GET /defacedefacedeface", "GET", "/defacedefacedeface"); /* no digit: a word */
    is_endpoint("GET //a//:id", "GET", "//a//1");
    is_endpoint("GET /a/:id", "GET", "http://example.org:80/a/5?b");
    is_endpoint("GET /", "GET", "http://example.org");
    is_endpoint("OPTIONS *", "OPTIONS", "*");
    is_endpoint("GET a:", "GET", "a:");
    is_endpoint("GET a:/", "GET", "a:/");
    is_endpoint("CONNECT example.org:443", "CONNECT", "example.org:443");
}

static void what_is_long_is_cut(void)
{
    char target[1000], name[HEDDLE_LEARNED_NAME];
    memset(target, 'a', sizeof(target));
    target[0] = '/';
    CHECK_EQUAL(HEDDLE_LEARNED_NAME - 1, heddle_endpoint_write(name, "GET", 3, target, sizeof(target)));
    CHECK_EQUAL(HEDDLE_LEARNED_NAME - 1, strlen(name));
    start();
    heddle_learned_note(&learned, name, SECOND, NOW);
    heddle_learned_entry entry;
    CHECK(heddle_learned_read(&learned, 0, NOW, &entry));
    CHECK(strcmp(name, entry.name) == 0);
    CHECK_EQUAL(HEDDLE_LEARNED_NAME - 1, heddle_endpoint_write(name, target, sizeof(target), "/", 1));
    stop();
}

static void scores_add_up_and_halve(void)
{
    start();
    CHECK(!heddle_learned_any(&learned));
    CHECK_EQUAL(0, heddle_learned_score(&learned, "GET /a", NOW));
    heddle_learned_note(&learned, "GET /a", 2 * SECOND, NOW);
    CHECK(heddle_learned_any(&learned));
    NEAR(2 * SECOND, heddle_learned_score(&learned, "GET /a", NOW));
    CHECK_EQUAL(0, heddle_learned_score(&learned, "GET /b", NOW));
    NEAR(SECOND, heddle_learned_score(&learned, "GET /a", NOW + 100 * SECOND));
    NEAR(SECOND / 2, heddle_learned_score(&learned, "GET /a", NOW + 200 * SECOND));
    heddle_learned_note(&learned, "GET /a", SECOND, NOW + 100 * SECOND);
    NEAR(2 * SECOND, heddle_learned_score(&learned, "GET /a", NOW + 100 * SECOND));
    heddle_learned_entry entry;
    CHECK(heddle_learned_read(&learned, 0, NOW + 200 * SECOND, &entry));
    NEAR(SECOND, entry.score);
    CHECK_EQUAL(2, entry.count);
    CHECK_EQUAL(NOW + 100 * SECOND, entry.at);
    stop();
}

static void a_clock_that_is_behind_takes_nothing_away(void)
{
    start();
    heddle_learned_note(&learned, "GET /a", SECOND, NOW);
    NEAR(SECOND, heddle_learned_score(&learned, "GET /a", NOW - 50 * SECOND));
    heddle_learned_entry entry;
    CHECK(heddle_learned_read(&learned, 0, NOW - 50 * SECOND, &entry));
    CHECK_EQUAL(NOW - 50 * SECOND, entry.at);
    stop();
}

static void what_has_decayed_is_forgotten_and_looking_costs_nothing_again(void)
{
    start();
    heddle_learned_note(&learned, "GET /a", SECOND, NOW);
    heddle_learned_sweep(&learned, NOW + 500 * SECOND);
    CHECK(heddle_learned_any(&learned));
    heddle_learned_sweep(&learned, NOW + 2000 * SECOND);
    CHECK(!heddle_learned_any(&learned));
    heddle_learned_entry entry;
    CHECK(!heddle_learned_read(&learned, 0, NOW + 2000 * SECOND, &entry));
    heddle_learned_note(&learned, "GET /a", SECOND, NOW + 2000 * SECOND);
    CHECK(heddle_learned_any(&learned));
    stop();
}

static void a_score_has_a_greatest_value(void)
{
    start();
    heddle_learned_note(&learned, "GET /a", INT64_MAX, NOW);
    heddle_learned_note(&learned, "GET /a", INT64_MAX, NOW);
    CHECK_EQUAL(INT64_C(4294967295000000), heddle_learned_score(&learned, "GET /a", NOW));
    stop();
}

static void one_is_forgotten_or_all(void)
{
    start();
    heddle_learned_note(&learned, "GET /a", SECOND, NOW);
    heddle_learned_note(&learned, "GET /b", SECOND, NOW);
    CHECK_EQUAL(0, heddle_learned_reset(&learned, "GET /c", NOW));
    CHECK_EQUAL(1, heddle_learned_reset(&learned, "GET /a", NOW));
    CHECK_EQUAL(0, heddle_learned_score(&learned, "GET /a", NOW));
    NEAR(SECOND, heddle_learned_score(&learned, "GET /b", NOW));
    CHECK(heddle_learned_any(&learned));
    CHECK_EQUAL(1, heddle_learned_reset(&learned, NULL, NOW));
    CHECK(!heddle_learned_any(&learned));
    heddle_learned_note(&learned, "GET /a", SECOND, NOW);
    heddle_learned_entry entry;
    CHECK(heddle_learned_read(&learned, 0, NOW, &entry));
    CHECK_EQUAL(1, entry.count);
    stop();
}

static void where_there_is_no_room_the_least_one_goes(void)
{
    char name[32];
    start();
    for (int i = 0; i < SLOTS; i++) {
        snprintf(name, sizeof(name), "GET /%c", 'a' + i);
        heddle_learned_note(&learned, name, (i == 3 ? 1 : 5) * SECOND, NOW);
    }
    heddle_learned_note(&learned, "GET /new", 2 * SECOND, NOW);
    NEAR(2 * SECOND, heddle_learned_score(&learned, "GET /new", NOW));
    CHECK_EQUAL(0, heddle_learned_score(&learned, "GET /d", NOW));
    NEAR(5 * SECOND, heddle_learned_score(&learned, "GET /h", NOW));
    heddle_learned_entry entry;
    CHECK(heddle_learned_read(&learned, 3, NOW, &entry));
    CHECK(strcmp("GET /new", entry.name) == 0);
    CHECK_EQUAL(1, entry.count);
    stop();
}

static void what_is_half_written_is_not_read(void)
{
    start();
    heddle_learned_note(&learned, "GET /a", SECOND, NOW);
    atomic_store(&learned.slots[0].name[0], 0);
    heddle_learned_entry entry;
    CHECK(!heddle_learned_read(&learned, 0, NOW, &entry));
    heddle_learned_note(&learned, "GET /a", SECOND, NOW); /* whoever comes next completes it */
    CHECK(heddle_learned_read(&learned, 0, NOW, &entry));
    stop();
}

enum { THREADS = 4, NOTES = 2000 };

static void *note_often(void *unused)
{
    char name[32];
    (void)unused;
    for (int i = 0; i < NOTES; i++) {
        snprintf(name, sizeof(name), "GET /%c", 'a' + i % SLOTS);
        heddle_learned_note(&learned, name, SECOND / 1000, NOW);
    }
    return NULL;
}

static void nothing_is_lost_when_many_write_at_once(void)
{
    pthread_t threads[THREADS];
    char name[32];
    start();
    for (int i = 0; i < THREADS; i++)
        MUST(-pthread_create(&threads[i], NULL, note_often, NULL));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++) {
        heddle_learned_entry entry;
        snprintf(name, sizeof(name), "GET /%c", 'a' + i);
        CHECK_EQUAL(INT64_C(1000000) * THREADS * NOTES / SLOTS, heddle_learned_score(&learned, name, NOW));
        CHECK(heddle_learned_read(&learned, (uint32_t)i, NOW, &entry));
        CHECK_EQUAL(THREADS * NOTES / SLOTS, entry.count);
    }
    stop();
}

/* A memfd with the bytes of this table. */
static int copied(size_t size)
{
    int fd = (int)MUST(memfd_create("learned", MFD_CLOEXEC));
    CHECK_EQUAL((long long)size, MUST(write(fd, learned.header, size)));
    return fd;
}

static void another_process_opens_it_by_its_descriptor_and_refuses_what_it_does_not_know(void)
{
    heddle_learned other;
    start();
    heddle_learned_note(&learned, "GET /a", SECOND, NOW);
    CHECK_EQUAL(0, heddle_learned_open(&other, copied(learned.memory.size)));
    other.half_life = learned.half_life;
    NEAR(SECOND, heddle_learned_score(&other, "GET /a", NOW));
    CHECK_EQUAL(SLOTS, other.header->slot_count);
    heddle_learned_close(&other);
    CHECK_EQUAL(-EPROTO, heddle_learned_open(&other, copied(10)));
    CHECK_EQUAL(-EPROTO, heddle_learned_open(&other, copied(learned.memory.size - 1)));
    learned.header->version++;
    CHECK_EQUAL(-EPROTO, heddle_learned_open(&other, copied(learned.memory.size)));
    CHECK(other.header == NULL);
    stop();
}

#define RUN(test) check_run("learned", #test, test)

int main(int count, char **arguments)
{
    check_filter = count > 1 ? arguments[1] : NULL;
    RUN(ids_in_paths_are_all_the_same);
    RUN(what_is_long_is_cut);
    RUN(scores_add_up_and_halve);
    RUN(a_clock_that_is_behind_takes_nothing_away);
    RUN(what_has_decayed_is_forgotten_and_looking_costs_nothing_again);
    RUN(a_score_has_a_greatest_value);
    RUN(one_is_forgotten_or_all);
    RUN(where_there_is_no_room_the_least_one_goes);
    RUN(what_is_half_written_is_not_read);
    RUN(nothing_is_lost_when_many_write_at_once);
    RUN(another_process_opens_it_by_its_descriptor_and_refuses_what_it_does_not_know);
    return check_end();
}
