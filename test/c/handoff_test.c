/* sources: net/handoff.c net/handoff_messages.c net/ready_list.c net/transport.c net/scoreboard.c net/shared_memory.c watch/watch.c watch/lost_time.c scheduler/layer_hooks.c */
/* ruby: headers */
#include "check.h"
#include "net/sockets.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* Loop, watch and another process want the same connections at once: each has one owner, and what was read is whole. */

enum {
    SLOTS = 16,
    STEPS = 20000,
};

static heddle_sockets sockets;
static heddle_scoreboard scoreboard;
static heddle_protocol protocol;
static heddle_work works[SLOTS];
static heddle_rescue *const rescue = &sockets.handoff.rescue;
static _Atomic bool over;
static int wire[2], clients[SLOTS];
static _Atomic unsigned long made, closed, received, asked_back;

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* -- the loop's side of the handoff -------------------------------------------------------------------------------- */

/* What Ruby's headers make of errno, from 3.3 on. */
int *rb_errno_ptr(void)
{
    return __errno_location();
}

static void end(heddle_connection *connection, bool closing)
{
    bool given = connection->transport.fd < 0;
    heddle_handoff_forget(connection);
    heddle_handoff_lock(&sockets);
    sockets.slots[connection->slot].connection = NULL;
    sockets.slots[connection->slot].generation++;
    heddle_handoff_unlock(&sockets);
    heddle_ready_list_remove(&works[connection->slot]);
    CHECK(closing || !given);
    if (closing && !given) {
        close(connection->transport.fd);
        closed++;
    }
    heddle_bytes_reset(&connection->input, 0);
    free(connection);
}

void heddle_sockets_close_connection(heddle_connection *connection)
{
    end(connection, true);
}

int heddle_sockets_detach(heddle_connection *connection)
{
    int fd = connection->transport.fd;
    end(connection, false);
    return fd;
}

void heddle_sockets_deliver_event(heddle_sockets *unused, heddle_connection *connection, uint8_t events)
{
    char byte;
    if (!heddle_connection_acquire(connection))
        return;
    if (events & HEDDLE_HAS_INPUT)
        (void)!recv(connection->transport.fd, &byte, 1, MSG_DONTWAIT);
    heddle_connection_release(connection);
}

int heddle_sockets_add_shared(heddle_sockets *unused, int fd, const heddle_address *remote, const heddle_address *local,
                              bool secure, const char *bytes, size_t size, VALUE session)
{
    for (size_t i = 1; i < size; i++)
        CHECK_EQUAL(bytes[0], bytes[i]);
    CHECK_EQUAL(size ? (unsigned char)bytes[0] : 0, size & 0xff);
    CHECK_EQUAL(size % 2, secure);
    CHECK_EQUAL(size, remote->port);
    received++;
    close(fd);
    return 0;
}

int heddle_sockets_add_session(heddle_sockets *unused, int fd, const heddle_address *remote,
                               const heddle_address *local, bool secure, const char *words, size_t size)
{
    CHECK(false);
    return -EPROTO;
}

void heddle_sockets_schedule_resume(heddle_sockets *unused)
{
    asked_back++;
}

void heddle_loop_wake(heddle_loop *unused)
{
}

static const heddle_event_set_operations epoll = {.watchable = true};

/* -- a loop's sockets ---------------------------------------------------------------------------------------------- */

static int collect_input(const heddle_connection *connection, struct iovec *pieces)
{
    return heddle_connection_input_piece(connection, pieces);
}

/* As if so many bytes had been read: each says how many there are. */
static void fill(heddle_connection *connection, uint16_t size)
{
    heddle_bytes *input = &connection->input;
    heddle_bytes_reset(input, 0);
    if (size && heddle_bytes_reserve(input, size))
        memset(input->bytes, size & 0xff, size);
    input->size = size;
    connection->secure = size % 2;
    connection->remote.port = size;
}

static heddle_connection *add(uint32_t slot)
{
    heddle_connection *connection = calloc(1, sizeof(*connection));
    int pair[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
    if (clients[slot])
        close(clients[slot]);
    clients[slot] = pair[1];
    connection->slot = slot;
    connection->sockets = &sockets;
    connection->protocol = &protocol;
    works[slot] = (heddle_work){.connection = connection};
    connection->transport.operations = &heddle_plain_transport;
    connection->transport.fd = pair[0];
    heddle_handoff_lock(&sockets);
    sockets.slots[slot].connection = connection;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET,
                                .data.u64 = (uint64_t)sockets.slots[slot].generation << 32 | slot};
    heddle_handoff_unlock(&sockets);
    MUST(epoll_ctl(sockets.set.connections_fd, EPOLL_CTL_ADD, pair[0], &event));
    made++;
    heddle_connection_release(connection);
    return connection;
}

static void start(void)
{
    static heddle_connection_slot slots[SLOTS];
    sockets.slots = slots;
    sockets.slot_count = SLOTS;
    sockets.set.operations = &epoll;
    sockets.set.connections_fd = (int)MUST(epoll_create1(0));
    sockets.scratch = malloc(HEDDLE_SCRATCH);
    protocol.collect_input = collect_input;
    heddle_ready_list_init(&sockets.ready);
    MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, wire));
    CHECK_EQUAL(0, heddle_scoreboard_create(&scoreboard, 2));
    CHECK_EQUAL(0, heddle_scoreboard_acquire(&scoreboard, 1, 0));
    CHECK_EQUAL(1, heddle_scoreboard_acquire(&scoreboard, 1, 1));
    HEDDLE_SCOREBOARD_SET(scoreboard.slots[1].accepting, 1);
    sockets.balance.scoreboard = &scoreboard;
    sockets.balance.slot = &scoreboard.slots[0];
    heddle_handoff_start(&sockets);
    CHECK_EQUAL(0, heddle_handoff_begin(&sockets, wire[0]));
}

static void finish(void)
{
    heddle_handoff_process_noted(&sockets);
    rescue->on_recovered(rescue);
    heddle_handoff_end(&sockets);
    CHECK_EQUAL(0, scoreboard.slots[0].stuck);
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (sockets.slots[i].connection)
            heddle_sockets_close_connection(sockets.slots[i].connection);
        if (clients[i])
            close(clients[i]);
    }
    while (heddle_handoff_receive(&sockets, wire[1]) == 0)
        continue;
    CHECK_EQUAL(made, closed + received);
    CHECK_EQUAL(received, sockets.handoff.sent_count);
    close(wire[0]);
    close(wire[1]);
    close(sockets.set.connections_fd);
    heddle_scoreboard_close(&scoreboard);
    free(sockets.scratch);
}

/* The client has something to say. */
static void speak(uint32_t slot)
{
    (void)!send(clients[slot], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/*
 * -- the tests -------------------------------------------------------------------------------------------------------
 */

static void *watch(void *unused)
{
    while (!over)
        rescue->on_stuck(rescue);
    return NULL;
}

static void *sibling(void *unused)
{
    while (!over)
        heddle_handoff_receive(&sockets, wire[1]);
    return NULL;
}

static void loop_turn(unsigned *random)
{
    uint32_t slot = rand_r(random) % SLOTS;
    heddle_connection *connection = sockets.slots[slot].connection;
    if (!connection) {
        add(slot);
    } else if (rand_r(random) % 8 == 0) {
        speak(slot);
    } else if (heddle_connection_acquire(connection)) {
        if (rand_r(random) % 16 == 0) {
            heddle_sockets_close_connection(connection);
            return;
        }
        fill(connection, (uint16_t)(rand_r(random) % 2000));
        if (works[slot].list)
            heddle_ready_list_remove(&works[slot]);
        else if (rand_r(random) % 4 == 0)
            heddle_ready_list_add(&sockets.ready, &works[slot], false);
        heddle_connection_release(connection);
    }
    if (rand_r(random) % 4 == 0)
        heddle_handoff_process_noted(&sockets);
}

static void each_connection_has_one_owner(void)
{
    pthread_t threads[2];
    unsigned random = 17;
    start();
    pthread_create(&threads[0], NULL, watch, NULL);
    pthread_create(&threads[1], NULL, sibling, NULL);
    for (int i = 0; i < STEPS || !received; i++)
        loop_turn(&random);
    over = true;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    finish();
}

static void connection_with_input_is_handed_off_by_a_stuck_loop(void)
{
    start();
    heddle_connection *connection = add(0);
    CHECK(heddle_connection_acquire(connection));
    fill(connection, 300);
    heddle_connection_release(connection);
    rescue->on_stuck(rescue);
    CHECK_EQUAL(1, scoreboard.slots[0].stuck);
    CHECK_EQUAL(HEDDLE_OWNER_AT_REST, connection->transport.owner);
    speak(0);
    rescue->on_stuck(rescue);
    CHECK_EQUAL(HEDDLE_OWNER_RELEASED, connection->transport.owner);
    CHECK(!heddle_connection_acquire(connection));
    CHECK_EQUAL(0, heddle_handoff_receive(&sockets, wire[1]));
    CHECK_EQUAL(-EAGAIN, heddle_handoff_receive(&sockets, wire[1]));
    heddle_handoff_process_noted(&sockets);
    CHECK(!sockets.slots[0].connection);
    finish();
}

static void connection_that_is_served_gets_its_events_later(void)
{
    start();
    heddle_connection *connection = add(0);
    CHECK(heddle_connection_acquire(connection));
    speak(0);
    rescue->on_stuck(rescue);
    CHECK_EQUAL(HEDDLE_HAS_INPUT, connection->watch_events);
    CHECK(asked_back > 0);
    heddle_handoff_process_noted(&sockets);
    CHECK_EQUAL(0, connection->watch_events);
    CHECK_EQUAL(0, sockets.handoff.sent_count);
    finish();
}

static void no_connection_is_handed_off_while_no_worker_accepts(void)
{
    start();
    add(0);
    speak(0);
    scoreboard.slots[1].stuck = 1;
    rescue->on_stuck(rescue);
    scoreboard.slots[1].stuck = 0;
    CHECK(!heddle_link_first(&sockets.handoff.notified));
    rescue->on_stuck(rescue);
    CHECK_EQUAL(1, sockets.handoff.sent_count);
    finish();
}

/* How often the master was told of a stall since the last time. */
static int count_alarms(int alarms)
{
    char bytes[64];
    ssize_t size = recv(alarms, bytes, sizeof(bytes), MSG_DONTWAIT);
    return size < 0 ? 0 : (int)size / (int)sizeof(uint64_t);
}

static void each_long_stall_raises_one_alarm(void)
{
    int pair[2];
    start();
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    scoreboard.alarm_fd = pair[1];
    rescue->since = heddle_clock_coarse();
    rescue->on_stuck(rescue);
    CHECK_EQUAL(0, count_alarms(pair[0]));
    rescue->since -= HEDDLE_RESERVE_AFTER;
    rescue->collecting = true;
    rescue->on_stuck(rescue);
    CHECK_EQUAL(0, count_alarms(pair[0]));
    rescue->collecting = false;
    rescue->on_stuck(rescue);
    rescue->on_stuck(rescue);
    CHECK_EQUAL(1, count_alarms(pair[0]));
    rescue->on_recovered(rescue);
    rescue->on_stuck(rescue);
    CHECK_EQUAL(1, count_alarms(pair[0]));
    close(pair[0]);
    finish();
}

static void stall_of_a_worker_begins_with_its_first_blocked_loop(void)
{
    static heddle_sockets second;
    heddle_rescue *later = &second.handoff.rescue;
    start();
    scoreboard.slots[1].stuck = 1; /* no worker accepts, so the loops keep their events */
    second.set.operations = &epoll;
    second.balance = sockets.balance;
    heddle_handoff_start(&second);
    CHECK_EQUAL(0, heddle_handoff_begin(&second, wire[0]));
    rescue->since = 100;
    later->since = 200;
    rescue->on_stuck(rescue);
    later->on_stuck(later);
    CHECK_EQUAL(2, scoreboard.slots[0].stuck);
    CHECK_EQUAL(100, scoreboard.slots[0].stuck_since);
    rescue->on_recovered(rescue);
    later->on_recovered(later);
    later->on_stuck(later);
    CHECK_EQUAL(200, scoreboard.slots[0].stuck_since);
    later->on_recovered(later);
    heddle_handoff_end(&second);
    finish();
}

static void connection_stays_while_the_socket_is_full_and_is_sent_later(void)
{
    start();
    heddle_connection *connection = add(0);
    int full = 0;
    while (send(wire[0], "", 1, MSG_DONTWAIT) > 0)
        full++;
    speak(0);
    rescue->on_stuck(rescue);
    CHECK_EQUAL(HEDDLE_OWNER_AT_REST, connection->transport.owner);
    CHECK_EQUAL(0, sockets.handoff.sent_count);
    while (full--)
        CHECK_EQUAL(-EPROTO, heddle_handoff_receive(&sockets, wire[1]));
    rescue->on_stuck(rescue);
    CHECK_EQUAL(1, sockets.handoff.sent_count);
    finish();
}

static void connection_stays_when_no_process_reads_the_socket(void)
{
    start();
    heddle_connection *connection = add(0);
    close(wire[1]);
    speak(0);
    rescue->on_stuck(rescue);
    CHECK_EQUAL(HEDDLE_OWNER_AT_REST, connection->transport.owner);
    CHECK_EQUAL(0, sockets.handoff.sent_count);
    wire[1] = dup(wire[0]);
    finish();
}

static void connection_is_left_to_others_by_a_process_without_descriptors(void)
{
    struct rlimit before, none;
    start();
    add(0);
    speak(0);
    rescue->on_stuck(rescue);
    MUST(getrlimit(RLIMIT_NOFILE, &before));
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = before.rlim_max};
    MUST(setrlimit(RLIMIT_NOFILE, &none));
    CHECK_EQUAL(-EMFILE, heddle_handoff_receive(&sockets, wire[1]));
    MUST(setrlimit(RLIMIT_NOFILE, &before));
    CHECK_EQUAL(0, received);
    CHECK_EQUAL(0, heddle_handoff_receive(&sockets, wire[1]));
    CHECK_EQUAL(1, received);
    finish();
}

/* The first byte that came, or was read, stands for the label. */
static uint32_t first_byte(const heddle_connection *connection)
{
    uint8_t byte;
    return recv(connection->transport.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0 ? byte + 1 : 0;
}

static void connection_whose_label_blocks_a_worker_waits_until_the_label_is_gone(void)
{
    start();
    protocol.label = first_byte;
    heddle_connection *connection = add(0);
    speak(0);
    rescue->label = first_byte(connection);
    rescue->on_stuck(rescue);
    CHECK_EQUAL(HEDDLE_OWNER_AT_REST, connection->transport.owner);
    CHECK_EQUAL(0, sockets.handoff.sent_count);
    scoreboard.slots[0].label++;
    rescue->on_stuck(rescue);
    CHECK_EQUAL(1, sockets.handoff.sent_count);
    protocol.label = NULL;
    finish();
}

static void connection_whose_client_has_left_stays(void)
{
    start();
    heddle_connection *connection = add(0);
    MUST(shutdown(clients[0], SHUT_RDWR));
    rescue->on_stuck(rescue);
    CHECK_EQUAL(HEDDLE_OWNER_AT_REST, connection->transport.owner);
    finish();
}

static void connection_with_too_much_input_stays(void)
{
    start();
    heddle_connection *connection = add(0);
    CHECK(heddle_connection_acquire(connection));
    fill(connection, 1);
    heddle_bytes_reserve(&connection->input, HEDDLE_SCRATCH + 1);
    connection->input.size = HEDDLE_SCRATCH + 1;
    heddle_ready_list_add(&sockets.ready, &works[0], false);
    heddle_connection_release(connection);
    rescue->on_stuck(rescue);
    CHECK_EQUAL(HEDDLE_OWNER_AT_REST, connection->transport.owner);
    finish();
}

/* A reserve would lose the rest of an earlier response with the connection's record. */
static void connection_with_unsent_output_stays(void)
{
    start();
    heddle_connection *connection = add(0);
    CHECK(heddle_connection_acquire(connection));
    connection->output.size = 1;
    CHECK_EQUAL(-EBUSY, heddle_connection_hand_off(connection, wire[0], 0));
    CHECK_EQUAL(HEDDLE_OWNER_LOOP, connection->transport.owner);
    CHECK_EQUAL(-EAGAIN, heddle_handoff_receive(&sockets, wire[1]));
    connection->output.size = 0;
    finish();
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("handoff", "a connection with input is handed off by a stuck loop",
              connection_with_input_is_handed_off_by_a_stuck_loop);
    check_run("handoff", "a connection that is served gets its events later",
              connection_that_is_served_gets_its_events_later);
    check_run("handoff", "no connection is handed off while no worker accepts",
              no_connection_is_handed_off_while_no_worker_accepts);
    check_run("handoff", "each long stall raises one alarm, unless Ruby collects", each_long_stall_raises_one_alarm);
    check_run("handoff", "a worker's stall begins with its first blocked loop",
              stall_of_a_worker_begins_with_its_first_blocked_loop);
    check_run("handoff", "a connection stays while the socket is full, and is sent later",
              connection_stays_while_the_socket_is_full_and_is_sent_later);
    check_run("handoff", "a connection stays when no process reads the socket",
              connection_stays_when_no_process_reads_the_socket);
    check_run("handoff", "a connection is left to others by a process without descriptors",
              connection_is_left_to_others_by_a_process_without_descriptors);
    check_run("handoff", "a connection whose label blocks a worker waits until the label is gone",
              connection_whose_label_blocks_a_worker_waits_until_the_label_is_gone);
    check_run("handoff", "a connection whose client has left stays", connection_whose_client_has_left_stays);
    check_run("handoff", "a connection with too much input stays", connection_with_too_much_input_stays);
    check_run("handoff", "a connection with unsent output stays", connection_with_unsent_output_stays);
    check_run("handoff", "each connection has one owner", each_connection_has_one_owner);
    return check_end();
}
