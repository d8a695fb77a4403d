/* sources: selector/{selector,fd_table,wakeup,uring,uring_ring,epoll,kqueue,select}.c */
#include "selector_helper.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static void descriptor_is_readable_when_data_comes(void)
{
    int fds[2];
    open_selector();
    make_pipe(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    settle();
    CHECK_EQUAL(0, waiter.calls);

    put_byte(fds[1]);
    TURN_UNTIL(waiter.calls);
    CHECK_EQUAL(1, waiter.calls);
    CHECK_EQUAL(HEDDLE_READABLE, waiter.result);
    CHECK_EQUAL(0, waiter.flags);
    CHECK(!waiter.base.armed);
    close_both(fds);
    close_selector();
}

static void descriptor_with_earlier_data_is_readable(void)
{
    int fds[2];
    open_selector();
    make_pipe(fds);
    put_byte(fds[1]);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    TURN_UNTIL(waiter.calls);
    CHECK_EQUAL(HEDDLE_READABLE, waiter.result);

    /* Unread: the next wait finds it again. */
    arm(&waiter);
    TURN_UNTIL(waiter.calls == 2);
    close_both(fds);
    close_selector();
}

static void descriptor_is_writable_only_when_there_is_room(void)
{
    int fds[2];
    char block[4096] = "";
    open_selector();
    make_pair(fds);
    while (write(fds[0], block, sizeof(block)) > 0)
        continue;
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_WRITABLE);
    arm(&waiter);
    settle();
    CHECK_EQUAL(0, waiter.calls);
    drain(fds[1]);
    TURN_UNTIL(waiter.calls);
    CHECK_EQUAL(1, waiter.calls);
    CHECK_EQUAL(HEDDLE_WRITABLE, waiter.result);
    close_both(fds);
    close_selector();
}

static void one_shot_waiter_is_called_once(void)
{
    int fds[2];
    open_selector();
    make_pipe(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    put_byte(fds[1]);
    TURN_UNTIL(waiter.calls);
    put_byte(fds[1]);
    settle();
    CHECK_EQUAL(1, waiter.calls);
    close_both(fds);
    close_selector();
}

static void wait_calls_no_callback(void)
{
    int fds[2];
    open_selector();
    make_pipe(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    put_byte(fds[1]);
    for (int i = 0; i < 3 && waiter.calls == 0; i++) {
        CHECK_EQUAL(0, operations->wait(selector, SECOND));
        CHECK_EQUAL(0, waiter.calls);
        operations->harvest(selector);
    }
    CHECK_EQUAL(1, waiter.calls);
    close_both(fds);
    close_selector();
}

static void poll_delivers_without_waiting(void)
{
    int fds[2];
    open_selector();
    make_pipe(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    CHECK_EQUAL(0, operations->poll(selector));
    put_byte(fds[1]);
    CHECK(!operations->pending || operations->pending(selector));
    CHECK_EQUAL(0, operations->poll(selector));
    CHECK_EQUAL(1, waiter.calls);
    close_both(fds);
    close_selector();
}

static void two_waiters_may_share_a_descriptor(void)
{
    int fds[2];
    open_selector();
    make_pair(fds);
    noting_waiter reader = waiter_for(fds[0], HEDDLE_READABLE), writer = waiter_for(fds[0], HEDDLE_WRITABLE);
    noting_waiter other = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&reader);
    arm(&writer);
    TURN_UNTIL(writer.calls);
    CHECK_EQUAL(HEDDLE_WRITABLE, writer.result);
    CHECK_EQUAL(0, reader.calls);
    CHECK(reader.base.armed);

    arm(&other);
    settle();
    put_byte(fds[1]);
    TURN_UNTIL(reader.calls && other.calls);
    CHECK_EQUAL(HEDDLE_READABLE, reader.result);
    CHECK_EQUAL(HEDDLE_READABLE, other.result);
    CHECK_EQUAL(1, reader.calls);
    CHECK_EQUAL(1, other.calls);
    CHECK_EQUAL(1, writer.calls);
    close_both(fds);
    close_selector();
}

static void waiter_may_wait_for_reading_and_writing(void)
{
    int fds[2];
    open_selector();
    make_pair(fds);
    put_byte(fds[1]);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE | HEDDLE_WRITABLE);
    arm(&waiter);
    TURN_UNTIL(waiter.calls);
    CHECK_EQUAL(1, waiter.calls);
    CHECK(waiter.result > 0 && !(waiter.result & ~(HEDDLE_READABLE | HEDDLE_WRITABLE)));
    settle();
    CHECK_EQUAL(1, waiter.calls);
    close_both(fds);
    close_selector();
}

static void descriptor_is_readable_when_the_peer_closes(void)
{
    int fds[2], pair[2];
    open_selector();
    make_pipe(fds);
    make_pair(pair);
    noting_waiter piped = waiter_for(fds[0], HEDDLE_READABLE), paired = waiter_for(pair[0], HEDDLE_READABLE);
    arm(&piped);
    arm(&paired);
    close(fds[1]);
    close(pair[1]);
    TURN_UNTIL(piped.calls && paired.calls);
    CHECK_EQUAL(HEDDLE_READABLE, piped.result);
    CHECK_EQUAL(HEDDLE_READABLE, paired.result);
    close(fds[0]);
    close(pair[0]);
    close_selector();
}

static void descriptor_is_readable_after_a_half_close(void)
{
    int fds[2];
    open_selector();
    make_pair(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    MUST(shutdown(fds[1], SHUT_WR));
    TURN_UNTIL(waiter.calls);
    CHECK_EQUAL(HEDDLE_READABLE, waiter.result);
    close_both(fds);
    close_selector();
}

static void make_tcp(int fds[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(bind(listener, (struct sockaddr *)&address, size));
    MUST(listen(listener, 1));
    MUST(getsockname(listener, (struct sockaddr *)&address, &size));
    fds[0] = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(connect(fds[0], (struct sockaddr *)&address, size));
    fds[1] = (int)MUST(accept(listener, NULL, NULL));
    close(listener);
}

static void reset_wakes_readers_and_writers(void)
{
    int fds[2];
    char block[65536] = "";
    struct linger linger = {.l_onoff = 1};
    open_selector();
    make_tcp(fds);
    MUST(fcntl(fds[0], F_SETFL, O_NONBLOCK));
    while (write(fds[0], block, sizeof(block)) > 0)
        continue;
    noting_waiter reader = waiter_for(fds[0], HEDDLE_READABLE), writer = waiter_for(fds[0], HEDDLE_WRITABLE);
    arm(&reader);
    arm(&writer);
    MUST(setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
    close(fds[1]);
    TURN_UNTIL(reader.calls && writer.calls);
    CHECK_EQUAL(HEDDLE_READABLE, reader.result);
    CHECK_EQUAL(HEDDLE_WRITABLE, writer.result);
    close(fds[0]);
    close_selector();
}

static void pipe_without_a_reader_is_writable(void)
{
    int fds[2];
    char block[4096] = "";
    open_selector();
    make_pipe(fds);
    while (write(fds[1], block, sizeof(block)) > 0)
        continue;
    noting_waiter waiter = waiter_for(fds[1], HEDDLE_WRITABLE);
    arm(&waiter);
    close(fds[0]);
    TURN_UNTIL(waiter.calls);
    CHECK_EQUAL(HEDDLE_WRITABLE, waiter.result);
    close(fds[1]);
    close_selector();
}

static void urgent_data_is_reported_as_priority(void)
{
    int fds[2];
    open_selector();
    make_tcp(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_PRIORITY);
    arm(&waiter);
    if (strcmp(operations->name, "kqueue") == 0 && waiter.result == -ENOTSUP) {
        /* Only macOS, OpenBSD and DragonFly have a filter for it: refused, not forgotten. */
        close_both(fds);
        close_selector();
        return;
    }
    settle();
    CHECK_EQUAL(0, waiter.calls);
    put_byte(fds[1]); /* ordinary data is none */
    settle();
    put_byte(fds[1]);
    settle();
    CHECK_EQUAL(0, waiter.calls);
    CHECK_EQUAL(1, send(fds[1], "!", 1, MSG_OOB));
    TURN_UNTIL(waiter.calls);
    CHECK_EQUAL(HEDDLE_PRIORITY, waiter.result);
    close_both(fds);
    close_selector();
}

static void persistent_waiter_stays_armed(void)
{
    int fds[2];
    open_selector();
    make_pair(fds);
    put_byte(fds[1]); /* before it is armed */
    noting_waiter waiter = persistent_waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    for (int round = 1; round <= 100; round++) {
        int calls = waiter.calls;
        TURN_UNTIL(waiter.calls > calls);
        CHECK_EQUAL(HEDDLE_READABLE, waiter.result);
        CHECK_EQUAL(HEDDLE_MORE, waiter.flags);
        CHECK(waiter.base.armed);
        drain(fds[0]);
        settle();
        put_byte(fds[1]);
    }
    disarm(&waiter);
    int calls = waiter.calls;
    put_byte(fds[1]);
    settle();
    CHECK_EQUAL(calls, waiter.calls);
    close_both(fds);
    close_selector();
}

static void persistent_waiter_for_both_directions_gets_both_events(void)
{
    int fds[2];
    open_selector();
    make_pair(fds);
    noting_waiter waiter = persistent_waiter_for(fds[0], HEDDLE_READABLE | HEDDLE_WRITABLE);
    arm(&waiter);
    TURN_UNTIL(waiter.result & HEDDLE_WRITABLE);
    CHECK(!(waiter.result & HEDDLE_READABLE));
    put_byte(fds[1]);
    TURN_UNTIL(waiter.result & HEDDLE_READABLE);
    disarm(&waiter);
    close_both(fds);
    close_selector();
}

static void persistent_waiter_gets_the_end_of_input(void)
{
    int fds[2];
    open_selector();
    make_pair(fds);
    noting_waiter waiter = persistent_waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    settle();
    close(fds[1]);
    TURN_UNTIL(waiter.calls);
    CHECK_EQUAL(HEDDLE_READABLE, waiter.result);
    disarm(&waiter);
    close(fds[0]);
    close_selector();
}

static void regular_file_is_always_ready(void)
{
    char path[] = "/tmp/heddle-selector-XXXXXX";
    open_selector();
    int fd = (int)MUST(mkstemp(path));
    unlink(path);
    noting_waiter reader = waiter_for(fd, HEDDLE_READABLE), writer = waiter_for(fd, HEDDLE_WRITABLE);
    arm(&reader);
    arm(&writer);
    TURN_UNTIL(reader.calls && writer.calls);
    CHECK_EQUAL(HEDDLE_READABLE, reader.result);
    CHECK_EQUAL(HEDDLE_WRITABLE, writer.result);
    close(fd);
    close_selector();
}

static const behaviour BEHAVIOURS[] = {
    {"descriptor is readable when data comes", descriptor_is_readable_when_data_comes},
    {"descriptor with earlier data is readable", descriptor_with_earlier_data_is_readable},
    {"descriptor is writable only when there is room", descriptor_is_writable_only_when_there_is_room},
    {"one shot waiter is called once", one_shot_waiter_is_called_once},
    {"wait calls no callback", wait_calls_no_callback},
    {"poll delivers without waiting", poll_delivers_without_waiting},
    {"two waiters may share a descriptor", two_waiters_may_share_a_descriptor},
    {"waiter may wait for reading and writing", waiter_may_wait_for_reading_and_writing},
    {"descriptor is readable when the peer closes", descriptor_is_readable_when_the_peer_closes},
    {"descriptor is readable after a half close", descriptor_is_readable_after_a_half_close},
    {"reset wakes readers and writers", reset_wakes_readers_and_writers},
    {"pipe without a reader is writable", pipe_without_a_reader_is_writable},
    {"urgent data is reported as priority", urgent_data_is_reported_as_priority},
    {"persistent waiter stays armed", persistent_waiter_stays_armed},
    {"persistent waiter for both directions gets both events", persistent_waiter_for_both_directions_gets_both_events},
    {"persistent waiter gets the end of input", persistent_waiter_gets_the_end_of_input},
    {"regular file is always ready", regular_file_is_always_ready},
};

int main(int argc, char **argv)
{
    return RUN_BEHAVIOURS(BEHAVIOURS);
}
