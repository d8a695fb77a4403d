/* sources: */
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* C tests have no extconf.rb that would find them. */
#ifdef __linux__
#define HAVE_MEMFD_CREATE 1
#define HAVE_SYS_EVENTFD_H 1
#define HAVE_PTHREAD_MUTEXATTR_SETROBUST 1
#endif
#include "net/shared_memory.c"

#include "pubsub/history.c"

/* The history of messages: shared by processes, any of which may end at any place. */

static heddle_history history;

static void open_history(uint32_t topics, uint32_t messages)
{
    const heddle_history_limits limits = {
        .log_size = 65536, .topics = topics, .messages = messages, .age = INT64_C(300000000000),
    };
    CHECK_EQUAL(0, heddle_history_create(&history, &limits));
}

static int64_t publish(const char *topic, const char *data)
{
    return heddle_history_publish(&history, topic, strlen(topic), data, strlen(data));
}

static int find(const char *topic, uint64_t since, uint64_t *places, uint64_t *offset)
{
    return heddle_history_find(&history, topic, strlen(topic), since, places, HEDDLE_HISTORY_MESSAGES, offset);
}

static bool holds(uint64_t place, const char *data)
{
    heddle_history_record record;
    char found[256];
    return heddle_history_look(&history, place, &record) == 1 && record.place == place &&
           record.data_size == strlen(data) && heddle_history_copy_data(&history, &record, found) &&
           memcmp(found, data, strlen(data)) == 0;
}

static void offsets_of_a_topic_have_no_gaps(void)
{
    uint64_t places[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(64, 100);
    CHECK_EQUAL(1, publish("a", "one"));
    CHECK_EQUAL(1, publish("b", "other"));
    CHECK_EQUAL(2, publish("a", "two"));
    CHECK_EQUAL(3, publish("a", ""));
    CHECK_EQUAL(2, find("a", 1, places, &offset));
    CHECK_EQUAL(3, offset);
    CHECK(holds(places[0], "two"));
    CHECK(holds(places[1], ""));
    CHECK_EQUAL(0, find("a", 3, places, &offset));
    heddle_history_close(&history);
}

static void a_position_that_was_never_given_is_refused(void)
{
    uint64_t places[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(64, 100);
    publish("a", "one");
    CHECK_EQUAL(-ENODATA, find("a", 2, places, &offset));
    CHECK_EQUAL(-ENODATA, find("unknown", 1, places, &offset));
    heddle_history_close(&history);
}

static void what_is_beyond_the_count_is_gone(void)
{
    uint64_t places[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(64, 3);
    for (int i = 0; i < 5; i++)
        publish("a", "x");
    CHECK_EQUAL(3, find("a", 2, places, &offset));
    CHECK_EQUAL(-ENODATA, find("a", 1, places, &offset));
    heddle_history_close(&history);
}

static void what_is_too_old_is_gone(void)
{
    uint64_t places[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(64, 100);
    publish("a", "x");
    history.header->age = -1;
    CHECK_EQUAL(-ENODATA, find("a", 0, places, &offset));
    CHECK_EQUAL(0, find("a", 1, places, &offset)); /* nothing was missed */
    heddle_history_close(&history);
}

static void what_was_overwritten_is_gone_and_is_noticed(void)
{
    uint64_t places[HEDDLE_HISTORY_MESSAGES], offset;
    char large[9000];
    heddle_history_record record;
    memset(large, 'x', sizeof(large));
    open_history(64, 100);
    publish("a", "one");
    CHECK_EQUAL(1, find("a", 0, places, &offset));
    CHECK_EQUAL(1, heddle_history_look(&history, places[0], &record));
    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(i + 1, heddle_history_publish(&history, "b", 1, large, sizeof(large)));
    CHECK(!heddle_history_copy_data(&history, &record, large));
    CHECK_EQUAL(-ENODATA, heddle_history_look(&history, places[0], &record));
    CHECK_EQUAL(-ENODATA, find("a", 0, places, &offset));
    CHECK_EQUAL(0, find("a", 1, places, &offset));
    heddle_history_close(&history);
}

/* A reader that follows finds every record, also where the log begins again. */
static void a_reader_follows_over_the_end_of_the_log(void)
{
    open_history(64, 100);
    uint64_t place = 0;
    for (int i = 0; i < 5000; i++) {
        char text[64], found[256];
        size_t size = (size_t)snprintf(text, sizeof(text), "%d%*s", i, i % 40, "");
        CHECK_EQUAL(i + 1, heddle_history_publish(&history, "a", 1, text, size));
        heddle_history_record record;
        CHECK_EQUAL(1, heddle_history_look(&history, place, &record));
        CHECK_EQUAL(size, record.data_size);
        CHECK(heddle_history_copy_data(&history, &record, found) && memcmp(found, text, size) == 0);
        place = record.next;
        CHECK_EQUAL(0, heddle_history_look(&history, place, &record));
    }
    heddle_history_close(&history);
}

static void a_topic_that_was_forgotten_never_gets_an_offset_again(void)
{
    uint64_t places[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(8, 100); /* one set */
    for (int i = 0; i < 5; i++)
        publish("first", "x");
    for (int i = 0; i < 8; i++)
        publish((char[]){(char)('a' + i), 0}, "x");
    CHECK_EQUAL(6, publish("first", "y"));
    CHECK_EQUAL(-ENODATA, find("first", 4, places, &offset));
    heddle_history_close(&history);
}

static void a_message_that_is_too_large_is_refused(void)
{
    static char large[65536];
    open_history(64, 100);
    CHECK_EQUAL(-EMSGSIZE, heddle_history_publish(&history, "a", 1, large, sizeof(large)));
    CHECK_EQUAL(1, heddle_history_publish(&history, "a", 1, large, heddle_history_most(&history) - 1));
    heddle_history_close(&history);
}

/* -- processes that end -------------------------------------------------------------------------------------------- */

static void end_within(void (*child)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        child();
        kill(getpid(), SIGKILL);
    }
    int status;
    waitpid(pid, &status, 0);
    CHECK(WIFSIGNALED(status));
}

static void write_half(void)
{
    const char text[] = "never committed";
    lock(&history);
    uint64_t place = heddle_history_head(&history);
    move_tail(&history, place + 1024);
    write_words(&history, place, text, sizeof(text));
}

static void a_process_killed_while_it_writes_leaves_nothing(void)
{
    uint64_t places[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(64, 100);
    publish("a", "one");
    end_within(write_half);
    CHECK_EQUAL(2, publish("a", "two"));
    CHECK_EQUAL(2, find("a", 0, places, &offset));
    CHECK(holds(places[0], "one"));
    CHECK(holds(places[1], "two"));
    heddle_history_close(&history);
}

/* As `append` has it when the journal is complete, and none of it applied. */
static void write_journal(void)
{
    heddle_history_header *header = history.header;
    struct topic_and_head {
        topic topic;
        uint64_t head;
    } before;
    lock(&history);
    uint32_t slot;
    uint64_t forgotten;
    slot = choose_entry(&history, "a", 1, &before.topic, &forgotten);
    before.head = heddle_history_head(&history);
    append(&history, "a", 1, "two", 3);
    topics_of(&history)[slot] = before.topic;
    atomic_store(&header->head, before.head);
    atomic_store(&header->journal.complete, 1);
}

static void a_process_killed_after_it_has_written_leaves_the_message(void)
{
    uint64_t places[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(64, 100);
    publish("a", "one");
    end_within(write_journal);
    CHECK_EQUAL(3, publish("a", "three"));
    CHECK_EQUAL(3, find("a", 0, places, &offset));
    CHECK(holds(places[1], "two"));
    CHECK(holds(places[2], "three"));
    heddle_history_close(&history);
}

static void another_program_goes_on_with_the_descriptors(void)
{
    heddle_history other;
    open_history(64, 100);
    publish("a", "one");
    CHECK_EQUAL(0, heddle_history_open(&other, dup(history.memory.fd), dup(history.wake_fd)));
    CHECK_EQUAL(2, heddle_history_publish(&other, "a", 1, "two", 3));
    CHECK_EQUAL(3, publish("a", "three"));
    CHECK(strcmp(heddle_history_epoch(&history), heddle_history_epoch(&other)) == 0);
    heddle_history_close(&other);
    heddle_history_close(&history);
}

static void memory_of_another_kind_is_refused(void)
{
    heddle_history other;
    heddle_shared_memory memory;
    CHECK_EQUAL(0, heddle_shared_memory_create(&memory, "other", 65536));
    CHECK_EQUAL(-EPROTO, heddle_history_open(&other, dup(memory.fd), eventfd(0, EFD_CLOEXEC)));
    heddle_shared_memory_close(&memory);
}

/* -- threads ------------------------------------------------------------------------------------------------------- */

enum { WRITERS = 3, MESSAGES = 4000 };

static void *write_many(void *data)
{
    const char *topic = data;
    for (int i = 1; i <= MESSAGES; i++) {
        char text[128];
        int size = snprintf(text, sizeof(text), "%s %d %0*d", topic, i, i % 64 + 1, i);
        int64_t offset;
        while ((offset = heddle_history_publish(&history, topic, 1, text, (size_t)size)) == -ETIMEDOUT) {
        }
        CHECK_EQUAL(i, offset);
    }
    return NULL;
}

/* What it reads is whole, and each topic's offsets only rise; what it was too slow for is said. */
static void readers_and_writers_meet(void)
{
    pthread_t threads[WRITERS];
    char *topics[WRITERS] = {"a", "b", "c"};
    uint64_t seen[WRITERS] = {0}, place = 0;
    open_history(64, 100);
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, write_many, topics[i]);
    while (seen[0] < MESSAGES || seen[1] < MESSAGES || seen[2] < MESSAGES) {
        heddle_history_record record;
        char topic[8], data[256], expected[256];
        int result = heddle_history_look(&history, place, &record);
        if (result == 0)
            continue;
        if (result == 1)
            place = record.next;
        if (result < 0 || record.topic_size != 1 || record.data_size > sizeof(data) ||
            !heddle_history_copy_topic(&history, &record, topic) || !heddle_history_copy_data(&history, &record, data)) {
            place = heddle_history_head(&history);
            for (int i = 0; i < WRITERS; i++) {
                int64_t offset = heddle_history_offset(&history, topics[i], 1);
                if (offset > (int64_t)seen[i])
                    seen[i] = (uint64_t)offset;
            }
            continue;
        }
        int which = topic[0] - 'a', number = (int)record.offset;
        int size = snprintf(expected, sizeof(expected), "%c %d %0*d", topic[0], number, number % 64 + 1, number);
        CHECK_EQUAL(size, record.data_size);
        CHECK(memcmp(data, expected, (size_t)size) == 0);
        if (record.offset > seen[which])
            seen[which] = record.offset;
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    heddle_history_close(&history);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("history", "offsets of a topic have no gaps", offsets_of_a_topic_have_no_gaps);
    check_run("history", "a position that was never given is refused", a_position_that_was_never_given_is_refused);
    check_run("history", "what is beyond the count is gone", what_is_beyond_the_count_is_gone);
    check_run("history", "what is too old is gone", what_is_too_old_is_gone);
    check_run("history", "what was overwritten is gone and is noticed", what_was_overwritten_is_gone_and_is_noticed);
    check_run("history", "a reader follows over the end of the log", a_reader_follows_over_the_end_of_the_log);
    check_run("history", "a topic that was forgotten never gets an offset again", a_topic_that_was_forgotten_never_gets_an_offset_again);
    check_run("history", "a message that is too large is refused", a_message_that_is_too_large_is_refused);
    check_run("history", "a process killed while it writes leaves nothing", a_process_killed_while_it_writes_leaves_nothing);
    check_run("history", "a process killed after it has written leaves the message", a_process_killed_after_it_has_written_leaves_the_message);
    check_run("history", "another program goes on with the descriptors", another_program_goes_on_with_the_descriptors);
    check_run("history", "memory of another kind is refused", memory_of_another_kind_is_refused);
    check_run("history", "readers and writers meet", readers_and_writers_meet);
    return check_end();
}
