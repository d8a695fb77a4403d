/* The methods of Heddle::Net::Scoreboard that limit pools over all workers: see net/pool_shares.h. */

#include "net/pool_shares.h"
#include "net/scoreboard_ruby.h"

#include "scheduler/loop.h"

/* Returns the 64-bit FNV-1a hash of the name, but never 0, which would mean that there is no pool. */
static uint64_t hash_name(VALUE name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    const char *bytes = RSTRING_PTR(name);
    for (long i = 0; i < RSTRING_LEN(name); i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return hash ? hash : 1;
}

/*
 * call-seq: open_pool(name, total) -> Integer or nil
 *
 * Returns the number of the pool with this name, or nil if there is no room for another pool. All workers together may
 * have +total+ resources of this pool.
 */
static VALUE scoreboard_open_pool(VALUE self, VALUE name, VALUE total)
{
    int number = heddle_pool_open(heddle_scoreboard_of(self), hash_name(StringValue(name)), NUM2UINT(total));
    return number < 0 ? Qnil : INT2NUM(number);
}

typedef struct {
    heddle_scoreboard *scoreboard;
    uint32_t pool, slot;
} pool_of_slot;

static pool_of_slot check_pool(VALUE self, VALUE pool, VALUE slot)
{
    pool_of_slot it = {heddle_scoreboard_of(self), NUM2UINT(pool), NUM2UINT(slot)};
    if (it.pool >= HEDDLE_SHARED_POOLS)
        rb_raise(rb_eArgError, "the scoreboard has no pool %u", it.pool);
    if (it.slot >= it.scoreboard->slot_count)
        rb_raise(rb_eArgError, "the scoreboard has no slot %u", it.slot);
    return it;
}

/*
 * call-seq: take_share(pool, slot) -> true or false
 *
 * Takes a share, which allows one more resource. Returns false if no share is free, or if another waiting worker is to
 * get it first.
 */
static VALUE scoreboard_take_share(VALUE self, VALUE pool, VALUE slot)
{
    pool_of_slot it = check_pool(self, pool, slot);
    return heddle_pool_take(it.scoreboard, it.pool, it.slot, heddle_clock_coarse()) ? Qtrue : Qfalse;
}

/*
 * call-seq: return_share(pool, slot) -> nil
 *
 * Gives back the share of a closed resource.
 */
static VALUE scoreboard_return_share(VALUE self, VALUE pool, VALUE slot)
{
    pool_of_slot it = check_pool(self, pool, slot);
    heddle_pool_return(it.scoreboard, it.pool, it.slot);
    return Qnil;
}

/*
 * call-seq: wait_for_share(pool, slot, waits) -> nil
 *
 * Reports whether this worker waits for a share, so that a worker with more shares gives one back. The worker repeats
 * the call while it waits.
 */
static VALUE scoreboard_wait_for_share(VALUE self, VALUE pool, VALUE slot, VALUE waits)
{
    pool_of_slot it = check_pool(self, pool, slot);
    if (RTEST(waits))
        heddle_pool_wait(it.scoreboard, it.pool, it.slot, heddle_clock_coarse());
    else
        heddle_pool_end_wait(it.scoreboard, it.pool, it.slot);
    return Qnil;
}

/*
 * call-seq: least_waiting(pool, slot) -> Integer or nil
 *
 * Returns the smallest number of shares that any other waiting worker has. Returns nil if no other worker waits, or if
 * a share is free.
 */
static VALUE scoreboard_least_waiting(VALUE self, VALUE pool, VALUE slot)
{
    pool_of_slot it = check_pool(self, pool, slot);
    int least = heddle_pool_least_waiting(it.scoreboard, it.pool, it.slot, heddle_clock_coarse());
    return least < 0 ? Qnil : INT2NUM(least);
}

/*
 * call-seq: shares(pool) -> Integer
 *
 * Returns how many shares all workers have together.
 */
static VALUE scoreboard_shares(VALUE self, VALUE pool)
{
    pool_of_slot it = check_pool(self, pool, INT2FIX(0));
    return UINT2NUM(heddle_pool_taken(it.scoreboard, it.pool));
}

void Init_heddle_pool_shares(VALUE scoreboard_class)
{
    rb_define_method(scoreboard_class, "open_pool", scoreboard_open_pool, 2);
    rb_define_method(scoreboard_class, "take_share", scoreboard_take_share, 2);
    rb_define_method(scoreboard_class, "return_share", scoreboard_return_share, 2);
    rb_define_method(scoreboard_class, "wait_for_share", scoreboard_wait_for_share, 3);
    rb_define_method(scoreboard_class, "least_waiting", scoreboard_least_waiting, 2);
    rb_define_method(scoreboard_class, "shares", scoreboard_shares, 1);
}
