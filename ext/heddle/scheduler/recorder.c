#include "scheduler/recorder.h"

#include <ruby/debug.h>
#include <stdlib.h>
#include <string.h>

enum {
    EVENTS = 16384,
    PLACE = 104, /* bytes of a file and line, its end */
    FRAMES = 40,
};

typedef struct {
    int64_t began, ended;
    uint64_t request; /* 0: none */
    uint8_t part;
    bool task;
    char place[PLACE];
} event;

static event *ring; /* NULL: the recorder is off */
static uint64_t count;
static char own_folder[512];

static uint64_t number_of(const heddle_spender *spender)
{
    return (uint64_t)(uintptr_t)spender->account << 16 ^ spender->request;
}

/* The innermost line that is neither Heddle's nor Ruby's own, such as "app/models/order.rb:12". */
static void find_place(char place[PLACE])
{
    VALUE frames[FRAMES];
    int lines[FRAMES], found = rb_profile_frames(0, FRAMES, frames, lines);
    for (int i = 0; i < found; i++) {
        VALUE path = rb_profile_frame_path(frames[i]);
        if (NIL_P(path) || !RB_TYPE_P(path, T_STRING))
            continue;
        const char *text = RSTRING_PTR(path);
        size_t size = (size_t)RSTRING_LEN(path), room = PLACE - 14;
        if (!size || text[0] == '<' || strncmp(text, own_folder, strlen(own_folder)) == 0)
            continue;
        if (size > room)
            text += size - room;
        snprintf(place, PLACE, "%.*s:%d", (int)(size > room ? room : size), text, lines[i]);
        return;
    }
}

static event *add(int64_t began, int64_t ended, uint64_t request, heddle_spent part)
{
    event *one = &ring[count++ % EVENTS];
    one->began = began;
    one->ended = ended;
    one->request = request;
    one->part = (uint8_t)part;
    one->task = false;
    one->place[0] = 0;
    return one;
}

static void record(const heddle_spender *spender, int64_t now)
{
    if (now <= spender->since)
        return;
    event *one = add(spender->since, now, number_of(spender), spender->doing);
    one->task = spender->task;
    /* its line is where the next wait begins */
    if (spender->doing == HEDDLE_SPENT_RUNNING)
        find_place(one->place);
}

void heddle_recorder_add_collection(int64_t began, int64_t ended)
{
    if (ring)
        add(began, ended, 0, HEDDLE_SPENT_GC);
}

/*
 * call-seq: Heddle::Account.record(folder) -> nil
 *
 * Switches the recorder on, empty; nil: off. `folder`: of Heddle's own files, whose lines are never a place.
 */
static VALUE account_record(VALUE self, VALUE folder)
{
    if (NIL_P(folder)) {
        heddle_account_record = NULL;
        free(ring);
        ring = NULL;
        return Qnil;
    }
    snprintf(own_folder, sizeof(own_folder), "%s", StringValueCStr(folder));
    if (!ring) {
        ring = calloc(EVENTS, sizeof(*ring));
        if (!ring)
            rb_memerror();
    }
    count = 0;
    heddle_account_record = record;
    return Qnil;
}

VALUE heddle_recorder_number(const heddle_spender *spender)
{
    return heddle_spender_counts(spender) ? ULL2NUM(number_of(spender)) : Qnil;
}

/*
 * call-seq: Heddle::Account.recorded -> Array
 *
 * The stretches, in the order of their ends: [beginning and end (seconds of CLOCK_MONOTONIC), number of the request or
 * 0, part, whether a task's, file and line where it ended or nil].
 */
static VALUE account_recorded(VALUE self)
{
    VALUE result = rb_ary_new();
    if (!ring)
        return result;
    uint64_t last = count, first = last > EVENTS ? last - EVENTS : 0;
    for (uint64_t i = first; i < last && ring; i++) {
        event one = ring[i % EVENTS]; /* allocating objects may run other threads */
        VALUE values[] = {
            DBL2NUM((double)one.began / 1e9),
            DBL2NUM((double)one.ended / 1e9),
            ULL2NUM(one.request),
            ID2SYM(rb_intern(heddle_account_names[one.part])),
            one.task ? Qtrue : Qfalse,
            one.place[0] ? rb_utf8_str_new_cstr(one.place) : Qnil,
        };
        rb_ary_push(result, rb_ary_new_from_values(6, values));
    }
    return result;
}

void Init_heddle_recorder(VALUE account)
{
    rb_define_singleton_method(account, "record", account_record, 1);
    rb_define_singleton_method(account, "recorded", account_recorded, 0);
}
