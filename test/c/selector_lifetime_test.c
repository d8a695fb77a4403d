/* sources: selector/{selector,fd_table,wakeup,uring,uring_ring,epoll,kqueue,select}.c */
#include "selector_helper.h"

#include <pthread.h>

/* Waiters that leave, descriptors that close and come back as something else, callbacks that change the lists. */

static void waiter_disarmed_before_the_event_is_not_called(void)
{
    int fds[2];
    open_selector();
    make_pipe(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    settle();
    disarm(&waiter);
    put_byte(fds[1]);
    settle();
    CHECK_EQUAL(0, waiter.calls);

    /* Disarmed before the kernel ever heard of it. */
    arm(&waiter);
    disarm(&waiter);
    settle();
    CHECK_EQUAL(0, waiter.calls);
    arm(&waiter);
    TURN_UNTIL(waiter.calls);
    CHECK_EQUAL(1, waiter.calls);
    close_both(fds);
    close_selector();
}

static void waiter_disarmed_between_wait_and_harvest_is_not_called(void)
{
    int fds[2];
    open_selector();
    make_pipe(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    put_byte(fds[1]);
    CHECK_EQUAL(0, operations->wait(selector, SECOND));
    disarm(&waiter);
    operations->harvest(selector);
    settle();
    CHECK_EQUAL(0, waiter.calls);
    close_both(fds);
    close_selector();
}

static void other_waiter_of_a_descriptor_stays_armed(void)
{
    int fds[2];
    open_selector();
    make_pair(fds);
    noting_waiter first = waiter_for(fds[0], HEDDLE_READABLE), second = waiter_for(fds[0], HEDDLE_READABLE);
    noting_waiter third = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&first);
    arm(&second);
    arm(&third);
    disarm(&second);
    put_byte(fds[1]);
    TURN_UNTIL(first.calls && third.calls);
    settle();
    CHECK_EQUAL(0, second.calls);
    CHECK_EQUAL(1, first.calls);
    CHECK_EQUAL(1, third.calls);
    close_both(fds);
    close_selector();
}

static void persistent_waiter_can_be_armed_again(void)
{
    int fds[2];
    open_selector();
    make_pair(fds);
    for (int i = 0; i < 100; i++) {
        noting_waiter waiter = persistent_waiter_for(fds[0], HEDDLE_READABLE);
        arm(&waiter);
        put_byte(fds[1]);
        TURN_UNTIL(waiter.calls);
        disarm(&waiter);
        drain(fds[0]);
        if (i % 3 == 0)
            settle();
    }
    close_both(fds);
    close_selector();
}

/* The program closed a descriptor under its waiter, and the number came back as another file. */
static void reused_descriptor_number_serves_its_new_waiter(void)
{
    int old[2], new[2];
    open_selector();
    for (int round = 0; round < 50; round++) {
        make_pipe(old);
        noting_waiter lost = waiter_for(old[0], HEDDLE_READABLE);
        arm(&lost);
        if (round % 2)
            settle();
        int number = old[0];
        close_both(old);
        make_pair(new);
        if (new[0] != number) {
            MUST(dup2(new[0], number));
            close(new[0]);
            new[0] = number;
        }

        noting_waiter waiter = waiter_for(number, HEDDLE_READABLE);
        arm(&waiter);
        put_byte(new[1]);
        while (waiter.calls == 0 || recv(number, &(char){0}, 1, MSG_PEEK) != 1) {
            if (!waiter.base.armed)
                arm(&waiter);
            turn(SECOND);
        }
        disarm(&lost);
        disarm(&waiter);
        close_both(new);
    }
    close_selector();
}

/* A duplicate keeps the old file alive, and the kernel's registration of the old number with it. */
static void duplicate_of_a_closed_file_causes_no_event(void)
{
    int old[2], new[2];
    open_selector();
    make_pipe(old);
    noting_waiter lost = waiter_for(old[0], HEDDLE_READABLE);
    arm(&lost);
    settle();
    disarm(&lost);
    int number = old[0], duplicate = (int)MUST(dup(old[0]));
    close(number);
    make_pair(new);
    if (new[0] != number) {
        MUST(dup2(new[0], number));
        close(new[0]);
    }
    noting_waiter waiter = waiter_for(number, HEDDLE_READABLE);
    arm(&waiter);
    put_byte(old[1]);
    settle(); /* may wake the new waiter for nothing; must not lose it */
    if (waiter.calls)
        arm(&waiter);
    int calls = waiter.calls;
    settle();
    CHECK_EQUAL(calls, waiter.calls);
    put_byte(new[1]);
    TURN_UNTIL(waiter.calls > calls);
    close(number);
    close(new[1]);
    close(duplicate);
    close(old[1]);
    close_selector();
}

static void closed_descriptor_does_not_delay_the_others(void)
{
    int closed[2], fds[2];
    open_selector();
    make_pipe(closed);
    make_pipe(fds);
    noting_waiter lost = waiter_for(closed[0], HEDDLE_READABLE), waiter = waiter_for(fds[0], HEDDLE_READABLE);
    noting_waiter second = waiter_for(closed[1], HEDDLE_WRITABLE | HEDDLE_READABLE);
    arm(&lost);
    arm(&second);
    settle();
    close_both(closed);
    arm(&waiter);
    put_byte(fds[1]);
    TURN_UNTIL(waiter.calls);
    if (strcmp(operations->name, "select") == 0)
        CHECK(lost.calls == 1 && lost.result == -EBADF);
    disarm(&lost);
    disarm(&second);
    settle();
    close_both(fds);
    close_selector();
}

static void *close_it(void *fd)
{
    nanosleep(&(struct timespec){.tv_nsec = 10 * MILLISECOND}, NULL);
    close(*(int *)fd);
    return NULL;
}

/* Linux's select answers "readable" at the end of such a wait. */
static void descriptor_may_be_closed_by_another_thread_during_a_wait(void)
{
    int fds[2];
    pthread_t thread;
    open_selector();
    make_pipe(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&waiter);
    settle();
    pthread_create(&thread, NULL, close_it, &fds[0]);
    turn(50 * MILLISECOND);
    pthread_join(thread, NULL);
    settle();
    if (strcmp(operations->name, "select") == 0)
        CHECK_EQUAL(1, waiter.calls);
    if (waiter.calls)
        CHECK_EQUAL(-EBADF, waiter.result);
    disarm(&waiter);
    close(fds[1]);
    close_selector();
}

static void arming_a_closed_descriptor_fails(void)
{
    int fds[2];
    open_selector();
    make_pipe(fds);
    close_both(fds);
    const int bad[] = {fds[0], -1, 15000};
    for (int i = 0; i < 3; i++) {
        noting_waiter waiter = waiter_for(bad[i], HEDDLE_READABLE);
        arm(&waiter);
        TURN_UNTIL(waiter.calls);
        CHECK_EQUAL(-EBADF, waiter.result);
        CHECK(!waiter.base.armed);
    }
    close_selector();
}

/* -- callbacks that change what is being delivered --------------------------------------------------------------- */

typedef struct {
    noting_waiter base;
    noting_waiter *others[64];
    int arms, disarms;
} meddling_waiter;

static void meddle(heddle_waiter *waiter, int result, uint32_t flags)
{
    meddling_waiter *self = (meddling_waiter *)waiter;
    note(waiter, result, flags);
    for (int i = 0; i < self->arms; i++)
        arm(self->others[i]);
    for (int i = 0; i < self->disarms; i++)
        disarm(self->others[i]);
}

/* The second one's record is freed by its owner as soon as it is disarmed. */
static void callback_may_disarm_its_neighbours(void)
{
    for (int position = 0; position < 3; position++) {
        int fds[2];
        open_selector();
        make_pair(fds);
        meddling_waiter meddler = {.base = waiter_for(fds[0], HEDDLE_READABLE), .disarms = 2};
        meddler.base.base.fn = meddle;
        noting_waiter *neighbours[2];
        for (int i = 0; i < 3; i++) {
            if (i == position) {
                arm(&meddler.base);
                continue;
            }
            int at = i < position ? i : i - 1;
            neighbours[at] = malloc(sizeof(noting_waiter));
            *neighbours[at] = waiter_for(fds[0], HEDDLE_READABLE);
            meddler.others[at] = neighbours[at];
            arm(neighbours[at]);
        }
        put_byte(fds[1]);
        TURN_UNTIL(meddler.base.calls);
        CHECK(!neighbours[0]->base.armed && !neighbours[1]->base.armed);
        free(neighbours[0]);
        free(neighbours[1]);
        settle();
        CHECK_EQUAL(1, meddler.base.calls);
        close_both(fds);
        close_selector();
    }
}

static void free_neighbour(heddle_waiter *waiter, int result, uint32_t flags)
{
    meddling_waiter *self = (meddling_waiter *)waiter;
    note(waiter, result, flags);
    if (self->others[0]) {
        disarm(self->others[0]);
        free(self->others[0]);
        self->others[0] = NULL;
    }
}

static void neighbour_freed_in_a_callback_is_not_touched(void)
{
    int fds[2];
    open_selector();
    make_pair(fds);
    noting_waiter *neighbour = malloc(sizeof(*neighbour));
    *neighbour = waiter_for(fds[0], HEDDLE_READABLE);
    arm(neighbour);
    meddling_waiter meddler = {.base = waiter_for(fds[0], HEDDLE_READABLE)};
    meddler.base.base.fn = free_neighbour;
    meddler.others[0] = neighbour;
    arm(&meddler.base); /* at the head of the list: called first */
    put_byte(fds[1]);
    TURN_UNTIL(meddler.base.calls);
    if (meddler.others[0])
        free(neighbour);
    settle();
    close_both(fds);
    close_selector();
}

static void callback_may_arm_many_distant_descriptors(void)
{
    enum { COUNT = 64, FAR = 8000 };
    int fds[2], far[COUNT];
    noting_waiter waiters[COUNT];
    open_selector();
    make_pair(fds);
    meddling_waiter meddler = {.base = waiter_for(fds[0], HEDDLE_READABLE), .arms = COUNT};
    meddler.base.base.fn = meddle;
    for (int i = 0; i < COUNT; i++) {
        far[i] = fcntl(fds[0], F_DUPFD, FAR + i * 100 < 15000 ? FAR + i * 100 : 900);
        if (far[i] < 0)
            SKIP("needs 15,000 descriptors (ulimit -n)");
        waiters[i] = waiter_for(far[i], HEDDLE_WRITABLE);
        meddler.others[i] = &waiters[i];
    }
    noting_waiter sibling = waiter_for(fds[0], HEDDLE_READABLE);
    arm(&sibling);
    arm(&meddler.base);
    put_byte(fds[1]);
    TURN_UNTIL(meddler.base.calls && sibling.calls);
    for (int i = 0; i < COUNT; i++) {
        TURN_UNTIL(waiters[i].calls);
        CHECK_EQUAL(1, waiters[i].calls);
        close(far[i]);
    }
    close_both(fds);
    close_selector();
}

static void rearm(heddle_waiter *waiter, int result, uint32_t flags)
{
    note(waiter, result, flags);
    CHECK_EQUAL(0, operations->arm(selector, waiter));
}

static void callback_may_arm_its_own_waiter_again(void)
{
    int fds[2];
    open_selector();
    make_pair(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    waiter.base.fn = rearm;
    arm(&waiter);
    put_byte(fds[1]);
    for (int i = 0; i < 10; i++) {
        int calls = waiter.calls;
        turn(SECOND);
        CHECK(waiter.calls <= calls + 2); /* once a turn, or it would never end */
    }
    CHECK(waiter.calls >= 5);
    disarm(&waiter);
    close_both(fds);
    close_selector();
}

static void selector_may_be_closed_with_armed_waiters(void)
{
    int fds[2];
    open_selector();
    make_pair(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE), other = persistent_waiter_for(fds[1], HEDDLE_READABLE);
    arm(&waiter);
    arm(&other);
    settle();
    put_byte(fds[1]);
    close_selector();
    CHECK_EQUAL(0, waiter.calls);
    close_both(fds);
}

static void open_and_close_leave_nothing(void)
{
    for (int i = 0; i < 200; i++) {
        open_selector();
        close_selector();
    }
}

#ifdef __linux__
#include "selector/uring_abi.h"

/* A ring that is registered with its thread outlives its descriptor, and a thread has room for 16. */
static void close_releases_the_registered_index_of_the_ring(void)
{
    heddle_selector *one, *other;
    for (int i = 0; i < 40; i++) {
        CHECK_EQUAL(0, operations->open(&one));
        CHECK_EQUAL(0, operations->open(&other));
        operations->close(one); /* is kept for the next time, with its place */
        operations->close(other);
    }
    for (int i = 0; i < 15; i++) {
        struct io_uring_params parameters = {0};
        int fd = (int)MUST(syscall(__NR_io_uring_setup, 1, &parameters));
        struct io_uring_rsrc_update update = {.offset = UINT32_MAX, .data = (uint64_t)fd};
        CHECK_EQUAL(1, syscall(__NR_io_uring_register, fd, HEDDLE_REGISTER_RING_FDS, &update, 1));
        close(fd);
    }
}
#endif

static const behaviour BEHAVIOURS[] = {
    {"waiter disarmed before the event is not called", waiter_disarmed_before_the_event_is_not_called},
    {"waiter disarmed between wait and harvest is not called", waiter_disarmed_between_wait_and_harvest_is_not_called},
    {"other waiter of a descriptor stays armed", other_waiter_of_a_descriptor_stays_armed},
    {"persistent waiter can be armed again", persistent_waiter_can_be_armed_again},
    {"reused descriptor number serves its new waiter", reused_descriptor_number_serves_its_new_waiter},
    {"duplicate of a closed file causes no event", duplicate_of_a_closed_file_causes_no_event},
    {"closed descriptor does not delay the others", closed_descriptor_does_not_delay_the_others},
    {"descriptor may be closed by another thread during a wait",
     descriptor_may_be_closed_by_another_thread_during_a_wait},
    {"arming a closed descriptor fails", arming_a_closed_descriptor_fails},
    {"callback may disarm its neighbours", callback_may_disarm_its_neighbours},
    {"neighbour freed in a callback is not touched", neighbour_freed_in_a_callback_is_not_touched},
    {"callback may arm many distant descriptors", callback_may_arm_many_distant_descriptors},
    {"callback may arm its own waiter again", callback_may_arm_its_own_waiter_again},
    {"selector may be closed with armed waiters", selector_may_be_closed_with_armed_waiters},
    {"open and close leave nothing", open_and_close_leave_nothing},
#ifdef __linux__
    {"closing gives the ring's place back to the thread", close_releases_the_registered_index_of_the_ring, true},
#endif
};

int main(int argc, char **argv)
{
    return RUN_BEHAVIOURS(BEHAVIOURS);
}
