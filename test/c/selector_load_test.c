/* sources: selector/{selector,fd_table,wakeup,uring,uring_ring,epoll,kqueue,select}.c */
#include "selector_helper.h"

/* Many waiters, queues that overflow, records that are reused at once. */

static void five_thousand_descriptors_are_reported(void)
{
    enum { WANTED = 5000 };
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    int count = limit.rlim_cur > WANTED * 2 + 100 ? WANTED : (int)(limit.rlim_cur - 100) / 2;
    if (count < WANTED)
        printf("    only %d pairs: ulimit -n\n", count);
    int(*fds)[2] = calloc((size_t)count, sizeof(*fds));
    noting_waiter *waiters = calloc((size_t)count, sizeof(*waiters));
    open_selector();
    for (int i = 0; i < count; i++) {
        make_pair(fds[i]);
        waiters[i] = waiter_for(fds[i][0], HEDDLE_READABLE);
        arm(&waiters[i]);
    }
    settle();
    /* A scattered few first, then all at once. */
    for (int i = 0; i < count; i += 997) {
        put_byte(fds[i][1]);
        TURN_UNTIL(waiters[i].calls);
    }
    for (int i = 0; i < count; i++) {
        CHECK_EQUAL(i % 997 == 0, waiters[i].calls);
        if (i % 997)
            put_byte(fds[i][1]);
    }
    for (int i = 0; i < count; i++)
        TURN_UNTIL(waiters[i].calls);
    settle();
    for (int i = 0; i < count; i++) {
        CHECK_EQUAL(1, waiters[i].calls);
        CHECK_EQUAL(HEDDLE_READABLE, waiters[i].result);
        close_both(fds[i]);
    }
    free(waiters);
    free(fds);
    close_selector();
}

/* More than the submission queue (1,024) in one turn, more completions than the completion queue (8,192). */
static void full_completion_queue_loses_no_event(void)
{
    enum { COUNT = 20000 };
    int fds[2];
    noting_waiter *waiters = calloc(COUNT, sizeof(*waiters));
    open_selector();
    make_pair(fds);
    for (int i = 0; i < COUNT; i++) {
        waiters[i] = waiter_for(fds[0], HEDDLE_READABLE);
        arm(&waiters[i]);
    }
    settle();
    put_byte(fds[1]);
    for (int i = 0; i < COUNT; i++)
        TURN_UNTIL(waiters[i].calls);
    settle();
    for (int i = 0; i < COUNT; i++)
        CHECK_EQUAL(1, waiters[i].calls);
    /* It still works. */
    arm(&waiters[0]);
    TURN_UNTIL(waiters[0].calls == 2);
    free(waiters);
    close_both(fds);
    close_selector();
}

/*
 * The submission queue (1,024) is full of the very operations that are to be cancelled, and they complete while room
 * is made. Around that number, since the selector's own submissions are in the queue too.
 */
static void waiters_are_disarmed_with_a_full_queue(void)
{
    enum { LEAST = 1015, MOST = 1035 };
    int fds[2];
    noting_waiter *waiters = calloc(MOST, sizeof(*waiters)), *others = calloc(MOST, sizeof(*others));
    open_selector();
    make_pair(fds);
    put_byte(fds[1]);
    for (int count = LEAST; count < MOST; count++) {
        for (int i = 0; i < count; i++) {
            waiters[i] = waiter_for(fds[0], HEDDLE_READABLE);
            arm(&waiters[i]);
        }
        for (int i = 0; i < count; i++) {
            disarm(&waiters[i]);
            CHECK(waiters[i].calls <= 1);
            waiters[i].calls = 100;
        }
        for (int i = 0; i < count; i++) {
            others[i] = waiter_for(fds[1], HEDDLE_READABLE); /* nothing to read there */
            arm(&others[i]);
        }
        settle();
        for (int i = 0; i < count; i++) {
            CHECK_EQUAL(100, waiters[i].calls);
            CHECK_EQUAL(0, others[i].calls);
            CHECK(others[i].base.armed);
            disarm(&others[i]);
        }
        settle();
    }
    free(waiters);
    free(others);
    close_both(fds);
    close_selector();
}

static void waiter_may_be_armed_and_disarmed_100_000_times(void)
{
    int fds[2];
    open_selector();
    make_pipe(fds);
    noting_waiter waiter = waiter_for(fds[0], HEDDLE_READABLE);
    for (int i = 0; i < 100000; i++) {
        arm(&waiter);
        if (i % 7 == 0)
            CHECK_EQUAL(0, operations->poll(selector));
        disarm(&waiter);
    }
    settle();
    CHECK_EQUAL(0, waiter.calls);
    arm(&waiter);
    put_byte(fds[1]);
    TURN_UNTIL(waiter.calls);
    settle();
    CHECK_EQUAL(1, waiter.calls);
    close_both(fds);
    close_selector();
}

/* A model beside the selector: what may be told is what is true, and nobody who left is called. */
static void random_arms_and_disarms_match_a_model(void)
{
    enum { PIPES = 40, STEPS = 60000 };
    int fds[PIPES][2], unread[PIPES] = {0};
    noting_waiter *waiters[PIPES];
    uint32_t random = 20261101;
    open_selector();
    for (int i = 0; i < PIPES; i++) {
        make_pipe(fds[i]);
        waiters[i] = malloc(sizeof(noting_waiter));
        *waiters[i] = waiter_for(fds[i][0], HEDDLE_READABLE);
    }
    for (int step = 0; step < STEPS; step++) {
        random = random * 1664525 + 1013904223;
        int i = (int)(random >> 16) % PIPES;
        noting_waiter *waiter = waiters[i];
        switch ((random >> 8) % 8) {
        case 0:
        case 1:
            if (!waiter->base.armed) {
                waiter->calls = 0;
                arm(waiter);
            }
            break;
        case 2:
            disarm(waiter);
            /* Its record goes, as a fiber's stack does: a late event would write into freed memory. */
            free(waiter);
            waiters[i] = malloc(sizeof(noting_waiter));
            *waiters[i] = waiter_for(fds[i][0], HEDDLE_READABLE);
            break;
        case 3:
            put_byte(fds[i][1]);
            unread[i]++;
            break;
        case 4:
            if (unread[i]) {
                drain(fds[i][0]);
                unread[i] = 0;
            }
            break;
        case 5: /* the number becomes another pipe */
            if (waiter->base.armed)
                break;
            close_both(fds[i]);
            make_pipe(fds[i]);
            unread[i] = 0;
            waiter->base.fd = fds[i][0];
            break;
        default:
            CHECK_EQUAL(0, operations->poll(selector));
        }
    }
    for (int i = 0; i < PIPES; i++) {
        if (!waiters[i]->base.armed)
            continue;
        if (!unread[i])
            put_byte(fds[i][1]);
        TURN_UNTIL(!waiters[i]->base.armed);
    }
    for (int i = 0; i < PIPES; i++) {
        free(waiters[i]);
        close_both(fds[i]);
    }
    close_selector();
}

static const behaviour BEHAVIOURS[] = {
    {"five thousand descriptors are reported", five_thousand_descriptors_are_reported},
    {"full completion queue loses no event", full_completion_queue_loses_no_event},
    {"waiters are disarmed with a full queue", waiters_are_disarmed_with_a_full_queue},
    {"waiter may be armed and disarmed 100 000 times", waiter_may_be_armed_and_disarmed_100_000_times},
    {"random arms and disarms match a model", random_arms_and_disarms_match_a_model},
};

int main(int argc, char **argv)
{
    return RUN_BEHAVIOURS(BEHAVIOURS);
}
