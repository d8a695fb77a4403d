/* Heddle::Net::Learned: which endpoints have held up their workers, for all processes of a server. */

#include "net/learned_ruby.h"

#include "scheduler/loop.h"

#include <errno.h>
#include <string.h>

static void learned_free(void *data)
{
    heddle_learned_close(data);
    ruby_xfree(data);
}

static size_t learned_size(const void *data)
{
    return sizeof(heddle_learned);
}

static const rb_data_type_t learned_type = {
    .wrap_struct_name = "Heddle::Net::Learned",
    .function = {.dfree = learned_free, .dsize = learned_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE learned_allocate(VALUE klass)
{
    heddle_learned *learned;
    VALUE object = TypedData_Make_Struct(klass, heddle_learned, &learned_type, learned);
    *learned = (heddle_learned){.memory.fd = -1};
    return object;
}

static heddle_learned *learned_data(VALUE object)
{
    return rb_check_typeddata(object, &learned_type);
}

heddle_learned *heddle_learned_of(VALUE object)
{
    heddle_learned *learned = learned_data(object);
    if (!learned->header)
        rb_raise(rb_eIOError, "this table is not open");
    return learned;
}

static int64_t nanoseconds(VALUE seconds)
{
    double value = NUM2DBL(seconds) * 1e9;
    return value < 9e18 ? (int64_t)value : INT64_MAX;
}

static VALUE seconds(int64_t nanoseconds)
{
    return DBL2NUM((double)nanoseconds / 1e9);
}

static void decay_in(heddle_learned *learned, VALUE half_life, VALUE threshold)
{
    learned->half_life = nanoseconds(half_life);
    learned->threshold = nanoseconds(threshold);
    if (learned->half_life <= 0 || learned->threshold < 0)
        rb_raise(rb_eArgError, "a half-life is more than 0 seconds, and a threshold not less");
}

/*
 * call-seq: Learned.new(slots) -> learned
 *
 * Memory that this process shares with those that it forks, with room for so many endpoints.
 */
static VALUE learned_initialize(VALUE self, VALUE slots)
{
    heddle_learned *learned = learned_data(self);
    uint32_t count = NUM2UINT(slots);
    if (count == 0 || count > 4096)
        rb_raise(rb_eArgError, "a table has 1 to 4096 slots, not %u", count);
    if (learned->header)
        rb_raise(rb_eArgError, "initialized already");
    int result = heddle_learned_create(learned, count);
    if (result < 0)
        rb_syserr_fail(-result, "making the table of learned endpoints");
    decay_in(learned, INT2FIX(600), DBL2NUM(0.25));
    return self;
}

/*
 * call-seq: Learned.for_fd(descriptor) -> learned
 *
 * The one that this descriptor, of #descriptor in another process, stands for; it is its own from now on. Raises
 * Errno::EPROTO when it is of another version.
 */
static VALUE learned_for_fd(VALUE klass, VALUE descriptor)
{
    VALUE self = learned_allocate(klass);
    heddle_learned *learned = learned_data(self);
    int result = heddle_learned_open(learned, NUM2INT(descriptor));
    if (result < 0)
        rb_syserr_fail(-result, "opening the table of learned endpoints");
    decay_in(learned, INT2FIX(600), DBL2NUM(0.25));
    return self;
}

/*
 * call-seq: descriptor -> Integer or nil
 *
 * Of the memory; it closes when a program is executed. nil where there is none.
 */
static VALUE learned_descriptor(VALUE self)
{
    heddle_learned *learned = heddle_learned_of(self);
    return learned->memory.fd < 0 ? Qnil : INT2FIX(learned->memory.fd);
}

/*
 * call-seq: judge(half_life, threshold) -> self
 *
 * In how many seconds a score halves, and above how many seconds an endpoint is the quarantine's. In this process.
 */
static VALUE learned_judge(VALUE self, VALUE half_life, VALUE threshold)
{
    decay_in(heddle_learned_of(self), half_life, threshold);
    return self;
}

static int64_t time_of(int count, VALUE now)
{
    return count && !NIL_P(now) ? nanoseconds(now) : heddle_now();
}

/* "GET /users/7?a=b" -> "GET /users/:id" */
static void endpoint(char name[HEDDLE_LEARNED_NAME], VALUE request)
{
    StringValue(request);
    const char *text = RSTRING_PTR(request);
    size_t size = (size_t)RSTRING_LEN(request);
    const char *space = memchr(text, ' ', size);
    size_t method = space ? (size_t)(space - text) : size, target = space ? method + 1 : size;
    heddle_endpoint_write(name, text, method, text + target, size - target);
}

/*
 * call-seq: Learned.endpoint(request) -> String
 *
 * What a request such as "GET /users/7" counts by: "GET /users/:id".
 */
static VALUE learned_endpoint(VALUE klass, VALUE request)
{
    char name[HEDDLE_LEARNED_NAME];
    endpoint(name, request);
    return rb_utf8_str_new_cstr(name);
}

/*
 * call-seq: note(request, seconds, now = nil) -> nil
 *
 * A request such as "GET /users/7" has held up its worker for so long. +now+: seconds of CLOCK_MONOTONIC.
 */
static VALUE learned_note(int count, VALUE *arguments, VALUE self)
{
    char name[HEDDLE_LEARNED_NAME];
    rb_check_arity(count, 2, 3);
    heddle_learned *learned = heddle_learned_of(self);
    endpoint(name, arguments[0]);
    heddle_learned_note(learned, name, nanoseconds(arguments[1]), time_of(count - 2, arguments[count - 1]));
    return Qnil;
}

/*
 * call-seq: score(request, now = nil) -> Float
 *
 * For how many seconds such requests have lately held up their workers; 0.0 when nothing is known of them.
 */
static VALUE learned_score(int count, VALUE *arguments, VALUE self)
{
    char name[HEDDLE_LEARNED_NAME];
    rb_check_arity(count, 1, 2);
    heddle_learned *learned = heddle_learned_of(self);
    endpoint(name, arguments[0]);
    return seconds(heddle_learned_score(learned, name, time_of(count - 1, arguments[count - 1])));
}

/*
 * call-seq: read(slot, now = nil) -> Array or nil
 *
 * What one slot knows: endpoint, score in seconds, how many stalls, how many seconds ago the last one was noted.
 */
static VALUE learned_read(int count, VALUE *arguments, VALUE self)
{
    heddle_learned_entry entry;
    rb_check_arity(count, 1, 2);
    heddle_learned *learned = heddle_learned_of(self);
    uint32_t slot = NUM2UINT(arguments[0]);
    int64_t now = time_of(count - 1, arguments[count - 1]);
    if (slot >= learned->header->slot_count)
        rb_raise(rb_eArgError, "the table has no slot %u", slot);
    if (!heddle_learned_read(learned, slot, now, &entry))
        return Qnil;
    return rb_ary_new_from_args(4, rb_utf8_str_new_cstr(entry.name), seconds(entry.score), UINT2NUM(entry.count),
                                seconds(now - entry.at));
}

/*
 * call-seq: slots -> Integer
 */
static VALUE learned_slots(VALUE self)
{
    return UINT2NUM(heddle_learned_of(self)->header->slot_count);
}

/*
 * call-seq: forget(request = nil) -> Integer
 *
 * Forgets what such requests have done, or all of it. How many endpoints were known.
 */
static VALUE learned_forget(int count, VALUE *arguments, VALUE self)
{
    char name[HEDDLE_LEARNED_NAME];
    rb_check_arity(count, 0, 1);
    heddle_learned *learned = heddle_learned_of(self);
    bool one = count && !NIL_P(arguments[0]);
    if (one)
        endpoint(name, arguments[0]);
    return UINT2NUM(heddle_learned_reset(learned, one ? name : NULL, heddle_now()));
}

/*
 * call-seq: sweep(now = nil) -> nil
 *
 * Notices when all has decayed, so that looking costs nothing again.
 */
static VALUE learned_sweep(int count, VALUE *arguments, VALUE self)
{
    rb_check_arity(count, 0, 1);
    heddle_learned_sweep(heddle_learned_of(self), time_of(count, count ? arguments[0] : Qnil));
    return Qnil;
}

/*
 * call-seq: any? -> true or false
 *
 * Is there anything that requests are looked up for?
 */
static VALUE learned_any_p(VALUE self)
{
    return heddle_learned_any(heddle_learned_of(self)) ? Qtrue : Qfalse;
}

/*
 * call-seq: quarantine -> Integer or nil
 *
 * The slot of the board whose worker serves what was learned; nil: none does.
 */
static VALUE learned_quarantine(VALUE self)
{
    uint32_t word = atomic_load_explicit(&heddle_learned_of(self)->header->quarantine, memory_order_relaxed);
    return word ? UINT2NUM(word - 1) : Qnil;
}

/*
 * call-seq: quarantine = Integer or nil
 */
static VALUE learned_set_quarantine(VALUE self, VALUE slot)
{
    uint32_t word = NIL_P(slot) ? 0 : NUM2UINT(slot) + 1;
    atomic_store_explicit(&heddle_learned_of(self)->header->quarantine, word, memory_order_relaxed);
    return slot;
}

void Init_heddle_learned(VALUE net)
{
    VALUE learned_class = rb_define_class_under(net, "Learned", rb_cObject);
    rb_define_alloc_func(learned_class, learned_allocate);
    rb_define_singleton_method(learned_class, "for_fd", learned_for_fd, 1);
    rb_define_singleton_method(learned_class, "endpoint", learned_endpoint, 1);
    rb_define_method(learned_class, "initialize", learned_initialize, 1);
    rb_define_method(learned_class, "descriptor", learned_descriptor, 0);
    rb_define_method(learned_class, "judge", learned_judge, 2);
    rb_define_method(learned_class, "slots", learned_slots, 0);
    rb_define_method(learned_class, "note", learned_note, -1);
    rb_define_method(learned_class, "score", learned_score, -1);
    rb_define_method(learned_class, "read", learned_read, -1);
    rb_define_method(learned_class, "forget", learned_forget, -1);
    rb_define_method(learned_class, "sweep", learned_sweep, -1);
    rb_define_method(learned_class, "any?", learned_any_p, 0);
    rb_define_method(learned_class, "quarantine", learned_quarantine, 0);
    rb_define_method(learned_class, "quarantine=", learned_set_quarantine, 1);
}
