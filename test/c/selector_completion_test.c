/* sources: selector/{selector,fd_table,wakeup,uring,uring_ring,epoll,kqueue,select}.c */
#include "selector_helper.h"

/* Completions: the selector owns the buffer until the last event. Buffers come from malloc, so that ASan sees. */

static int submit(noting_waiter *waiter, heddle_operation operation)
{
    int result = operations->submit(selector, &waiter->base, &operation);
    CHECK_EQUAL(result == 0, waiter->base.armed);
    return result;
}

static heddle_operation reading(int fd, void *buffer, uint32_t length, int64_t offset)
{
    return (heddle_operation){false, fd, buffer, length, offset};
}

static heddle_operation writing(int fd, void *buffer, uint32_t length, int64_t offset)
{
    return (heddle_operation){true, fd, buffer, length, offset};
}

static int temporary_file(void)
{
    char path[] = "/tmp/heddle-selector-XXXXXX";
    int fd = (int)MUST(mkstemp(path));
    unlink(path);
    return fd;
}

static void a_file_is_written_and_read(void)
{
    open_selector();
    int fd = temporary_file();
    char *buffer = malloc(16);
    noting_waiter waiter = {.base.fn = note};

    memcpy(buffer, "warp and weft", 13);
    CHECK_EQUAL(0, submit(&waiter, writing(fd, buffer, 13, 0)));
    CHECK_EQUAL(0, waiter.calls);
    TURN_UNTIL(waiter.calls == 1);
    CHECK_EQUAL(13, waiter.result);
    CHECK_EQUAL(HEDDLE_COMPLETION, waiter.flags);
    CHECK(!waiter.base.armed);

    memset(buffer, 0, 16);
    CHECK_EQUAL(0, submit(&waiter, reading(fd, buffer, 16, 5)));
    TURN_UNTIL(waiter.calls == 2);
    CHECK_EQUAL(8, waiter.result);
    CHECK_EQUAL(0, memcmp(buffer, "and weft", 8));

    CHECK_EQUAL(0, submit(&waiter, reading(fd, buffer, 16, 13)));
    TURN_UNTIL(waiter.calls == 3);
    CHECK_EQUAL(0, waiter.result); /* the end */
    free(buffer);
    close(fd);
    close_selector();
}

static void position_of_the_file_is_used_and_moved(void)
{
    open_selector();
    int fd = temporary_file();
    char *buffer = malloc(4);
    noting_waiter waiter = {.base.fn = note};
    memcpy(buffer, "abcd", 4);
    for (int i = 1; i <= 2; i++) {
        CHECK_EQUAL(0, submit(&waiter, writing(fd, buffer, 4, -1)));
        TURN_UNTIL(waiter.calls == i);
        CHECK_EQUAL(4, waiter.result);
    }
    CHECK_EQUAL(8, lseek(fd, 0, SEEK_CUR));
    free(buffer);
    close(fd);
    close_selector();
}

static void a_read_waits_for_data(void)
{
    int fds[2];
    open_selector();
    make_pair(fds);
    /* As a blocking descriptor: with O_NONBLOCK the kernel answers EAGAIN. */
    MUST(fcntl(fds[0], F_SETFL, 0));
    char *buffer = malloc(8);
    noting_waiter waiter = {.base.fn = note};
    CHECK_EQUAL(0, submit(&waiter, reading(fds[0], buffer, 8, -1)));
    settle();
    CHECK_EQUAL(0, waiter.calls);
    put_byte(fds[1]);
    TURN_UNTIL(waiter.calls);
    CHECK_EQUAL(1, waiter.result);
    CHECK_EQUAL('x', buffer[0]);
    free(buffer);
    close_both(fds);
    close_selector();
}

/* Cancelled in each phase: before the kernel heard of it, and while it waits. */
static void cancelled_read_owns_its_buffer_until_its_last_event(void)
{
    int fds[2];
    char byte;
    open_selector();
    MUST(pipe(fds));
    for (int settled = 0; settled < 2; settled++) {
        char *buffer = malloc(8);
        noting_waiter waiter = {.base.fn = note};
        CHECK_EQUAL(0, submit(&waiter, reading(fds[0], buffer, 8, -1)));
        if (settled)
            settle();
        operations->cancel(selector, &waiter.base);
        CHECK(waiter.base.armed); /* its last event is still to come */
        TURN_UNTIL(waiter.calls);
        CHECK_EQUAL(-ECANCELED, waiter.result);
        CHECK_EQUAL(HEDDLE_COMPLETION, waiter.flags);
        CHECK(!waiter.base.armed);
        free(buffer);

        put_byte(fds[1]);
        settle();
        CHECK_EQUAL(1, waiter.calls);
        CHECK_EQUAL(1, read(fds[0], &byte, 1)); /* nothing was taken from the pipe */
    }
    close_both(fds);
    close_selector();
}

static void second_or_late_cancellation_does_nothing(void)
{
    int fds[2];
    open_selector();
    MUST(pipe(fds));
    char *buffer = malloc(8);
    noting_waiter waiter = {.base.fn = note};
    CHECK_EQUAL(0, submit(&waiter, reading(fds[0], buffer, 8, -1)));
    for (int i = 0; i < 1000; i++)
        operations->cancel(selector, &waiter.base);
    TURN_UNTIL(waiter.calls);
    operations->cancel(selector, &waiter.base);
    settle();
    CHECK_EQUAL(1, waiter.calls);

    /* The data is there and the cancellation too: either wins, the buffer comes back once. */
    put_byte(fds[1]);
    CHECK_EQUAL(0, submit(&waiter, reading(fds[0], buffer, 8, -1)));
    operations->cancel(selector, &waiter.base);
    TURN_UNTIL(waiter.calls == 2);
    CHECK(waiter.result == 1 || waiter.result == -ECANCELED);
    settle();
    CHECK_EQUAL(2, waiter.calls);
    free(buffer);
    close_both(fds);
    close_selector();
}

static void operation_on_a_closed_descriptor_fails(void)
{
    char byte;
    open_selector();
    noting_waiter waiter = {.base.fn = note};
    CHECK_EQUAL(0, submit(&waiter, reading(15000, &byte, 1, -1)));
    TURN_UNTIL(waiter.calls);
    CHECK_EQUAL(-EBADF, waiter.result);
    close_selector();
}

/*
 * What the kernel still had must not be written after close has returned: the buffer is freed then. Many times,
 * since the kernel ends what is left of a closed ring in its own time.
 */
static void close_ends_running_operations(void)
{
    int fds[2];
    char byte;
    MUST(pipe(fds));
    for (int i = 0; i < 300; i++) {
        open_selector();
        char *buffer = calloc(1, 8);
        noting_waiter waiter = {.base.fn = note};
        CHECK_EQUAL(0, submit(&waiter, reading(fds[0], buffer, 8, -1)));
        CHECK_EQUAL(0, operations->poll(selector));
        close_selector();
        put_byte(fds[1]);
        CHECK_EQUAL(1, read(fds[0], &byte, 1)); /* hangs where the kernel took it */
        CHECK_EQUAL(0, buffer[0]);
        CHECK_EQUAL(0, waiter.calls);
        free(buffer);
    }
    close_both(fds);
}

static const behaviour BEHAVIOURS[] = {
    {"a file is written and read", a_file_is_written_and_read, true},
    {"the file's own position is used and moved", position_of_the_file_is_used_and_moved, true},
    {"a read waits for data", a_read_waits_for_data, true},
    {"cancelled read owns its buffer until its last event", cancelled_read_owns_its_buffer_until_its_last_event, true},
    {"second or late cancellation does nothing", second_or_late_cancellation_does_nothing, true},
    {"operation on a closed descriptor fails", operation_on_a_closed_descriptor_fails, true},
    {"close ends running operations", close_ends_running_operations, true},
};

int main(int argc, char **argv)
{
    return RUN_BEHAVIOURS(BEHAVIOURS);
}
