/* Heddle::Net::Scoreboard: access to the scoreboard (scoreboard.h) for the master, and for status and metrics. */

#include "net/scoreboard_ruby.h"

#include "net/pool_shares.h"
#include "net/sockets.h"

#include "binding.h"

/*
 * Does nothing if the memory must remain mapped (`kept`): when a process ends, Ruby frees all objects in any order, and
 * may free the Scoreboard before objects that still write to the memory.
 */
static void scoreboard_free(void *data)
{
    if (((heddle_scoreboard *)data)->kept)
        return;
    heddle_scoreboard_close(data);
    ruby_xfree(data);
}

static const rb_data_type_t scoreboard_type =
    HEDDLE_TYPE("Heddle::Net::Scoreboard", 0, .dfree = scoreboard_free);

static VALUE scoreboard_allocate(VALUE klass)
{
    heddle_scoreboard *scoreboard;
    VALUE object = TypedData_Make_Struct(klass, heddle_scoreboard, &scoreboard_type, scoreboard);
    *scoreboard = (heddle_scoreboard){.memory.fd = -1, .notify_fd = -1, .alarm_fd = -1};
    return object;
}

HEDDLE_RECORD_OF(scoreboard_data, heddle_scoreboard, scoreboard_type)

heddle_scoreboard *heddle_scoreboard_of(VALUE object)
{
    heddle_scoreboard *scoreboard = scoreboard_data(object);
    if (!scoreboard->header)
        rb_raise(rb_eIOError, "this scoreboard is closed or was never opened");
    return scoreboard;
}

static heddle_scoreboard_slot *slot_of(heddle_scoreboard *scoreboard, VALUE number)
{
    uint32_t slot = NUM2UINT(number);
    if (slot >= scoreboard->slot_count)
        rb_raise(rb_eArgError, "the scoreboard has no slot %u", slot);
    return &scoreboard->slots[slot];
}

/*
 * call-seq: Scoreboard.new(slots) -> scoreboard
 *
 * Makes a scoreboard with room for +slots+ workers. This process shares it with the processes that it forks.
 */
static VALUE scoreboard_initialize(VALUE self, VALUE slots)
{
    heddle_scoreboard *scoreboard = scoreboard_data(self);
    uint32_t count = NUM2UINT(slots);
    if (count == 0 || count > HEDDLE_SCOREBOARD_MAX)
        rb_raise(rb_eArgError, "a scoreboard must have 1 to %d slots, not %u", HEDDLE_SCOREBOARD_MAX, count);
    if (scoreboard->header)
        rb_raise(rb_eArgError, "this scoreboard is already initialized");
    int result = heddle_scoreboard_create(scoreboard, count);
    if (result < 0)
        rb_syserr_fail(-result, "making the scoreboard");
    return self;
}

/*
 * call-seq: Scoreboard.for_fd(memory, notify) -> scoreboard
 *
 * Opens another process's scoreboard by the two descriptors that #descriptors has returned there, and takes ownership
 * of them. Raises Errno::EPROTO if the scoreboard is of another version.
 */
static VALUE scoreboard_for_fd(VALUE klass, VALUE memory, VALUE notify)
{
    VALUE self = scoreboard_allocate(klass);
    int result = heddle_scoreboard_open(scoreboard_data(self), NUM2INT(memory), NUM2INT(notify));
    if (result < 0)
        rb_syserr_fail(-result, "opening the scoreboard");
    return self;
}

/*
 * call-seq: descriptors -> [Integer, Integer] or nil
 *
 * Returns the descriptors of the memory and of the eventfd that notifies the workers. Both are close-on-exec. Returns
 * nil unless the system supports both.
 */
static VALUE scoreboard_descriptors(VALUE self)
{
    heddle_scoreboard *scoreboard = heddle_scoreboard_of(self);
    if (scoreboard->memory.fd < 0 || scoreboard->notify_fd < 0)
        return Qnil;
    return rb_ary_new_from_args(2, INT2FIX(scoreboard->memory.fd), INT2FIX(scoreboard->notify_fd));
}

/*
 * call-seq: alarm_descriptor -> Integer or nil
 *
 * Returns the descriptor of an eventfd, or nil if the system does not support it. The eventfd becomes readable when a
 * worker of this master has been stuck for 100 ms, but not while that worker collects garbage.
 */
static VALUE scoreboard_alarm_descriptor(VALUE self)
{
    int fd = heddle_scoreboard_of(self)->alarm_fd;
    return fd < 0 ? Qnil : INT2FIX(fd);
}

/*
 * call-seq: claim(generation, index) -> Integer or nil
 *
 * Assigns a free slot to the worker with the number +index+. Returns the slot's number, or nil if no slot is free.
 * Called by the master.
 */
static VALUE scoreboard_claim(VALUE self, VALUE generation, VALUE index)
{
    uint32_t number = NUM2UINT(generation);
    if (number == 0)
        rb_raise(rb_eArgError, "the generation must be at least 1");
    int64_t slot = heddle_scoreboard_acquire(heddle_scoreboard_of(self), number, NUM2UINT(index));
    return slot < 0 ? Qnil : LL2NUM(slot);
}

/*
 * call-seq: free(slot) -> nil
 *
 * Releases the slot of a worker that has ended. Called by the master.
 */
static VALUE scoreboard_free_slot(VALUE self, VALUE number)
{
    heddle_scoreboard *scoreboard = heddle_scoreboard_of(self);
    uint32_t slot = (uint32_t)(slot_of(scoreboard, number) - scoreboard->slots);
    heddle_pool_release_slot(scoreboard, slot);
    heddle_scoreboard_release(scoreboard, slot);
    heddle_scoreboard_notify(scoreboard);
    return Qnil;
}

/*
 * call-seq: slots -> Integer
 */
HEDDLE_DEFINE_METHOD(scoreboard_slots, "slots", UINT2NUM(heddle_scoreboard_of(self)->slot_count))

static double seconds_of(int64_t nanoseconds)
{
    return (double)nanoseconds / 1e9;
}

#define PUT(key, value) rb_hash_aset(hash, ID2SYM(rb_intern(key)), value)
#define WORD(word) atomic_load_explicit(&slot->word, memory_order_relaxed)

/*
 * call-seq: read(slot) -> Hash or nil
 *
 * Returns the current values of this slot, or nil if the slot is free. The keys are generation, index, pid, accepting,
 * in_flight, connections, waiting, reserve (true or false), limit (nil: no limit), lag in seconds, busy_for (how many
 * seconds the loop's current tick has lasted; nil: the loop is idle), stuck_for (how many seconds ago a loop of the
 * worker last got blocked; nil: none is blocked now), accepted, requests.
 */
static VALUE scoreboard_read(VALUE self, VALUE number)
{
    const heddle_scoreboard_slot *slot = slot_of(heddle_scoreboard_of(self), number);
    if (WORD(generation) == 0)
        return Qnil;
    int64_t tick_began = WORD(tick_began), now = heddle_clock_coarse();
    VALUE hash = rb_hash_new();
    PUT("generation", UINT2NUM(WORD(generation)));
    PUT("index", UINT2NUM(WORD(index)));
    PUT("pid", UINT2NUM(WORD(pid)));
    PUT("accepting", WORD(accepting) ? Qtrue : Qfalse);
    PUT("in_flight", UINT2NUM(WORD(in_flight)));
    PUT("connections", UINT2NUM(WORD(connections)));
    PUT("waiting", UINT2NUM(WORD(waiting)));
    PUT("reserve", WORD(reserve) ? Qtrue : Qfalse);
    PUT("limit", WORD(limit) ? UINT2NUM(WORD(limit)) : Qnil);
    PUT("lag", DBL2NUM(seconds_of(WORD(lag))));
    PUT("busy_for", tick_began ? DBL2NUM(seconds_of(now > tick_began ? now - tick_began : 0)) : Qnil);
    PUT("stuck_for", WORD(stuck) ? DBL2NUM(seconds_of(now - WORD(stuck_since))) : Qnil);
    PUT("accepted", ULL2NUM(WORD(accepted)));
    PUT("requests", ULL2NUM(WORD(requests)));
    return hash;
}

/*
 * call-seq: write_load(slot, lag, waiting, limit) -> nil
 *
 * Sets the values that change slowly: the loop's lag in seconds, the number of queued requests, and how many requests
 * may run at once (nil: no limit). Called by the slot's worker.
 */
static VALUE scoreboard_write_load(VALUE self, VALUE number, VALUE lag, VALUE waiting, VALUE limit)
{
    heddle_scoreboard_slot *slot = slot_of(heddle_scoreboard_of(self), number);
    HEDDLE_SCOREBOARD_SET(slot->lag, (int64_t)(NUM2DBL(lag) * 1e9));
    HEDDLE_SCOREBOARD_SET(slot->waiting, NUM2UINT(waiting));
    HEDDLE_SCOREBOARD_SET(slot->limit, NIL_P(limit) ? 0 : NUM2UINT(limit));
    return Qnil;
}

/*
 * call-seq: memory -> Integer or nil
 *
 * Returns how many bytes of memory all processes of the server use, or nil if that is not known.
 */
static VALUE scoreboard_memory(VALUE self)
{
    uint64_t bytes = atomic_load_explicit(&heddle_scoreboard_of(self)->header->memory, memory_order_relaxed);
    return bytes ? ULL2NUM(bytes) : Qnil;
}

/*
 * call-seq: memory = bytes
 *
 * Sets how many bytes of memory all processes of the server use. Called by the master.
 */
static VALUE scoreboard_set_memory(VALUE self, VALUE bytes)
{
    HEDDLE_SCOREBOARD_SET(heddle_scoreboard_of(self)->header->memory, NUM2ULL(bytes));
    return bytes;
}

void Init_heddle_scoreboard(VALUE net)
{
    VALUE scoreboard_class = heddle_define_class(net, "Scoreboard", scoreboard_allocate);
    rb_define_const(scoreboard_class, "MAX_SLOTS", INT2FIX(HEDDLE_SCOREBOARD_MAX));
    rb_define_const(scoreboard_class, "RESERVE_AFTER", DBL2NUM(seconds_of(HEDDLE_RESERVE_AFTER)));
    rb_define_singleton_method(scoreboard_class, "for_fd", scoreboard_for_fd, 2);
    rb_define_method(scoreboard_class, "initialize", scoreboard_initialize, 1);
    rb_define_method(scoreboard_class, "descriptors", scoreboard_descriptors, 0);
    rb_define_method(scoreboard_class, "slots", scoreboard_slots, 0);
    rb_define_method(scoreboard_class, "alarm_descriptor", scoreboard_alarm_descriptor, 0);
    rb_define_method(scoreboard_class, "memory", scoreboard_memory, 0);
    rb_define_method(scoreboard_class, "memory=", scoreboard_set_memory, 1);
    rb_define_method(scoreboard_class, "claim", scoreboard_claim, 2);
    rb_define_method(scoreboard_class, "free", scoreboard_free_slot, 1);
    rb_define_method(scoreboard_class, "read", scoreboard_read, 1);
    rb_define_method(scoreboard_class, "write_load", scoreboard_write_load, 4);
    Init_heddle_pool_shares(scoreboard_class);
}
