#include "scheduler/recorder.h"

#include "scheduler/loop.h"
#include "scheduler/recorder_places.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 1024,
    FRAMES = 22, /* of a stack */
    NAMES = 4096,
    NAME = 120, /* bytes */
};

static const int64_t INTERVAL = 5000000; /* between two stacks of one loop, ns, at least */

/* Account::STRETCH says how to unpack it. */
typedef struct {
    int64_t began, ended;
    uint64_t request; /* 0: none */
    uint16_t place;
    uint8_t part, task;
    uint32_t unused;
} stretch;

/* Account::SAMPLE */
typedef struct {
    int64_t began, ended;
    uint64_t request; /* 0: of none; then `task` says whether it is the loop's own thread */
    uint8_t activity, task;
    uint16_t place;
    uint16_t frames[FRAMES]; /* innermost first, then 0 */
} sample;

/* Account::NAME; a request's name is in the slot of its number. */
typedef struct {
    uint64_t request;
    char text[NAME];
} name;

static struct {
    stretch *stretches; /* a ring; NULL: the recorder is off */
    uint64_t size, count, first, dropped;
    uint64_t sample_count, first_sample;
    sample samples[SAMPLES];
    name names[NAMES];
    heddle_places places;
} *recorder;

/* -- recording ----------------------------------------------------------------------------------------------------- */

static uint64_t number_of(const heddle_spender *spender)
{
    return (uint64_t)(uintptr_t)spender->account << 16 ^ spender->request;
}

/* Numbers of places that are in the rings get another meaning, so these begin anew, too. */
static void make_room_for_places(void)
{
    if (!heddle_places_are_full(&recorder->places))
        return;
    memset(&recorder->places, 0, sizeof(recorder->places));
    recorder->dropped += recorder->count - recorder->first;
    recorder->first = recorder->count;
    recorder->first_sample = recorder->sample_count;
}

static stretch *add(int64_t began, int64_t ended, uint64_t request, heddle_spent part)
{
    stretch *one = &recorder->stretches[recorder->count++ % recorder->size];
    *one = (stretch){.began = began, .ended = ended, .request = request, .part = (uint8_t)part};
    return one;
}

static void note_name(const heddle_spender *spender, uint64_t request)
{
    name *one = &recorder->names[(request ^ request >> 20) % NAMES];
    if (one->request == request)
        return;
    heddle_fiber *fiber = (heddle_fiber *)((uintptr_t)spender - offsetof(heddle_fiber, spender));
    size_t size = fiber->describe ? fiber->describe(fiber, one->text, NAME - 1) : 0;
    one->text[size] = '\0';
    one->request = request;
}

static void record(const heddle_spender *spender, int64_t now)
{
    if (now <= spender->since)
        return;
    make_room_for_places();
    uint64_t request = number_of(spender);
    stretch *one = add(spender->since, now, request, spender->doing);
    one->task = spender->task;
    note_name(spender, request);
    /* its line is where the next wait begins */
    if (spender->doing == HEDDLE_SPENT_RUNNING)
        one->place = heddle_places_find(&recorder->places);
}

void heddle_recorder_add_collection(int64_t began, int64_t ended)
{
    if (recorder)
        add(began, ended, 0, HEDDLE_SPENT_GC);
}

/* How much of the time until now garbage collections took. */
static int64_t collected_since(int64_t began)
{
    int64_t sum = 0;
    for (uint64_t i = recorder->count; i > recorder->first && recorder->count - i < recorder->size; i--) {
        const stretch *one = &recorder->stretches[(i - 1) % recorder->size];
        if (one->ended < began)
            break;
        if (!one->request && one->part == HEDDLE_SPENT_GC)
            sum += one->ended - (one->began > began ? one->began : began);
    }
    return sum;
}

static heddle_activity activity_of(const heddle_heartbeat *heartbeat, int64_t began, int64_t now)
{
    if (collected_since(began) > (now - began) / 2)
        return HEDDLE_ACTIVITY_COLLECTING;
    return atomic_load_explicit(&heartbeat->unanswered, memory_order_relaxed) > HEDDLE_HEARTBEAT_PATIENCE
               ? HEDDLE_ACTIVITY_NATIVE_GVL
               : HEDDLE_ACTIVITY_RUBY;
}

void heddle_recorder_add_stack(heddle_heartbeat *heartbeat, const heddle_spender *spender)
{
    int64_t now = heddle_clock_now(), began = atomic_load_explicit(&heartbeat->probed, memory_order_relaxed);
    if (began < heartbeat->stack_at)
        began = heartbeat->stack_at;
    if (!recorder || now - began < INTERVAL)
        return;
    heartbeat->stack_at = now;
    make_room_for_places();
    sample one = {.began = began, .ended = now, .activity = (uint8_t)activity_of(heartbeat, began, now)};
    one.task = spender != NULL;
    if (spender && heddle_spender_counts(spender)) {
        one.request = number_of(spender);
        one.task = spender->task;
    }
    heddle_places_read_stack(&recorder->places, one.frames, FRAMES, &one.place);
    if (recorder)
        recorder->samples[recorder->sample_count++ % SAMPLES] = one;
}

/* -- methods of Ruby ----------------------------------------------------------------------------------------------- */

static void switch_off(void)
{
    heddle_account_record = NULL;
    atomic_store(&heddle_recording, false);
    if (recorder)
        free(recorder->stretches);
    free(recorder);
    recorder = NULL;
}

/*
 * call-seq: Heddle::Account.record(stretches, prefixes) -> nil
 *
 * Switches the recorder on, empty, with room for so many stretches; nil: off. `prefixes`: see
 * heddle_places_set_prefixes.
 */
static VALUE account_record(VALUE self, VALUE stretches, VALUE prefixes)
{
    uint64_t size = NIL_P(stretches) ? 0 : NUM2ULL(stretches);
    if (size)
        heddle_places_set_prefixes(prefixes);
    switch_off();
    if (!size)
        return Qnil;
    recorder = calloc(1, sizeof(*recorder));
    if (recorder)
        recorder->stretches = calloc(size, sizeof(*recorder->stretches));
    if (!recorder || !recorder->stretches) {
        switch_off();
        rb_memerror();
    }
    recorder->size = size;
    heddle_account_record = record;
    atomic_store(&heddle_recording, true);
    return Qnil;
}

VALUE heddle_recorder_number(const heddle_spender *spender)
{
    return heddle_spender_counts(spender) ? ULL2NUM(number_of(spender)) : Qnil;
}

/* A copy of the last entries of a ring, oldest first. Making room for it may collect garbage, and so add a stretch. */
static VALUE copy_ring(const void *ring, size_t entry, uint64_t size, const uint64_t *begins, const uint64_t *count)
{
    VALUE copy = rb_str_buf_new((long)(size * entry));
    uint64_t first = *count - *begins > size ? *count - size : *begins;
    uint64_t kept = *count - first, start = first % size, ahead = size - start < kept ? size - start : kept;
    rb_str_buf_cat(copy, (const char *)ring + start * entry, (long)(ahead * entry));
    rb_str_buf_cat(copy, (const char *)ring, (long)((kept - ahead) * entry));
    return copy;
}

/*
 * call-seq: Heddle::Account.recorded -> Array or nil
 *
 * Copies of the memory: the stretches in the order of their ends, the stacks, the names and the places; then how many
 * stretches were overwritten. To make objects of each would hold up the loop.
 */
static VALUE account_recorded(VALUE self)
{
    if (!recorder)
        return Qnil;
    uint64_t kept = recorder->count - recorder->first;
    VALUE lost = ULL2NUM(recorder->dropped + (kept > recorder->size ? kept - recorder->size : 0));
    VALUE stretches =
        copy_ring(recorder->stretches, sizeof(stretch), recorder->size, &recorder->first, &recorder->count);
    VALUE samples =
        copy_ring(recorder->samples, sizeof(sample), SAMPLES, &recorder->first_sample, &recorder->sample_count);
    VALUE names = rb_str_new((const char *)recorder->names, sizeof(recorder->names));
    VALUE places = rb_str_new((const char *)recorder->places.texts, sizeof(recorder->places.texts));
    return rb_ary_new_from_args(5, stretches, samples, names, places, lost);
}

void Init_heddle_recorder(VALUE account)
{
    rb_define_singleton_method(account, "record", account_record, 2);
    rb_define_singleton_method(account, "recorded", account_recorded, 0);
}
