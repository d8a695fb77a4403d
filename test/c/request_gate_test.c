#include "check.h"

#include "net/request_gate.h"
#include "scheduler/quantum.h"

/* One tick: what happens to the begun requests in it, and whether the gate lets the next one begin after it. */
typedef struct {
    const char *what;
    int64_t milliseconds; /* how long the tick lasts */
    enum { NOTHING, BEGIN, SLICE, WAIT, READY, END } event;
    int request; /* from 0 on */
    bool open;
} tick;

static struct {
    heddle_quantum quantum;
    bool ready;
} requests[8];
static heddle_gate gate;
static int64_t now;
static uint64_t number;
static size_t begun;

static void apply_event(const tick *one)
{
    heddle_quantum *quantum = &requests[one->request].quantum;
    bool *ready = &requests[one->request].ready;
    switch (one->event) {
    case NOTHING:
        return;
    case BEGIN:
        *quantum = (heddle_quantum){.request = 7, .counts = true};
        *ready = true;
        begun++;
        return;
    case SLICE:
        heddle_quantum_use_slice(quantum, 7, one->milliseconds * 1000000);
        return;
    case WAIT:
        *ready = false;
        return;
    case READY:
        *ready = true;
        return;
    case END:
        *ready = quantum->counts = false;
        begun--;
        return;
    }
}

static void run_ticks(const tick *ticks, size_t count)
{
    gate = (heddle_gate){0};
    now = 10 * HEDDLE_GATE_TIMEOUT; /* as in a process that has run for a while */
    number = begun = 0;
    for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
        requests[i].quantum.counts = requests[i].ready = false;
    for (const tick *one = ticks; one < ticks + count; one++) {
        number++;
        apply_event(one);
        now += one->milliseconds * 1000000;
        bool held = false;
        for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
            held |= requests[i].ready && heddle_quantum_is_left(&requests[i].quantum, 7);
        heddle_gate_judge(&gate, held, now, number + 1);
        if (heddle_gate_admits(&gate, begun, number + 1) != one->open)
            printf("# tick %d, %s:\n", (int)(one - ticks), one->what);
        CHECK_EQUAL(one->open, heddle_gate_admits(&gate, begun, number + 1));
    }
}

#define RUN_TICKS(...)                                                                                                 \
    do {                                                                                                               \
        static const tick ticks[] = {__VA_ARGS__};                                                                     \
        run_ticks(ticks, sizeof(ticks) / sizeof(*ticks));                                                              \
    } while (0)

static void a_request_begins_when_none_has_begun(void)
{
    RUN_TICKS({"idle", 1, NOTHING, 0, true}, {"one begins", 1, BEGIN, 0, false}, {"and ends", 1, END, 0, true});
}

static void the_next_request_begins_when_all_begun_ones_wait(void)
{
    RUN_TICKS({"the first begins", 1, BEGIN, 0, false}, {"it waits", 1, WAIT, 0, true},
              {"the second begins", 1, BEGIN, 1, false}, {"it waits, too", 1, WAIT, 1, true},
              {"the first continues", 1, READY, 0, false}, {"it ends", 1, END, 0, true});
}

static void a_request_that_computes_delays_the_next_one_by_its_quantum(void)
{
    RUN_TICKS({"it begins", 10, BEGIN, 0, false}, {"slice 1", 10, SLICE, 0, false}, {"slice 2", 10, SLICE, 0, false},
              {"slice 3", 10, SLICE, 0, false}, {"slice 4", 10, SLICE, 0, false}, {"slice 5", 10, SLICE, 0, false},
              {"slice 6", 10, SLICE, 0, false}, {"slice 7", 10, SLICE, 0, false}, {"slice 8", 10, SLICE, 0, false},
              {"slice 9", 10, SLICE, 0, false}, {"a short one", 9, SLICE, 0, false}, {"slice 11", 15, SLICE, 0, true});
}

/* Whatever is beyond its quantum delays nobody, however many there are. */
static void requests_beyond_their_quantum_delay_no_request(void)
{
    for (int request = 0; request < 5; request++)
        requests[request].quantum = (heddle_quantum){.request = 7, .used = HEDDLE_QUANTUM, .counts = true};
    begun = 5;
    bool held = false;
    for (int request = 0; request < 5; request++)
        held |= heddle_quantum_is_left(&requests[request].quantum, 7);
    CHECK(!held);
}

/* Slices add up over waits: one that computes and waits in turn is no new request each time. */
static void slices_add_up_until_the_request_ends(void)
{
    heddle_quantum quantum = {.request = 7, .counts = true};
    for (int slice = 0; slice < HEDDLE_QUANTUM / HEDDLE_QUANTUM_SLICE; slice++) {
        CHECK(heddle_quantum_is_left(&quantum, 7));
        heddle_quantum_use_slice(&quantum, 7, HEDDLE_QUANTUM_SLICE);
    }
    CHECK(!heddle_quantum_is_left(&quantum, 7));
}

static void fibers_that_outlive_their_request_count_for_none(void)
{
    heddle_quantum quantum = {.request = 8, .counts = true};
    CHECK(!heddle_quantum_is_left(&quantum, 7));
    for (int slice = 0; slice < HEDDLE_QUANTUM / HEDDLE_QUANTUM_SLICE; slice++)
        heddle_quantum_use_slice(&quantum, 7, HEDDLE_QUANTUM_SLICE);
    CHECK(heddle_quantum_is_left(&quantum, 8));
    CHECK(!heddle_quantum_is_left(NULL, 0));
}

/* They compute for less than a slice between two waits, and one of them is ready at the end of each tick. */
static void requests_that_wait_often_delay_the_next_one_for_a_limited_time(void)
{
    RUN_TICKS({"the first begins", 5, BEGIN, 0, false}, {"it waits", 5, WAIT, 0, true},
              {"the second begins", 5, BEGIN, 1, false}, {"the first is ready", 90, READY, 0, false},
              {"the second waits", 90, WAIT, 1, false}, {"it is ready", 19, READY, 1, false},
              {"200 ms are over", 1, WAIT, 0, true}, {"the third begins", 1, BEGIN, 2, false},
              {"it waits", 198, WAIT, 2, false});
}

static void a_judgement_holds_for_one_tick(void)
{
    gate = (heddle_gate){0};
    heddle_gate_judge(&gate, false, now, 5);
    CHECK(heddle_gate_admits(&gate, 1, 5));
    CHECK(!heddle_gate_admits(&gate, 1, 6));
    CHECK(heddle_gate_admits(&gate, 0, 6));
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("gate", "a request begins when none has begun", a_request_begins_when_none_has_begun);
    check_run("gate", "the next request begins when all begun ones wait",
              the_next_request_begins_when_all_begun_ones_wait);
    check_run("gate", "a request that computes delays the next one by its quantum",
              a_request_that_computes_delays_the_next_one_by_its_quantum);
    check_run("gate", "requests beyond their quantum delay no request",
              requests_beyond_their_quantum_delay_no_request);
    check_run("gate", "slices add up until the request ends", slices_add_up_until_the_request_ends);
    check_run("gate", "fibers that outlive their request count for none",
              fibers_that_outlive_their_request_count_for_none);
    check_run("gate", "requests that wait often delay the next one for a limited time",
              requests_that_wait_often_delay_the_next_one_for_a_limited_time);
    check_run("gate", "a judgement holds for one tick", a_judgement_holds_for_one_tick);
    return check_end();
}
