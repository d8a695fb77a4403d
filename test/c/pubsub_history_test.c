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
#ifdef __GLIBC__
#define HAVE_PTHREAD_MUTEX_CLOCKLOCK 1
#endif
#include "net/shared_memory.c"

#include "pubsub/history_memory.c"
#include "pubsub/history_reading.c"
#include "pubsub/history.c"

/* The history of messages: shared by processes, any of which may end at any lsn. */

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
    heddle_history_state state;
    return heddle_history_publish(&history, topic, strlen(topic), data, strlen(data), &state);
}

static int find(const char *topic, uint64_t since, uint64_t *lsns, uint64_t *offset)
{
    return heddle_history_find(&history, topic, strlen(topic), heddle_history_generation(&history), since, lsns,
                               offset);
}

static bool holds(uint64_t lsn, const char *data)
{
    heddle_history_record record;
    char found[256];
    return heddle_history_check_record(&history, lsn, &record) == 1 && record.lsn == lsn &&
           record.data_size == strlen(data) && heddle_history_copy_data(&history, &record, found) &&
           memcmp(found, data, strlen(data)) == 0;
}

static int append(const char *epoch, uint64_t offset, const char *topic, const char *data)
{
    return heddle_history_append(&history, epoch, offset, topic, strlen(topic), data, strlen(data));
}

static void offsets_count_the_messages_of_all_topics(void)
{
    uint64_t lsns[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(64, 100);
    CHECK_EQUAL(1, publish("a", "one"));
    CHECK_EQUAL(2, publish("b", "other"));
    CHECK_EQUAL(3, publish("a", "two"));
    CHECK_EQUAL(4, publish("a", ""));
    CHECK_EQUAL(2, find("a", 1, lsns, &offset));
    CHECK_EQUAL(4, offset);
    CHECK(holds(lsns[0], "two"));
    CHECK(holds(lsns[1], ""));
    CHECK_EQUAL(2, find("a", 2, lsns, &offset)); /* a position of another topic's message is as good */
    CHECK_EQUAL(0, find("a", 4, lsns, &offset));
    heddle_history_close(&history);
}

static void unknown_position_is_rejected(void)
{
    uint64_t lsns[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(64, 100);
    publish("a", "one");
    CHECK_EQUAL(-ENODATA, find("a", 2, lsns, &offset));
    CHECK_EQUAL(-ENODATA, find("unknown", 2, lsns, &offset));
    CHECK_EQUAL(0, find("unknown", 1, lsns, &offset));
    heddle_history_close(&history);
}

static void messages_beyond_the_maximum_number_are_lost(void)
{
    uint64_t lsns[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(64, 3);
    for (int i = 0; i < 5; i++)
        publish("a", "x");
    CHECK_EQUAL(3, find("a", 2, lsns, &offset));
    CHECK_EQUAL(-ENODATA, find("a", 1, lsns, &offset));
    heddle_history_close(&history);
}

static void messages_that_are_too_old_are_lost(void)
{
    uint64_t lsns[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(64, 100);
    publish("a", "x");
    history.header->age = -1;
    CHECK_EQUAL(-ENODATA, find("a", 0, lsns, &offset));
    CHECK_EQUAL(0, find("a", 1, lsns, &offset)); /* nothing was missed */
    heddle_history_close(&history);
}

static void overwritten_messages_are_lost_and_reported(void)
{
    uint64_t lsns[HEDDLE_HISTORY_MESSAGES], offset;
    char large[9000];
    heddle_history_record record;
    heddle_history_state state;
    memset(large, 'x', sizeof(large));
    open_history(64, 100);
    publish("a", "one");
    CHECK_EQUAL(1, find("a", 0, lsns, &offset));
    CHECK_EQUAL(1, heddle_history_check_record(&history, lsns[0], &record));
    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(i + 2, heddle_history_publish(&history, "b", 1, large, sizeof(large), &state));
    CHECK(!heddle_history_copy_data(&history, &record, large));
    CHECK_EQUAL(-ENODATA, heddle_history_check_record(&history, lsns[0], &record));
    CHECK_EQUAL(-ENODATA, find("a", 0, lsns, &offset));
    CHECK_EQUAL(0, find("a", 1, lsns, &offset));
    heddle_history_close(&history);
}

/* A reader that follows finds every record, also where the log begins again. */
static void reader_continues_after_the_end_of_the_log(void)
{
    heddle_history_state state;
    open_history(64, 100);
    uint64_t lsn = 0;
    for (int i = 0; i < 5000; i++) {
        char text[64], found[256];
        size_t size = (size_t)snprintf(text, sizeof(text), "%d%*s", i, i % 40, "");
        CHECK_EQUAL(i + 1, heddle_history_publish(&history, "a", 1, text, size, &state));
        heddle_history_record record;
        CHECK_EQUAL(1, heddle_history_check_record(&history, lsn, &record));
        CHECK_EQUAL(size, record.data_size);
        CHECK(heddle_history_copy_data(&history, &record, found) && memcmp(found, text, size) == 0);
        lsn = record.next;
        CHECK_EQUAL(0, heddle_history_check_record(&history, lsn, &record));
    }
    heddle_history_close(&history);
}

static void messages_of_a_forgotten_topic_are_lost(void)
{
    uint64_t lsns[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(8, 100); /* one set */
    for (int i = 0; i < 5; i++)
        publish("first", "x");
    for (int i = 0; i < 8; i++)
        publish((char[]){(char)('a' + i), 0}, "x");
    CHECK_EQUAL(14, publish("first", "y"));
    CHECK_EQUAL(-ENODATA, find("first", 4, lsns, &offset));
    CHECK_EQUAL(1, find("first", 5, lsns, &offset)); /* "a" is forgotten for it, and was never this topic */
    heddle_history_close(&history);
}

static int64_t offset_before(const char *topic, int64_t age)
{
    heddle_history_state state;
    return heddle_history_offset_before(&history, topic, strlen(topic), age, &state);
}

static void recent_messages_of_a_forgotten_topic_are_lost(void)
{
    const int64_t minute = INT64_C(60000000000);
    open_history(8, 100); /* one set */
    publish("first", "x");
    CHECK_EQUAL(0, offset_before("first", minute));
    for (int i = 0; i < 8; i++)
        publish((char[]){(char)('a' + i), 0}, "x");
    CHECK_EQUAL(-ENODATA, offset_before("first", minute)); /* and not: it has had none */
    CHECK_EQUAL(9, offset_before("first", 0));
    CHECK_EQUAL(10, publish("first", "y"));
    CHECK_EQUAL(-ENODATA, offset_before("first", minute));
    CHECK_EQUAL(10, offset_before("first", 0));
    heddle_history_close(&history);
}

/* Whatever room it takes in the table: nothing of it is missing after a position from before. */
static void new_topic_begins_without_a_gap(void)
{
    uint64_t lsns[HEDDLE_HISTORY_MESSAGES], offset;
    heddle_history_state state;
    open_history(8, 100); /* one set, which is full */
    for (int i = 0; i < 8; i++)
        publish((char[]){(char)('a' + i), 0}, "x");
    uint64_t since = (uint64_t)heddle_history_offset(&history, "fresh", 5, &state);
    CHECK_EQUAL(9, publish("fresh", "one"));
    CHECK_EQUAL(1, find("fresh", since, lsns, &offset));
    CHECK(holds(lsns[0], "one"));
    heddle_history_close(&history);
}

/* -- following a backend ------------------------------------------------------------------------------------------- */

static void history_that_follows_a_backend_takes_its_offsets(void)
{
    uint64_t lsns[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(64, 100);
    CHECK_EQUAL(-ESTALE, append("aaaabbbbcccc", 8, "a", "x"));
    CHECK_EQUAL(0, heddle_history_begin(&history, "aaaabbbbcccc", 7));
    CHECK_EQUAL(1, append("aaaabbbbcccc", 8, "a", "eight"));
    CHECK_EQUAL(0, append("aaaabbbbcccc", 8, "a", "eight"));
    CHECK_EQUAL(-ERANGE, append("aaaabbbbcccc", 10, "a", "ten"));
    CHECK_EQUAL(-ESTALE, append("bbbbaaaacccc", 9, "a", "nine"));
    CHECK_EQUAL(1, append("aaaabbbbcccc", 9, "b", "nine"));
    CHECK_EQUAL(-EPERM, publish("a", "x"));
    CHECK_EQUAL(1, find("a", 7, lsns, &offset));
    CHECK(holds(lsns[0], "eight"));
    CHECK_EQUAL(-ENODATA, find("a", 6, lsns, &offset));
    CHECK_EQUAL(0, find("a", 20, lsns, &offset)); /* another machine may be ahead */
    heddle_history_close(&history);
}

static void new_epoch_or_loss_invalidates_earlier_positions(void)
{
    uint64_t lsns[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(8, 100);
    publish("a", "memory");
    heddle_history_begin(&history, "aaaabbbbcccc", 7);
    append("aaaabbbbcccc", 8, "a", "eight");
    uint32_t generation = heddle_history_generation(&history);
    CHECK_EQUAL(0, heddle_history_begin(&history, "aaaabbbbcccc", 8)); /* it is there already */
    CHECK_EQUAL(generation, heddle_history_generation(&history));
    CHECK_EQUAL(0, heddle_history_begin(&history, "aaaabbbbcccc", 20)); /* a loss */
    CHECK(generation != heddle_history_generation(&history));
    CHECK_EQUAL(-ESTALE, heddle_history_find(&history, "a", 1, generation, 8, lsns, &offset));
    CHECK_EQUAL(-ENODATA, find("a", 7, lsns, &offset));
    CHECK_EQUAL(1, append("aaaabbbbcccc", 21, "a", "later"));
    CHECK_EQUAL(1, find("a", 20, lsns, &offset));
    CHECK_EQUAL(0, heddle_history_begin(&history, "bbbbaaaacccc", 2)); /* offsets begin anew, lower */
    CHECK_EQUAL(1, append("bbbbaaaacccc", 3, "a", "three"));
    CHECK_EQUAL(1, find("a", 2, lsns, &offset));
    CHECK(holds(lsns[0], "three"));
    CHECK_EQUAL(-ENODATA, find("a", 1, lsns, &offset));
    heddle_history_close(&history);
}

static void too_large_message_is_rejected(void)
{
    static char large[65536];
    heddle_history_state state;
    open_history(64, 100);
    CHECK_EQUAL(-EMSGSIZE, heddle_history_publish(&history, "a", 1, large, sizeof(large), &state));
    CHECK_EQUAL(1,
                heddle_history_publish(&history, "a", 1, large, heddle_history_largest_message(&history) - 1, &state));
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

static void lock_held_by_a_stopped_process_times_out(void)
{
    heddle_history_state state;
    int locked[2];
    char byte;
    open_history(64, 100);
    CHECK_EQUAL(0, pipe(locked));
    pid_t pid = fork();
    if (pid == 0) {
        if (heddle_history_lock(&history) == 0 && write(locked[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    CHECK_EQUAL(1, read(locked[0], &byte, 1));
    CHECK_EQUAL(-ETIMEDOUT, heddle_history_publish(&history, "a", 1, "one", 3, &state));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    CHECK_EQUAL(1, publish("a", "one"));
    close(locked[0]);
    close(locked[1]);
    heddle_history_close(&history);
}

static void write_half(void)
{
    const char text[] = "never committed";
    CHECK_EQUAL(0, heddle_history_lock(&history));
    uint64_t lsn = heddle_history_head(&history);
    move_tail(&history, lsn + 1024);
    write_words(&history, lsn, text, sizeof(text));
}

static void process_killed_during_a_write_leaves_no_message(void)
{
    uint64_t lsns[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(64, 100);
    publish("a", "one");
    end_within(write_half);
    CHECK_EQUAL(2, publish("a", "two"));
    CHECK_EQUAL(2, find("a", 0, lsns, &offset));
    CHECK(holds(lsns[0], "one"));
    CHECK(holds(lsns[1], "two"));
    heddle_history_close(&history);
}

/* As it is when the journal is complete, and none of it applied. */
static void write_journal(void)
{
    heddle_history_header *header = history.header;
    CHECK_EQUAL(0, heddle_history_lock(&history));
    heddle_history_topic_set sets[64 / HEDDLE_HISTORY_WAYS];
    heddle_history_state state = header->state;
    uint64_t head = heddle_history_head(&history);
    memcpy(sets, heddle_history_sets(&history), sizeof(sets));
    write_message(&history, state.count + 1, "a", 1, "two", 3);
    memcpy(heddle_history_sets(&history), sets, sizeof(sets));
    header->state = state;
    atomic_store(&header->head, head);
    atomic_store(&header->journal.complete, 1);
}

static void process_killed_after_a_write_leaves_the_message(void)
{
    uint64_t lsns[HEDDLE_HISTORY_MESSAGES], offset;
    open_history(64, 100);
    publish("a", "one");
    end_within(write_journal);
    CHECK_EQUAL(3, publish("a", "three"));
    CHECK_EQUAL(3, find("a", 0, lsns, &offset));
    CHECK(holds(lsns[1], "two"));
    CHECK(holds(lsns[2], "three"));
    heddle_history_close(&history);
}

static void another_program_continues_with_the_descriptors(void)
{
    heddle_history other;
    heddle_history_state state, of_other;
    open_history(64, 100);
    publish("a", "one");
    CHECK_EQUAL(0, heddle_history_open(&other, dup(history.memory.fd), dup(history.wake_fd)));
    CHECK_EQUAL(2, heddle_history_publish(&other, "a", 1, "two", 3, &of_other));
    CHECK_EQUAL(3, publish("a", "three"));
    CHECK_EQUAL(0, heddle_history_read_state(&history, &state));
    CHECK(strcmp(state.epoch, of_other.epoch) == 0);
    heddle_history_close(&other);
    heddle_history_close(&history);
}

static void memory_of_another_format_is_rejected(void)
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
    int64_t last = 0;
    for (int i = 1; i <= MESSAGES; i++) {
        char text[128];
        int size = snprintf(text, sizeof(text), "%s %d %0*d", topic, i, i % 64 + 1, i);
        heddle_history_state state;
        int64_t offset;
        while ((offset = heddle_history_publish(&history, topic, 1, text, (size_t)size, &state)) == -ETIMEDOUT) {
        }
        CHECK(offset > last);
        last = offset;
    }
    return NULL;
}

/* What it reads is whole, and each topic's offsets only rise; what it was too slow for is said. */
static void concurrent_readers_and_writers_see_whole_messages(void)
{
    pthread_t threads[WRITERS];
    char *topics[WRITERS] = {"a", "b", "c"};
    uint64_t seen[WRITERS] = {0}, lsn = 0, lost = 0, last = 0;
    int numbers[WRITERS] = {0};
    open_history(64, 100);
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, write_many, topics[i]);
    while (seen[0] + seen[1] + seen[2] + lost < (uint64_t)WRITERS * MESSAGES) {
        heddle_history_record record;
        char topic[8], data[256], expected[256];
        int result = heddle_history_check_record(&history, lsn, &record);
        if (result == 0)
            continue;
        if (result == 1)
            lsn = record.next;
        if (result < 0 || record.topic_size != 1 || record.data_size > sizeof(data) ||
            !heddle_history_copy_topic(&history, &record, topic) ||
            !heddle_history_copy_data(&history, &record, data)) {
            uint64_t before = last;
            heddle_history_state state;
            lsn = heddle_history_head(&history); /* first: the state is of the same messages, or of more */
            while (heddle_history_read_state(&history, &state) == -ETIMEDOUT) {
            }
            last = state.count;
            lost += last - before;
            continue;
        }
        if (record.offset <= last)
            continue;
        lost += record.offset - last - 1;
        last = record.offset;
        int which = topic[0] - 'a', number = 0;
        CHECK_EQUAL(1, sscanf(data + 2, "%d", &number));
        int size = snprintf(expected, sizeof(expected), "%c %d %0*d", topic[0], number, number % 64 + 1, number);
        CHECK_EQUAL(size, record.data_size);
        CHECK(memcmp(data, expected, (size_t)size) == 0);
        CHECK(number > numbers[which]);
        numbers[which] = number;
        seen[which]++;
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    heddle_history_close(&history);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("history", "offsets count the messages of all topics", offsets_count_the_messages_of_all_topics);
    check_run("history", "unknown position is rejected", unknown_position_is_rejected);
    check_run("history", "messages beyond the maximum number are lost", messages_beyond_the_maximum_number_are_lost);
    check_run("history", "messages that are too old are lost", messages_that_are_too_old_are_lost);
    check_run("history", "overwritten messages are lost and reported", overwritten_messages_are_lost_and_reported);
    check_run("history", "reader continues after the end of the log", reader_continues_after_the_end_of_the_log);
    check_run("history", "messages of a forgotten topic are lost", messages_of_a_forgotten_topic_are_lost);
    check_run("history", "recent messages of a forgotten topic are lost",
              recent_messages_of_a_forgotten_topic_are_lost);
    check_run("history", "new topic begins without a gap", new_topic_begins_without_a_gap);
    check_run("history", "history that follows a backend takes its offsets",
              history_that_follows_a_backend_takes_its_offsets);
    check_run("history", "new epoch or loss invalidates earlier positions",
              new_epoch_or_loss_invalidates_earlier_positions);
    check_run("history", "too large message is rejected", too_large_message_is_rejected);
    check_run("history", "lock held by a stopped process times out", lock_held_by_a_stopped_process_times_out);
    check_run("history", "process killed during a write leaves no message",
              process_killed_during_a_write_leaves_no_message);
    check_run("history", "process killed after a write leaves the message",
              process_killed_after_a_write_leaves_the_message);
    check_run("history", "another program continues with the descriptors",
              another_program_continues_with_the_descriptors);
    check_run("history", "memory of another format is rejected", memory_of_another_format_is_rejected);
    check_run("history", "concurrent readers and writers see whole messages",
              concurrent_readers_and_writers_see_whole_messages);
    return check_end();
}
