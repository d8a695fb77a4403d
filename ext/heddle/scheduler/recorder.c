#include "scheduler/recorder.h"

#include "scheduler/loop.h"
#include "scheduler/recorder_places.h"

enum {
    STRETCHES_PER_SAMPLE = 8,
    FRAMES = 22, /* the maximum number of frames that are kept of each stack */
    NAMES = 4096,
    NAME = 120, /* the size of a name in bytes, including the final NUL */
};

static const int64_t INTERVAL = 5000000; /* The shortest interval between two recorded stacks of one loop, ns. */

/* A stretch of time. Heddle::Account::STRETCH has its format for String#unpack. */
typedef struct {
    int64_t began, ended;
    uint64_t request; /* the request's number, or 0 if the stretch belongs to no request */
    uint16_t place;
    uint8_t part, task;
    bool timed_out; /* true if a time limit ended the wait */
} stretch;

/* A stack. Heddle::Account::SAMPLE has its format for String#unpack. */
typedef struct {
    int64_t began, ended;
    /*
     * the request's number, or 0 if there is none; without a request, `task` tells whether this is a stack of the
     * loop's own thread
     */
    uint64_t request;
    uint8_t activity, task;
    uint16_t place;
    uint16_t frames[FRAMES]; /* innermost first; the unused elements at the end are 0 */
} sample;

/*
 * The name of a request. Heddle::Account::NAME has its format for String#unpack. The request's number determines the
 * name's index in `names`.
 */
typedef struct {
    uint64_t request;
    char text[NAME];
} name;

/*
 * A ring of the newest `size` entries. `count` is the number of entries added so far; entries before number `first`
 * were deleted.
 */
typedef struct {
    uint64_t size, count, first;
    size_t entry; /* the size of an entry, in bytes */
    char *entries;
} ring;

static struct {
    ring stretches, samples;
    uint64_t dropped; /* entries that were deleted by clearing the rings */
    name names[NAMES];
    heddle_places places;
} *recorder; /* NULL while the recorder is off */

static bool ring_allocate(ring *self, uint64_t size, size_t entry)
{
    *self = (ring){.size = size, .entry = entry, .entries = calloc(size, entry)};
    return self->entries;
}

static void *ring_add(ring *self)
{
    return self->entries + self->count++ % self->size * self->entry;
}

/* Returns how many entries were overwritten. */
static uint64_t ring_lost(const ring *self)
{
    uint64_t added = self->count - self->first;
    return added > self->size ? added - self->size : 0;
}

/* Empties the ring, and returns how many entries it had. */
static uint64_t ring_clear(ring *self)
{
    uint64_t added = self->count - self->first;
    self->first = self->count;
    return added;
}

/*
 * Returns a copy of the entries, oldest first. Allocates the copy before it reads the ring, because the allocation may
 * start a garbage collection, which adds a stretch to the ring.
 */
static VALUE ring_copy(const ring *self)
{
    VALUE copy = rb_str_buf_new((long)(self->size * self->entry));
    uint64_t first = self->first + ring_lost(self), kept = self->count - first;
    uint64_t start = first % self->size, ahead = self->size - start < kept ? self->size - start : kept;
    rb_str_buf_cat(copy, self->entries + start * self->entry, (long)(ahead * self->entry));
    rb_str_buf_cat(copy, self->entries, (long)((kept - ahead) * self->entry));
    return copy;
}

/* -- recording ----------------------------------------------------------------------------------------------------- */

static uint64_t number_of(const heddle_spender *spender)
{
    return (uint64_t)(uintptr_t)spender->account << 16 ^ spender->request;
}

/*
 * Empties the table of places if it is nearly full. Also empties the rings, because they contain indexes into that
 * table.
 */
static void make_room_for_places(void)
{
    if (!heddle_places_are_full(&recorder->places))
        return;
    memset(&recorder->places, 0, sizeof(recorder->places));
    recorder->dropped += ring_clear(&recorder->stretches) + ring_clear(&recorder->samples);
}

static stretch *add(int64_t began, int64_t ended, uint64_t request, heddle_spent part)
{
    stretch *one = ring_add(&recorder->stretches);
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
    one->timed_out = spender->timed_out;
    note_name(spender, request);
    /* the stretch ends where the next wait begins, so the place of the stretch is the fiber's current line */
    if (spender->doing == HEDDLE_SPENT_RUNNING)
        one->place = heddle_places_find(&recorder->places);
}

void heddle_recorder_add_collection(int64_t began, int64_t ended)
{
    if (recorder)
        add(began, ended, 0, HEDDLE_SPENT_GC);
}

/* Returns how much of the time since `began` garbage collections have taken, ns. */
static int64_t collected_since(int64_t began)
{
    int64_t sum = 0;
    const ring *stretches = &recorder->stretches;
    for (uint64_t i = stretches->count; i > stretches->first && stretches->count - i < stretches->size; i--) {
        const stretch *one = (const stretch *)stretches->entries + (i - 1) % stretches->size;
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
    return atomic_load_explicit(&heartbeat->unanswered, memory_order_relaxed) > HEDDLE_HEARTBEAT_MAX_UNANSWERED
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
        *(sample *)ring_add(&recorder->samples) = one;
}

/* -- methods of Ruby ----------------------------------------------------------------------------------------------- */

static void switch_off(void)
{
    heddle_account_record = NULL;
    atomic_store(&heddle_recording, false);
    if (recorder) {
        free(recorder->stretches.entries);
        free(recorder->samples.entries);
    }
    free(recorder);
    recorder = NULL;
}

/*
 * call-seq: Heddle::Account.record(stretches, prefixes) -> nil
 *
 * Switches the recorder on, with empty rings for this number of stretches and an eighth of that number of stacks. If
 * `stretches` is nil, switches the recorder off. `prefixes`: see heddle_places_set_prefixes.
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
    if (!recorder || !ring_allocate(&recorder->stretches, size, sizeof(stretch)) ||
        !ring_allocate(&recorder->samples, size / STRETCHES_PER_SAMPLE + 1, sizeof(sample))) {
        switch_off();
        rb_memerror();
    }
    heddle_account_record = record;
    atomic_store(&heddle_recording, true);
    return Qnil;
}

VALUE heddle_recorder_number(const heddle_spender *spender)
{
    return heddle_spender_counts(spender) ? ULL2NUM(number_of(spender)) : Qnil;
}

/*
 * call-seq: Heddle::Account.recorded -> Array or nil
 *
 * Returns copies of the rings and tables: the stretches in the order in which they ended, the stacks, the names and the
 * places. The last element is the number of entries that the rings have lost. Returns nil if the recorder is off.
 * Entries are copied as bytes, because creating an object for each would block the loop.
 */
static VALUE account_recorded(VALUE self)
{
    if (!recorder)
        return Qnil;
    uint64_t lost = recorder->dropped + ring_lost(&recorder->stretches) + ring_lost(&recorder->samples);
    VALUE stretches = ring_copy(&recorder->stretches), samples = ring_copy(&recorder->samples);
    VALUE names = rb_str_new((const char *)recorder->names, sizeof(recorder->names));
    VALUE places = rb_str_new((const char *)recorder->places.texts, sizeof(recorder->places.texts));
    return rb_ary_new_from_args(5, stretches, samples, names, places, ULL2NUM(lost));
}

void Init_heddle_recorder(VALUE account)
{
    rb_define_singleton_method(account, "record", account_record, 2);
    rb_define_singleton_method(account, "recorded", account_recorded, 0);
}
