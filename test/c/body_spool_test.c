/* sources: http/body/spool.c http/body/writer.c http/body/files.c http/body/disk.c net/scoreboard.c net/shared_memory.c */
/* wrap: pwrite close clock_gettime */
#include "check.h"
#include "http/body/disk.h"
#include "http/body/spool.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* What the disk does, as a test wants it. */
static sem_t disk_entered, disk_leaves;
static _Atomic bool disk_waits;
static _Atomic int disk_error, disk_bytes_at_most, closes;

ssize_t __real_pwrite(int fd, const void *memory, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *memory, size_t size, off_t offset)
{
    if (disk_waits) {
        sem_post(&disk_entered);
        sem_wait(&disk_leaves);
    }
    int error = atomic_exchange(&disk_error, 0);
    if (error) {
        errno = error;
        return -1;
    }
    if (disk_bytes_at_most && size > (size_t)disk_bytes_at_most)
        size = (size_t)disk_bytes_at_most;
    return __real_pwrite(fd, memory, size, offset);
}

int __real_close(int fd);
int __wrap_close(int fd)
{
    int result = __real_close(fd);
    closes++;
    return result;
}

/* Each time somebody has read the clock of the day it is put back by an hour. */
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = __real_clock_gettime(clock, time);
    if (clock == CLOCK_REALTIME)
        time->tv_sec += 3600;
    return result;
}

/* A loop that has nothing but its inbox. */
static heddle_inbox inbox;
static sem_t posted;
static int written, last_error;

static void post(void *loop, heddle_loop_message *message)
{
    heddle_inbox_post(loop, message);
    sem_post(&posted);
}

static void note_written(void *owner, int error)
{
    (void)owner;
    written++;
    last_error = error;
}

static void await_message(void)
{
    sem_wait(&posted);
    heddle_inbox_open(&inbox);
}

static const heddle_spool_owner owner = {.written = note_written, .post = post, .loop = &inbox};
static char folder[] = "/tmp/heddle-spool-XXXXXX";

static heddle_body_spool *new_spool(void)
{
    sem_init(&posted, 0, 0);
    sem_init(&disk_entered, 0, 0);
    sem_init(&disk_leaves, 0, 0);
    return heddle_body_spool_new(folder, &owner, 0);
}

static void fill(heddle_body_spool *spool, size_t size, char with)
{
    size_t room;
    char *memory = heddle_body_spool_make_room(spool, size, &room);
    CHECK(memory && room >= size);
    memset(memory, with, size);
    spool->used += size;
}

/* The writer's thread may still be on its way. */
static void await_closed(int files)
{
    while (closes < files || heddle_body_disk_used())
        usleep(1000);
}

static void body_is_read_as_it_was_written(void)
{
    heddle_body_spool *spool = new_spool();
    char memory[100];
    for (int i = 0; i < 3; i++) {
        fill(spool, HEDDLE_SPOOL_BUFFER, (char)('a' + i));
        CHECK(heddle_body_spool_full(spool));
        CHECK_EQUAL(0, heddle_body_spool_submit(spool, 1000000));
        await_message();
        CHECK_EQUAL(0, last_error);
    }
    fill(spool, 10, 'd');
    CHECK_EQUAL(0, heddle_body_spool_submit(spool, 1000000));
    await_message();
    CHECK_EQUAL(3 * HEDDLE_SPOOL_BUFFER + 10, spool->size);
    CHECK_EQUAL(100, heddle_body_spool_read(spool, HEDDLE_SPOOL_BUFFER - 50, memory, 100));
    CHECK(memory[49] == 'a' && memory[50] == 'b');
    CHECK_EQUAL(10, heddle_body_spool_read(spool, 3 * HEDDLE_SPOOL_BUFFER, memory, 100));
    CHECK(memory[9] == 'd');
    CHECK_EQUAL(0, rmdir(folder)); /* its file has no name there */
    heddle_body_spool_release(spool);
    await_closed(1);
}

static void bytes_larger_than_the_buffer_are_stored_at_once(void)
{
    heddle_body_spool *spool = new_spool();
    static char bytes[200000];
    char byte;
    memset(bytes, 'x', sizeof(bytes));
    disk_bytes_at_most = 3000;
    CHECK(heddle_body_spool_put(spool, bytes, sizeof(bytes)));
    CHECK_EQUAL(0, heddle_body_spool_submit(spool, 1000000));
    await_message();
    CHECK_EQUAL(sizeof(bytes), spool->size);
    CHECK_EQUAL(1, heddle_body_spool_read(spool, sizeof(bytes) - 1, &byte, 1));
    heddle_body_spool_release(spool);
    await_closed(1);
}

static void interrupted_write_continues_and_failed_write_is_reported(void)
{
    heddle_body_spool *spool = new_spool();
    disk_error = EINTR;
    fill(spool, 10, 'a');
    CHECK_EQUAL(0, heddle_body_spool_submit(spool, 1000));
    await_message();
    CHECK_EQUAL(0, last_error);
    disk_error = ENOSPC;
    fill(spool, 10, 'a');
    CHECK_EQUAL(0, heddle_body_spool_submit(spool, 1000));
    await_message();
    CHECK_EQUAL(ENOSPC, last_error);
    heddle_body_spool_release(spool);
    await_closed(1);
}

static void missing_folder_is_reported(void)
{
    heddle_body_spool *spool = new_spool();
    MUST(rmdir(folder));
    fill(spool, 10, 'a');
    CHECK_EQUAL(0, heddle_body_spool_submit(spool, 1000));
    await_message();
    CHECK_EQUAL(ENOENT, last_error);
    heddle_body_spool_release(spool);
    await_closed(0);
}

static void limit_applies_to_all_bodies_together(void)
{
    heddle_body_spool *one = new_spool(), *other = heddle_body_spool_new(folder, &owner, 0);
    fill(one, 600, 'a');
    CHECK_EQUAL(0, heddle_body_spool_submit(one, 1000));
    await_message();
    fill(other, 401, 'b');
    CHECK_EQUAL(-ENOBUFS, heddle_body_spool_submit(other, 1000));
    heddle_body_spool_release(one);
    await_closed(1);
    CHECK_EQUAL(0, heddle_body_spool_submit(other, 1000));
    await_message();
    heddle_body_spool_release(other);
    await_closed(2);
}

static void bytes_of_a_closed_body_do_not_count_before_its_file_is_closed(void)
{
    heddle_body_spool *one = new_spool(), *busy = heddle_body_spool_new(folder, &owner, 0);
    fill(one, 600, 'a');
    CHECK_EQUAL(0, heddle_body_spool_submit(one, 1000));
    await_message();
    disk_waits = true;
    fill(busy, 10, 'b');
    CHECK_EQUAL(0, heddle_body_spool_submit(busy, 1000));
    sem_wait(&disk_entered);
    heddle_body_spool_release(one);
    CHECK_EQUAL(20, heddle_body_disk_used());
    CHECK(heddle_body_disk_has_room(&(heddle_body_disk_count){0}, 980, 1000));
    CHECK_EQUAL(0, closes);
    disk_waits = false;
    sem_post(&disk_leaves);
    await_message();
    heddle_body_spool_release(busy);
    await_closed(2);
}

static void quarter_of_the_descriptors_is_for_files(void)
{
    enum { LIMIT = 64, FILES = LIMIT / 4 };
    struct rlimit before, low;
    getrlimit(RLIMIT_NOFILE, &before);
    low = (struct rlimit){.rlim_cur = LIMIT, .rlim_max = before.rlim_max};
    CHECK_EQUAL(0, setrlimit(RLIMIT_NOFILE, &low));
    heddle_body_spool *spools[FILES];
    for (int i = 0; i < FILES; i++)
        CHECK((spools[i] = new_spool()));
    errno = 0;
    CHECK(!new_spool());
    CHECK_EQUAL(EMFILE, errno);
    fill(spools[0], 10, 'a');
    CHECK_EQUAL(0, heddle_body_spool_submit(spools[0], 1000));
    await_message();
    heddle_body_spool_release(spools[1]); /* never had a file */
    CHECK((spools[1] = new_spool()));
    CHECK(!new_spool());
    for (int i = 0; i < FILES; i++)
        heddle_body_spool_release(spools[i]);
    await_closed(1);
    heddle_body_spool *next = new_spool();
    CHECK(next);
    heddle_body_spool_release(next);
    setrlimit(RLIMIT_NOFILE, &before);
}

static void submit_and_await(heddle_body_spool *spool, size_t size, uint64_t limit)
{
    fill(spool, size, 'a');
    CHECK_EQUAL(0, heddle_body_spool_submit(spool, limit));
    await_message();
}

static void twice_the_received_bytes_are_counted(void)
{
    heddle_body_spool *spool = new_spool();
    uint64_t sizes[] = {100, 100, 1, 199, 1, HEDDLE_SPOOL_BUFFER - 1}, size = 0;
    uint64_t counted[] = {200, 200, 402, 402, 402, 2 * (HEDDLE_SPOOL_BUFFER + 400)};
    CHECK_EQUAL(0, heddle_body_disk_used());
    for (int i = 0; i < 6; i++) {
        submit_and_await(spool, (size_t)sizes[i], UINT64_MAX);
        size += sizes[i];
        CHECK_EQUAL(size, spool->size);
        CHECK_EQUAL(counted[i], heddle_body_disk_used());
    }
    heddle_body_spool_release(spool);
    await_closed(1);
}

static void bytes_counted_in_advance_have_a_limit(void)
{
    heddle_body_spool *spool = new_spool();
    while (heddle_body_disk_used() < 4 * HEDDLE_SPOOL_AHEAD) {
        submit_and_await(spool, HEDDLE_SPOOL_BUFFER, UINT64_MAX);
        CHECK(heddle_body_disk_used() <= 2 * spool->size);
        CHECK(heddle_body_disk_used() <= spool->size + HEDDLE_SPOOL_AHEAD);
    }
    heddle_body_spool_release(spool);
    await_closed(1);
}

static void counted_bytes_exceed_neither_the_announced_length_nor_the_room(void)
{
    heddle_body_spool *one = new_spool(), *other = new_spool();
    one->length = 700;
    submit_and_await(one, 100, 1000);
    CHECK_EQUAL(200, heddle_body_disk_used());
    submit_and_await(one, 300, 1000);
    CHECK_EQUAL(700, heddle_body_disk_used());
    submit_and_await(other, 200, 1000);
    CHECK_EQUAL(900, heddle_body_disk_used());
    submit_and_await(one, 300, 1000);
    CHECK_EQUAL(900, heddle_body_disk_used());
    heddle_body_spool_release(one);
    heddle_body_spool_release(other);
    await_closed(2);
}

static void spool_released_during_a_write_is_closed_without_a_message(void)
{
    heddle_body_spool *one = new_spool(), *queued = heddle_body_spool_new(folder, &owner, 0);
    disk_waits = true;
    fill(one, 10, 'a');
    CHECK_EQUAL(0, heddle_body_spool_submit(one, 1000));
    sem_wait(&disk_entered);
    fill(queued, 10, 'a');
    CHECK_EQUAL(0, heddle_body_spool_submit(queued, 1000));
    disk_waits = false;
    heddle_body_spool_release(queued); /* without a file, and nothing is written */
    heddle_body_spool_release(one);
    sem_post(&disk_leaves);
    await_closed(1);
    CHECK_EQUAL(0, written);
    CHECK(heddle_inbox_empty(&inbox));
}

static void spool_released_after_a_write_is_freed_when_its_message_is_opened(void)
{
    heddle_body_spool *spool = new_spool();
    fill(spool, 10, 'a');
    CHECK_EQUAL(0, heddle_body_spool_submit(spool, 1000));
    sem_wait(&posted);
    heddle_body_spool_release(spool);
    await_closed(1); /* though nothing opens it */
    heddle_inbox_open(&inbox);
    CHECK_EQUAL(0, written);
}

static void file_is_closed_when_the_last_read_has_ended(void)
{
    heddle_body_spool *spool = new_spool();
    fill(spool, 10, 'a');
    CHECK_EQUAL(0, heddle_body_spool_submit(spool, 1000));
    await_message();
    spool->holders++;
    CHECK(heddle_body_spool_begin_read(spool));
    heddle_body_spool_close(spool);
    heddle_body_spool_release(spool);
    CHECK(!heddle_body_spool_begin_read(spool));
    CHECK_EQUAL(20, heddle_body_disk_used());
    heddle_body_spool_end_read(spool);
    await_closed(1);
    heddle_body_spool_close(spool);
    heddle_body_spool_release(spool);
}

static void empty_buffer_is_freed(void)
{
    heddle_body_spool *spool = new_spool();
    fill(spool, 10, 'a');
    heddle_body_spool_trim(spool);
    CHECK(spool->buffer);
    CHECK_EQUAL(0, heddle_body_spool_submit(spool, 1000));
    await_message();
    heddle_body_spool_trim(spool);
    CHECK(!spool->buffer);
    heddle_body_spool_release(spool);
    await_closed(1);
}

static size_t room_for(heddle_body_spool *spool, uint64_t expected)
{
    size_t room = 0;
    CHECK(heddle_body_spool_make_room(spool, expected, &room));
    return room;
}

/* How many bytes of large buffers there are: as many as the limit has no room for. */
static size_t large_buffers(void)
{
    size_t room = HEDDLE_SPOOL_LARGE_BUFFERS;
    while (!heddle_body_memory_acquire(room))
        room--;
    heddle_body_memory_release(room);
    return HEDDLE_SPOOL_LARGE_BUFFERS - room;
}

static void body_of_known_large_size_gets_a_larger_buffer(void)
{
    heddle_body_spool *small = new_spool(), *medium = heddle_body_spool_new(folder, &owner, 0),
                      *large = heddle_body_spool_new(folder, &owner, 0);
    CHECK_EQUAL(HEDDLE_SPOOL_BUFFER, room_for(small, 10));
    CHECK_EQUAL(0, large_buffers());
    CHECK_EQUAL(100000, room_for(medium, 100000));
    CHECK_EQUAL(HEDDLE_SPOOL_LARGE_BUFFER, room_for(large, 1 << 30));
    CHECK_EQUAL(100000 + HEDDLE_SPOOL_LARGE_BUFFER, large_buffers());
    heddle_body_spool_trim(medium);
    CHECK_EQUAL(HEDDLE_SPOOL_LARGE_BUFFER, large_buffers());
    heddle_body_spool_release(small);
    heddle_body_spool_release(medium);
    heddle_body_spool_release(large);
    CHECK_EQUAL(0, large_buffers());
}

static void body_of_unknown_length_gets_a_larger_buffer_once_it_is_large(void)
{
    heddle_body_spool *spool = new_spool();
    CHECK_EQUAL(HEDDLE_SPOOL_BUFFER, room_for(spool, HEDDLE_SPOOL_UNKNOWN));
    for (int i = 0; i < 2; i++) {
        spool->used += room_for(spool, HEDDLE_SPOOL_UNKNOWN);
        CHECK_EQUAL(0, heddle_body_spool_submit(spool, 1000000));
        await_message();
    }
    heddle_body_spool_trim(spool);
    CHECK_EQUAL(2 * HEDDLE_SPOOL_BUFFER, room_for(spool, HEDDLE_SPOOL_UNKNOWN));
    heddle_body_spool_release(spool);
    await_closed(1);
}

static void buffers_are_small_when_large_buffers_are_at_their_limit(void)
{
    enum { ALL = HEDDLE_SPOOL_LARGE_BUFFERS / HEDDLE_SPOOL_LARGE_BUFFER };
    heddle_body_spool *spools[ALL], *late = new_spool();
    for (int i = 0; i < ALL; i++) {
        spools[i] = heddle_body_spool_new(folder, &owner, 0);
        CHECK_EQUAL(HEDDLE_SPOOL_LARGE_BUFFER, room_for(spools[i], 1 << 30));
    }
    CHECK_EQUAL(HEDDLE_SPOOL_BUFFER, room_for(late, 1 << 30));
    CHECK_EQUAL(HEDDLE_SPOOL_LARGE_BUFFERS, large_buffers());
    heddle_body_spool_release(spools[0]);
    CHECK_EQUAL(HEDDLE_SPOOL_BUFFER, room_for(late, 1 << 30)); /* the one it has */
    heddle_body_spool_trim(late);
    CHECK_EQUAL(HEDDLE_SPOOL_LARGE_BUFFER, room_for(late, 1 << 30));
    heddle_body_spool_release(late);
    for (int i = 1; i < ALL; i++)
        heddle_body_spool_release(spools[i]);
    CHECK_EQUAL(0, large_buffers());
}

/* 0, or the line that failed: a child reports by its status. */
static int look_in_child(heddle_body_spool *kept, heddle_body_spool *other, int other_fd)
{
    char byte;
    if (heddle_body_spool_read(kept, 9, &byte, 1) != 1 || byte != 'k')
        return __LINE__;
    if (fcntl(other_fd, F_GETFD) >= 0 || heddle_body_disk_used())
        return __LINE__;
    heddle_body_spool_release(other);
    heddle_body_spool_release(kept);
#ifndef __SANITIZE_THREAD__ /* which has no threads in a child */
    heddle_body_spool *own = new_spool();
    fill(own, 10, 'o');
    if (heddle_body_spool_submit(own, 1000))
        return __LINE__;
    await_message();
    heddle_body_spool_release(own);
#endif
    return last_error;
}

static void forked_child_keeps_only_files_of_the_application_and_starts_its_own_writer(void)
{
    heddle_body_spool *kept = new_spool(), *other = heddle_body_spool_new(folder, &owner, 0);
    fill(kept, 10, 'k');
    CHECK_EQUAL(0, heddle_body_spool_submit(kept, 1000));
    await_message();
    kept->kept = true;
    fill(other, 10, 'x');
    CHECK_EQUAL(0, heddle_body_spool_submit(other, 1000));
    await_message();
    int other_fd = other->fd;
    disk_waits = true;
    fill(other, 10, 'x');
    CHECK_EQUAL(0, heddle_body_spool_submit(other, 1000));
    sem_wait(&disk_entered);
    disk_waits = false;
    pid_t child = MUST(fork());
    if (child == 0)
        _exit(look_in_child(kept, other, other_fd));
    int status = 0;
    MUST(waitpid(child, &status, 0));
    CHECK_EQUAL(0, WEXITSTATUS(status));
    CHECK_EQUAL(0, WIFSIGNALED(status));
    sem_post(&disk_leaves);
    await_message();
    CHECK_EQUAL(0, last_error);
    heddle_body_spool_release(kept);
    heddle_body_spool_release(other);
    await_closed(2);
}

/* Each in a folder of its own. */
#define RUN(test)                                                                                                     \
    do {                                                                                                              \
        memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);                                                             \
        CHECK(mkdtemp(folder));                                                                                       \
        check_run("body_spool", #test, test);                                                                         \
        rmdir(folder);                                                                                                \
    } while (0)

int main(int count, char **words)
{
    check_filter = count > 1 ? words[1] : NULL;
    RUN(body_is_read_as_it_was_written);
    RUN(bytes_larger_than_the_buffer_are_stored_at_once);
    RUN(interrupted_write_continues_and_failed_write_is_reported);
    RUN(missing_folder_is_reported);
    RUN(limit_applies_to_all_bodies_together);
    RUN(bytes_of_a_closed_body_do_not_count_before_its_file_is_closed);
    RUN(quarter_of_the_descriptors_is_for_files);
    RUN(twice_the_received_bytes_are_counted);
    RUN(bytes_counted_in_advance_have_a_limit);
    RUN(counted_bytes_exceed_neither_the_announced_length_nor_the_room);
    RUN(spool_released_during_a_write_is_closed_without_a_message);
    RUN(spool_released_after_a_write_is_freed_when_its_message_is_opened);
    RUN(file_is_closed_when_the_last_read_has_ended);
    RUN(empty_buffer_is_freed);
    RUN(body_of_known_large_size_gets_a_larger_buffer);
    RUN(body_of_unknown_length_gets_a_larger_buffer_once_it_is_large);
    RUN(buffers_are_small_when_large_buffers_are_at_their_limit);
    RUN(forked_child_keeps_only_files_of_the_application_and_starts_its_own_writer);
    return check_end();
}
