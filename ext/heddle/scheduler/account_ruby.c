/*
 * Heddle::Account: the time account of the current request, and the reasons that adapters (code for one library, such
 * as a database driver) give for its waits.
 */

#include "scheduler/account_ruby.h"
#include "scheduler/account.h"

#include "binding.h"
#include "scheduler/loop.h"
#include "scheduler/recorder.h"

#include <ruby/debug.h>

static ID part_ids[HEDDLE_SPENT_PARTS];

/* -- garbage collections ------------------------------------------------------------------------------------------- */

static __thread int64_t collected_here; /* ns that garbage collections in this thread have taken */

static void follow_collector(rb_event_flag_t event, VALUE data, VALUE self, ID method, VALUE klass)
{
    static int64_t began;
    if (event == RUBY_INTERNAL_EVENT_GC_ENTER) {
        began = heddle_clock_now();
    } else if (began) {
        int64_t now = heddle_clock_now();
        heddle_collected += now - began;
        collected_here += now - began;
        heddle_recorder_add_collection(began, now);
    }
}

/* call-seq: Heddle::Account.switch(on) -> nil. Switches accounts on or off, for requests that begin from now on. */
static VALUE account_switch(VALUE self, VALUE on)
{
    if (RTEST(on) == heddle_accounting)
        return Qnil;
    heddle_accounting = RTEST(on);
    if (heddle_accounting)
        rb_add_event_hook2(follow_collector, RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT, Qnil,
                           RUBY_EVENT_HOOK_FLAG_SAFE);
    else
        rb_remove_event_hook(follow_collector);
    return Qnil;
}

/* -- reading the account ------------------------------------------------------------------------------------------- */

static VALUE seconds_of(int64_t time)
{
    return DBL2NUM((double)time / 1e9);
}

static VALUE hash_of_parts(const int64_t parts[HEDDLE_SPENT_PARTS])
{
    VALUE hash = rb_hash_new();
    for (int part = 0; part < HEDDLE_SPENT_PARTS; part++) {
        if (parts[part])
            rb_hash_aset(hash, ID2SYM(part_ids[part]), seconds_of(parts[part]));
    }
    return hash;
}

static VALUE hash_of_waits(const heddle_account *account)
{
    VALUE hash = rb_hash_new();
    for (int part = 0; part < HEDDLE_SPENT_PARTS; part++) {
        if (account->waits[part])
            rb_hash_aset(hash, ID2SYM(part_ids[part]), UINT2NUM(account->waits[part]));
    }
    return hash;
}

static VALUE hash_of_libraries(const heddle_account *account)
{
    VALUE hash = rb_hash_new();
    for (int i = 0; i < HEDDLE_ACCOUNT_LIBRARIES && account->libraries[i].name; i++)
        rb_hash_aset(hash, rb_str_new_cstr(account->libraries[i].name), seconds_of(account->libraries[i].spent));
    return hash;
}

/* Returns the account of a running request as a Hash, with times in seconds. */
static VALUE account_hash(const heddle_account *account)
{
    int64_t parts[HEDDLE_SPENT_PARTS], other, total = heddle_account_read(account, heddle_clock_now(), parts, &other);
    heddle_account copy = *account; /* a copy, because allocating objects may run other threads */
    VALUE hash = hash_of_parts(parts);
    rb_hash_aset(hash, ID2SYM(rb_intern("other")), seconds_of(other));
    rb_hash_aset(hash, ID2SYM(rb_intern("total")), seconds_of(total));
    rb_hash_aset(hash, ID2SYM(rb_intern("waits")), hash_of_waits(&copy));
    rb_hash_aset(hash, ID2SYM(rb_intern("libraries")), hash_of_libraries(&copy));
    rb_hash_aset(hash, ID2SYM(rb_intern("tasks")), hash_of_parts(copy.tasks));
    return hash;
}

static VALUE yield_nothing(VALUE unused)
{
    return rb_yield_values(0);
}

/* -- a request in a thread (mode thread) --------------------------------------------------------------------------- */

/*
 * While the runner's fiber waits for the thread that runs the application, the fiber's time counts as
 * HEDDLE_SPENT_THREAD. This record moves the thread's CPU time, and the thread's waits that adapters name, from that
 * part to other parts. `account` is part of the object `request`, and is used again for later requests: the time counts
 * only while account->request is `number`.
 */
typedef struct {
    VALUE request;
    heddle_account *account;
    unsigned number;
    int64_t cpu;       /* the thread's CPU time when it was last counted */
    int64_t collected; /* collected_here when it was last counted */
    int64_t moved;     /* ns that were moved to the parts of waits */
} share;

static __thread share *thread_share;

static void share_mark(void *data)
{
    rb_gc_mark(((share *)data)->request);
}

static const rb_data_type_t share_type =
    HEDDLE_TYPE("Heddle::Account share", 0, .dmark = share_mark, .dfree = RUBY_DEFAULT_FREE);

/*
 * call-seq: Heddle::Account.share -> Object or nil. Returns the account of the calling fiber's request, as an argument
 * for .use; nil if there is none.
 */
static VALUE account_share(VALUE self)
{
    heddle_loop *loop = heddle_loop_current();
    const heddle_fiber *fiber = loop ? loop->current : NULL;
    share *one;
    if (!fiber || !heddle_spender_counts(&fiber->spender))
        return Qnil;
    VALUE object = TypedData_Make_Struct(rb_cObject, share, &share_type, one);
    one->request = fiber->request;
    one->account = fiber->spender.account;
    one->number = fiber->spender.request;
    return object;
}

static bool is_counted(const share *one)
{
    return one && one->account->request == one->number;
}

static void move_time(share *one, heddle_spent part, int64_t time)
{
    one->account->waited = true;
    one->account->parts[part] += time;
    one->account->parts[HEDDLE_SPENT_THREAD] -= time;
}

static void count_cpu(share *one)
{
    int64_t cpu = heddle_clock_read(CLOCK_THREAD_CPUTIME_ID), ran = cpu - one->cpu;
    int64_t collected = collected_here - one->collected;
    collected = collected < ran ? collected : ran;
    if (is_counted(one)) {
        move_time(one, HEDDLE_SPENT_GC, collected);
        move_time(one, HEDDLE_SPENT_RUNNING, ran - collected);
    }
    one->cpu = cpu;
    one->collected = collected_here;
}

static VALUE end_share(VALUE data)
{
    count_cpu((share *)data);
    thread_share = NULL;
    return Qnil;
}

/*
 * call-seq: Heddle::Account.use(share) { ... } -> the block's value. Runs the block, and adds the calling thread's time
 * in the block to the account that .share has returned.
 */
static VALUE account_use(VALUE self, VALUE object)
{
    if (NIL_P(object))
        return rb_yield_values(0);
    share *one;
    TypedData_Get_Struct(object, share, &share_type, one);
    one->cpu = heddle_clock_read(CLOCK_THREAD_CPUTIME_ID);
    one->collected = collected_here;
    thread_share = one;
    VALUE result = rb_ensure(yield_nothing, Qnil, end_share, (VALUE)one);
    RB_GC_GUARD(object);
    return result;
}

typedef struct {
    share *share;
    heddle_spent part;
    int64_t began, cpu, moved;
} thread_wait;

static VALUE end_thread_wait(VALUE data)
{
    thread_wait *self = (thread_wait *)data;
    if (thread_share != self->share || !is_counted(self->share))
        return Qnil;
    count_cpu(self->share);
    int64_t inner = self->share->moved - self->moved;
    int64_t waited = heddle_clock_now() - self->began - (self->share->cpu - self->cpu) - inner;
    if (waited <= 0)
        return Qnil;
    move_time(self->share, self->part, waited);
    self->share->moved += waited;
    self->share->account->waits[self->part]++;
    return Qnil;
}

static VALUE wait_in_thread(share *one, heddle_spent part)
{
    count_cpu(one);
    thread_wait wait = {
        .share = one, .part = part, .began = heddle_clock_now(), .cpu = one->cpu, .moved = one->moved};
    return rb_ensure(yield_nothing, Qnil, end_thread_wait, (VALUE)&wait);
}

/*
 * call-seq: Heddle::Account.current -> Hash or nil. Returns the account of the request that the calling fiber, or in
 * mode thread the calling thread, serves. Returns nil if there is none.
 */
static VALUE account_current(VALUE self)
{
    heddle_loop *loop = heddle_loop_current();
    const heddle_spender *spender = loop ? &heddle_fiber_current(loop)->spender : NULL;
    if (!loop && is_counted(thread_share)) {
        count_cpu(thread_share);
        return account_hash(thread_share->account);
    }
    return spender && heddle_spender_counts(spender) ? account_hash(spender->account) : Qnil;
}

/*
 * call-seq: Heddle::Account.number -> Integer or nil
 *
 * Returns the number of the calling fiber's request in the result of .recorded; nil if the fiber has no account. First
 * records the fiber's time until now.
 */
static VALUE account_number(VALUE self)
{
    heddle_loop *loop = heddle_loop_current();
    heddle_spender *spender = loop ? &heddle_fiber_current(loop)->spender : NULL;
    if (!spender || !heddle_spender_counts(spender))
        return Qnil;
    heddle_spender_set_part(spender, HEDDLE_SPENT_RUNNING, heddle_clock_now());
    return heddle_recorder_number(spender);
}

/* -- the reasons of waits ------------------------------------------------------------------------------------------ */

typedef struct {
    heddle_loop *loop;
    VALUE fiber; /* the scheduled fiber whose waits have the reason */
    uint8_t before; /* the part that its waits counted as before the block; 0: none */
} reason;

static VALUE end_reason(VALUE data)
{
    reason *self = (reason *)data;
    heddle_fiber *fiber = heddle_loop_is_closed(self->loop) || heddle_loop_forked(self->loop)
                              ? NULL
                              : heddle_fiber_find(self->loop, self->fiber);
    if (fiber)
        fiber->spender.waits_for = self->before;
    return Qnil;
}

/*
 * call-seq: Heddle::Account.wait_for(part) { ... } -> the block's value
 *
 * Makes the waits of the calling fiber (in mode thread: of the calling thread) in the block count as +part+, a constant
 * of Heddle::Account. In nested blocks, the part of the innermost block applies.
 */
static VALUE account_wait_for(VALUE self, VALUE part)
{
    int number = NUM2INT(part);
    if (number <= 0 || number >= HEDDLE_SPENT_PARTS) /* 0, the time in a proxy, comes before the request */
        rb_raise(rb_eArgError, "part %d of a time account is not a wait (known: 1 to %d)", number,
                 HEDDLE_SPENT_PARTS - 1);
    heddle_loop *loop = heddle_accounting ? heddle_loop_current() : NULL;
    heddle_fiber *fiber = loop ? loop->current : NULL;
    if (!loop && is_counted(thread_share))
        return wait_in_thread(thread_share, (heddle_spent)number);
    if (!fiber || !heddle_spender_counts(&fiber->spender))
        return rb_yield_values(0);
    reason one = {.loop = loop, .fiber = fiber->fiber, .before = fiber->spender.waits_for};
    fiber->spender.waits_for = (uint8_t)number;
    return rb_ensure(yield_nothing, Qnil, end_reason, (VALUE)&one);
}

void Init_heddle_account(VALUE heddle)
{
    VALUE account = rb_define_module_under(heddle, "Account");
    VALUE names = rb_ary_new();
    for (int part = 0; part < HEDDLE_SPENT_PARTS; part++) {
        part_ids[part] = rb_intern(heddle_account_names[part]);
        rb_ary_push(names, ID2SYM(part_ids[part]));
        /* a constant for wait_for: QUERY, HTTP … */
        VALUE constant = rb_funcall(ID2SYM(part_ids[part]), rb_intern("upcase"), 0);
        rb_const_set(account, rb_to_id(constant), INT2FIX(part));
    }
    rb_define_const(account, "PARTS", rb_obj_freeze(names));
    rb_define_singleton_method(account, "switch", account_switch, 1);
    rb_define_singleton_method(account, "current", account_current, 0);
    rb_define_singleton_method(account, "number", account_number, 0);
    rb_define_singleton_method(account, "wait_for", account_wait_for, 1);
    rb_define_singleton_method(account, "share", account_share, 0);
    rb_define_singleton_method(account, "use", account_use, 1);
    Init_heddle_recorder(account);
}
