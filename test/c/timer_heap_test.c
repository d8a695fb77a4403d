/* sources: scheduler/timer_heap.c */
/* wrap: realloc */
#include "check.h"

#include "scheduler/timer_heap.h"

static bool no_memory;

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    return no_memory ? NULL : __real_realloc(old, size);
}

typedef struct {
    heddle_timer timer;
    int calls;
    int64_t order;
    heddle_timer_heap *heap;
} noting_timer;

static int64_t order;
static int64_t last_deadline;

static void note(heddle_timer *timer)
{
    noting_timer *self = (noting_timer *)timer;
    CHECK_EQUAL(0, timer->slot); /* it has left */
    CHECK(timer->deadline >= last_deadline);
    last_deadline = timer->deadline;
    self->calls++;
    self->order = order++;
}

static uint32_t seed = 20261101;

static uint32_t random_number(void)
{
    seed = seed * 1664525 + 1013904223;
    return seed >> 8;
}

static void check_heap(const heddle_timer_heap *heap)
{
    for (size_t i = 0; i < heap->count; i++) {
        CHECK_EQUAL(i + 1, heap->entries[i]->slot);
        if (i > 0)
            CHECK(heap->entries[(i - 1) / 4]->deadline <= heap->entries[i]->deadline);
    }
}

static void empty_heap_has_no_deadline(void)
{
    heddle_timer_heap heap = {0};
    CHECK_EQUAL(-1, heddle_timer_heap_next(&heap));
    CHECK_EQUAL(0, heddle_timer_heap_expire(&heap, INT64_MAX));
    heddle_timer_heap_free(&heap);
}

static void timers_expire_in_order_and_not_early(void)
{
    enum { COUNT = 5000 };
    heddle_timer_heap heap = {0};
    noting_timer *timers = calloc(COUNT, sizeof(*timers));
    for (int i = 0; i < COUNT; i++) {
        timers[i].timer = (heddle_timer){.deadline = random_number() % 1000, .fn = note};
        CHECK_EQUAL(0, heddle_timer_heap_push(&heap, &timers[i].timer));
    }
    check_heap(&heap);
    for (int64_t now = 0; now < 1000; now += 37) {
        heddle_timer_heap_expire(&heap, now);
        for (int i = 0; i < COUNT; i++)
            CHECK_EQUAL(timers[i].timer.deadline <= now, timers[i].calls);
        if (heap.count)
            CHECK(heddle_timer_heap_next(&heap) > now);
    }
    heddle_timer_heap_expire(&heap, 1000);
    CHECK_EQUAL(0, heap.count);
    free(timers);
    heddle_timer_heap_free(&heap);
}

static void note_order(heddle_timer *timer)
{
    ((noting_timer *)timer)->order = order++;
}

/* Removals from between them move timers about, and pushes of earlier ones, too. */
static void timers_with_equal_deadlines_expire_in_the_order_of_their_pushes(void)
{
    enum { COUNT = 1000 };
    heddle_timer_heap heap = {0};
    noting_timer *timers = calloc(COUNT, sizeof(*timers));
    for (int i = 0; i < COUNT; i++) {
        timers[i] = (noting_timer){.timer = {.deadline = random_number() % 5, .fn = note_order}, .order = -1};
        CHECK_EQUAL(0, heddle_timer_heap_push(&heap, &timers[i].timer));
    }
    for (int i = 0; i < COUNT; i += 7)
        heddle_timer_heap_remove(&heap, &timers[i].timer);
    check_heap(&heap);
    heddle_timer_heap_expire(&heap, 5);
    for (int64_t deadline = 0; deadline < 5; deadline++) {
        int64_t last = -1;
        for (int i = 0; i < COUNT; i++) {
            if (i % 7 == 0 || timers[i].timer.deadline != deadline)
                continue;
            CHECK(timers[i].order > last);
            last = timers[i].order;
        }
    }
    free(timers);
    heddle_timer_heap_free(&heap);
}

static void longest_deadlines_are_kept(void)
{
    heddle_timer_heap heap = {0};
    noting_timer far = {.timer = {.deadline = INT64_MAX, .fn = note}}, past = {.timer = {.deadline = 0, .fn = note}};
    CHECK_EQUAL(0, heddle_timer_heap_push(&heap, &far.timer));
    CHECK_EQUAL(0, heddle_timer_heap_push(&heap, &past.timer));
    CHECK_EQUAL(1, heddle_timer_heap_expire(&heap, INT64_MAX - 1));
    CHECK_EQUAL(INT64_MAX, heddle_timer_heap_next(&heap));
    heddle_timer_heap_remove(&heap, &far.timer);
    heddle_timer_heap_free(&heap);
}

/* Pushes, removals from anywhere and expiry at random, against a plain list. */
static void random_operations_match_a_model(void)
{
    enum { COUNT = 300, STEPS = 200000 };
    heddle_timer_heap heap = {0};
    noting_timer timers[COUNT] = {0};
    int64_t now = 0;
    for (int step = 0; step < STEPS; step++) {
        noting_timer *timer = &timers[random_number() % COUNT];
        switch (random_number() % 4) {
        case 0:
        case 1:
            if (!timer->timer.slot) {
                timer->timer = (heddle_timer){.deadline = now + random_number() % 500, .fn = note};
                CHECK_EQUAL(0, heddle_timer_heap_push(&heap, &timer->timer));
            }
            break;
        case 2:
            heddle_timer_heap_remove(&heap, &timer->timer);
            CHECK_EQUAL(0, timer->timer.slot);
            break;
        default: {
            size_t due = 0, waiting = 0;
            int64_t nearest = -1;
            now += random_number() % 20;
            for (int i = 0; i < COUNT; i++) {
                due += timers[i].timer.slot && timers[i].timer.deadline <= now;
                waiting += timers[i].timer.slot != 0;
            }
            last_deadline = 0;
            CHECK_EQUAL(waiting, heap.count);
            CHECK_EQUAL(due, heddle_timer_heap_expire(&heap, now));
            CHECK_EQUAL(waiting - due, heap.count);
            for (int i = 0; i < COUNT; i++) {
                if (timers[i].timer.slot && (nearest < 0 || timers[i].timer.deadline < nearest))
                    nearest = timers[i].timer.deadline;
            }
            CHECK_EQUAL(nearest, heddle_timer_heap_next(&heap));
        }
        }
        if (step % 100 == 0)
            check_heap(&heap);
    }
    heddle_timer_heap_free(&heap);
}

static void remove_other(heddle_timer *timer)
{
    noting_timer *self = (noting_timer *)timer;
    self->calls++;
    for (int i = 1; i < 8; i++)
        heddle_timer_heap_remove(self->heap, &(self + i)->timer);
}

/* A timeout that fires cancels the others of its fiber. */
static void callback_may_remove_due_timers(void)
{
    heddle_timer_heap heap = {0};
    noting_timer timers[8] = {0};
    for (int i = 0; i < 8; i++) {
        timers[i] = (noting_timer){.timer = {.deadline = 10 + i, .fn = i ? note : remove_other}, .heap = &heap};
        CHECK_EQUAL(0, heddle_timer_heap_push(&heap, &timers[i].timer));
    }
    CHECK_EQUAL(1, heddle_timer_heap_expire(&heap, 100));
    for (int i = 1; i < 8; i++)
        CHECK_EQUAL(0, timers[i].calls);
    CHECK_EQUAL(0, heap.count);
    heddle_timer_heap_free(&heap);
}

static void push_again(heddle_timer *timer)
{
    noting_timer *self = (noting_timer *)timer;
    self->calls++;
    timer->deadline += 50;
    CHECK_EQUAL(0, heddle_timer_heap_push(self->heap, timer));
}

static void callback_may_push_its_timer_again(void)
{
    heddle_timer_heap heap = {0};
    noting_timer timer = {.timer = {.deadline = 10, .fn = push_again}, .heap = &heap};
    CHECK_EQUAL(0, heddle_timer_heap_push(&heap, &timer.timer));
    CHECK_EQUAL(2, heddle_timer_heap_expire(&heap, 100));
    CHECK_EQUAL(2, timer.calls);
    CHECK_EQUAL(110, heddle_timer_heap_next(&heap));
    heddle_timer_heap_free(&heap);
}

static void failed_push_without_memory_changes_nothing(void)
{
    enum { COUNT = 64 };
    heddle_timer_heap heap = {0};
    noting_timer timers[COUNT + 1] = {0};
    no_memory = true;
    CHECK_EQUAL(-ENOMEM, heddle_timer_heap_push(&heap, &timers[0].timer));
    no_memory = false;
    for (int i = 0; i < COUNT; i++) {
        timers[i].timer = (heddle_timer){.deadline = COUNT - i, .fn = note};
        CHECK_EQUAL(0, heddle_timer_heap_push(&heap, &timers[i].timer));
    }
    no_memory = true;
    CHECK_EQUAL(-ENOMEM, heddle_timer_heap_push(&heap, &timers[COUNT].timer));
    CHECK_EQUAL(0, timers[COUNT].timer.slot);
    CHECK_EQUAL(COUNT, heap.count);
    check_heap(&heap);
    CHECK_EQUAL(COUNT, heddle_timer_heap_expire(&heap, COUNT));
    no_memory = false;
    heddle_timer_heap_free(&heap);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("timer heap", "empty heap has no deadline", empty_heap_has_no_deadline);
    check_run("timer heap", "timers expire in order and not early", timers_expire_in_order_and_not_early);
    check_run("timer heap", "timers with equal deadlines expire in the order of their pushes",
              timers_with_equal_deadlines_expire_in_the_order_of_their_pushes);
    check_run("timer heap", "longest deadlines are kept", longest_deadlines_are_kept);
    check_run("timer heap", "random operations match a model", random_operations_match_a_model);
    check_run("timer heap", "callback may remove due timers", callback_may_remove_due_timers);
    check_run("timer heap", "callback may push its timer again", callback_may_push_its_timer_again);
    check_run("timer heap", "failed push without memory changes nothing", failed_push_without_memory_changes_nothing);
    return check_end();
}
