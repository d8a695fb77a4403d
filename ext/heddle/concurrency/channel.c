/*
 * Heddle::Concurrency::ChannelCore: the part of Heddle::Channel that runs for each item. The rest of the class, and its
 * documentation, are in lib/heddle/concurrency/channel.rb.
 */

#include "concurrency/concurrency.h"

#include "binding.h"
#include "scheduler/loop.h"
#include "selector/list.h"

#include <ruby/fiber/scheduler.h>

typedef struct channel channel;
typedef struct channel_wait channel_wait;
typedef struct entry entry;

/*
 * The entry of a waiting fiber in one of a channel's two lists, `takers` and `pushers`. A fiber that waits for items of
 * several channels has an entry in the `takers` of each.
 */
struct entry {
    channel_wait *wait;
    channel *at;
    entry *next, *previous;
    bool listed;
};

/*
 * The record of a fiber that waits for an item from one or several channels, or for room in one channel. It is on the
 * fiber's own stack.
 */
struct channel_wait {
    heddle_park park;
    enum { WAITING, SERVED, REFUSED } outcome; /* REFUSED: all its channels were closed */
    VALUE item;
    channel *by; /* the channel that the item came from; unset for a push */
    entry *entries;
    long count, open; /* the number of its channels; how many of these are not closed (unset for a push) */
    int64_t timeout;  /* ns; < 0: no time limit */
};

typedef struct {
    entry *first, *last;
} entry_list;

struct channel {
    VALUE *items; /* a ring buffer; `size` is a power of two */
    size_t head, count, size;
    long capacity; /* < 0: no limit */
    entry_list takers;  /* fibers that wait for an item; empty while the channel has an item */
    entry_list pushers; /* fibers that wait for room; empty while there is room */
    bool closed;
    unsigned fork_generation;
    heddle_loop *loop; /* the loop of the fiber that last began to wait, or NULL; channel_mark marks its scheduler */
};

/* -- the object -------------------------------------------------------------------------------------------------- */

static void channel_mark(void *data)
{
    const channel *self = data;
    for (size_t i = 0; i < self->count; i++)
        rb_gc_mark(self->items[(self->head + i) & (self->size - 1)]);
    if (self->loop)
        rb_gc_mark(self->loop->scheduler);
}

static void channel_free(void *data)
{
    channel *self = data;
    xfree(self->items);
    xfree(self);
}

static const rb_data_type_t channel_type =
    HEDDLE_TYPE("Heddle::Channel", 0, .dmark = channel_mark, .dfree = channel_free);

static VALUE channel_allocate(VALUE klass)
{
    channel *self;
    VALUE object = TypedData_Make_Struct(klass, channel, &channel_type, self);
    self->capacity = -1;
    self->fork_generation = heddle_forks;
    return object;
}

static channel *channel_of(VALUE object)
{
    channel *self = rb_check_typeddata(object, &channel_type);
    if (self->fork_generation != heddle_forks || (self->loop && heddle_loop_is_closed(self->loop))) {
        /* The waiting fibers never continue: they belong to the parent process, or to a loop that was closed. */
        self->takers = self->pushers = (entry_list){NULL, NULL};
        self->fork_generation = heddle_forks;
        self->loop = NULL;
    }
    return self;
}

/* -- items ------------------------------------------------------------------------------------------------------- */

static void reserve_slot(channel *self)
{
    if (self->count < self->size)
        return;
    size_t size = self->size ? self->size * 2 : 8;
    VALUE *items = ALLOC_N(VALUE, size);
    for (size_t i = 0; i < self->count; i++)
        items[i] = self->items[(self->head + i) & (self->size - 1)];
    xfree(self->items);
    self->items = items;
    self->size = size;
    self->head = 0;
}

static void append_item(channel *self, VALUE item)
{
    reserve_slot(self);
    self->items[(self->head + self->count++) & (self->size - 1)] = item;
}

static void prepend_item(channel *self, VALUE item)
{
    reserve_slot(self);
    self->head = (self->head - 1) & (self->size - 1);
    self->items[self->head] = item;
    self->count++;
}

static VALUE shift_item(channel *self)
{
    VALUE item = self->items[self->head];
    self->head = (self->head + 1) & (self->size - 1);
    self->count--;
    return item;
}

/* -- list entries -------------------------------------------------------------------------------------------------- */

static void append_entry(entry_list *list, entry *entry)
{
    entry->listed = true;
    HEDDLE_QUEUE_APPEND(list, entry);
}

static void remove_entry(entry_list *list, entry *entry)
{
    if (!entry->listed)
        return;
    entry->listed = false;
    HEDDLE_QUEUE_REMOVE(list, entry);
}

static void end_wait(channel_wait *waiter, int outcome)
{
    waiter->outcome = outcome;
    heddle_park_wake(&waiter->park);
}

static void leave_taker_list(channel_wait *taker)
{
    for (long i = 0; i < taker->count; i++)
        remove_entry(&taker->entries[i].at->takers, &taker->entries[i]);
}

/* Passes the item to the fiber that has waited longest, and removes that fiber from the lists of all its channels. */
static void serve_taker(channel *self, VALUE item)
{
    channel_wait *taker = self->takers.first->wait;
    leave_taker_list(taker);
    taker->item = item;
    taker->by = self;
    end_wait(taker, SERVED);
}

/* Ends the wait of the fiber that has waited longest for room. Returns the item that it pushes. */
static VALUE accept_pusher(channel *self)
{
    entry *entry = self->pushers.first;
    remove_entry(&self->pushers, entry);
    end_wait(entry->wait, SERVED);
    return entry->wait->item;
}

/*
 * Called if an item was passed to a waiting fiber, but an exception ends the wait of that fiber. Passes the item to the
 * next waiting fiber, or puts it back at the front of the channel.
 */
static void restore_item(channel *self, VALUE item)
{
    if (self->takers.first)
        serve_taker(self, item);
    else
        prepend_item(self, item);
}

static VALUE wait_until_served(VALUE data)
{
    channel_wait *waiter = (channel_wait *)data;
    /* Waits again if the wake-up was for an earlier wait of this fiber, in one of Ruby's queues or mutexes. */
    for (;;) {
        heddle_park_wait(&waiter->park);
        if (waiter->outcome != WAITING || waiter->park.timed_out)
            return Qnil;
        waiter->park.woken = false;
    }
}

/* Returns the loop of the calling fiber. Outside of a loop, raises an error whose message names the method `what`. */
static heddle_loop *current_loop(const char *what)
{
    VALUE scheduler = rb_fiber_scheduler_current();
    if (!heddle_loop_if(scheduler))
        rb_funcall(rb_path2class("Heddle::Concurrency"), rb_intern("scheduler!"), 1, rb_str_new_cstr(what));
    return heddle_loop_get(scheduler);
}

static entry_list *list_of(const entry *one, bool takes)
{
    return takes ? &one->at->takers : &one->at->pushers;
}

/*
 * Adds the waiter to the lists of its channels, waits, and removes it. Returns 0, or the state of rb_protect if an
 * exception was raised.
 */
static int wait_in_list(channel_wait *waiter, heddle_loop *loop, bool takes)
{
    int state = 0;
    heddle_park_enter(loop, &waiter->park);
    heddle_park_waits_for(&waiter->park, HEDDLE_SPENT_LOCK);
    if (waiter->timeout == 0) {
        waiter->park.timed_out = true;
        heddle_park_wake(&waiter->park);
    } else if (waiter->timeout > 0) {
        heddle_park_set_deadline(&waiter->park, heddle_deadline_after(waiter->timeout));
    }
    for (long i = 0; i < waiter->count; i++) {
        entry *one = &waiter->entries[i];
        one->wait = waiter;
        one->at->loop = loop;
        append_entry(list_of(one, takes), one);
    }
    rb_protect(wait_until_served, (VALUE)waiter, &state);
    /*
     * If the loop was closed, or this is a forked child, the entries must not be removed: channel_of empties the lists
     * of a channel before they are used again.
     */
    bool forgotten = !heddle_park_entered(&waiter->park);
    for (long i = 0; i < waiter->count; i++) {
        waiter->entries[i].listed &= !forgotten;
        remove_entry(list_of(&waiter->entries[i], takes), &waiter->entries[i]);
    }
    heddle_park_leave(&waiter->park);
    return state;
}

/* -- pop --------------------------------------------------------------------------------------------------------- */

/*
 * Waits until there is an item, until all channels are closed, or until the timeout has passed. Returns true if the
 * taker has received an item.
 */
static bool wait_for_item(channel_wait *taker, const char *what)
{
    taker->item = Qnil;
    taker->open = taker->count;
    int state = wait_in_list(taker, current_loop(what), true);
    if (state) {
        if (taker->outcome == SERVED)
            restore_item(taker->by, taker->item);
        rb_jump_tag(state);
    }
    return taker->outcome == SERVED;
}

static VALUE take_item(channel *self)
{
    if (self->count == 0)
        return accept_pusher(self);
    VALUE item = shift_item(self);
    if (self->pushers.first)
        append_item(self, accept_pusher(self));
    return item;
}

static bool has_item(const channel *self)
{
    return self->count > 0 || self->pushers.first;
}

static VALUE channel_pop(int argc, VALUE *argv, VALUE object)
{
    int64_t timeout = heddle_parse_timeout(argc, argv, 0);
    channel *self = channel_of(object);
    if (has_item(self))
        return take_item(self);
    if (self->closed)
        return Qnil;
    entry at = {.at = self};
    channel_wait taker = {.entries = &at, .count = 1, .timeout = timeout};
    wait_for_item(&taker, "Heddle::Channel#pop");
    RB_GC_GUARD(object);
    return taker.item;
}

static VALUE channel_await(VALUE klass, VALUE channels, VALUE timeout)
{
    Check_Type(channels, T_ARRAY);
    long count = RARRAY_LEN(channels);
    VALUE buffer;
    entry *entries = ALLOCV_N(entry, buffer, count);
    for (long i = 0; i < count; i++)
        entries[i] = (entry){.at = channel_of(rb_ary_entry(channels, i))};
    channel_wait taker = {.entries = entries, .count = count, .timeout = heddle_parse_limit(timeout)};
    VALUE result = Qnil;
    if (wait_for_item(&taker, "Heddle::Channel.select")) {
        for (long i = 0; i < count; i++) {
            if (entries[i].at == taker.by)
                result = rb_assoc_new(rb_ary_entry(channels, i), taker.item);
        }
    }
    ALLOCV_END(buffer);
    RB_GC_GUARD(channels);
    return result;
}

/* -- push -------------------------------------------------------------------------------------------------------- */

/*
 * Waits for room, and then pushes the item. Returns false if there was no room before the timeout. Raises
 * ClosedQueueError if the channel is closed meanwhile.
 */
static bool push_later(channel *self, VALUE item, int64_t timeout)
{
    entry at = {.at = self};
    channel_wait pusher = {.entries = &at, .count = 1, .timeout = timeout, .item = item};
    int state = wait_in_list(&pusher, current_loop("Heddle::Channel#push"), false);
    if (state)
        rb_jump_tag(state);
    if (pusher.outcome == REFUSED)
        rb_raise(rb_path2class("ClosedQueueError"), "the channel was closed while a push waited for room");
    RB_GC_GUARD(item);
    return pusher.outcome == SERVED;
}

static VALUE channel_push(int argc, VALUE *argv, VALUE object)
{
    int64_t timeout = heddle_parse_timeout(argc, argv, 1);
    channel *self = channel_of(object);
    if (self->closed)
        rb_raise(rb_path2class("ClosedQueueError"), "can't push to a channel that is closed");
    if (self->takers.first)
        serve_taker(self, argv[0]);
    else if (self->capacity < 0 || self->count < (size_t)self->capacity)
        append_item(self, argv[0]);
    else if (!push_later(self, argv[0], timeout))
        return Qnil;
    return object;
}

/* -- closing and counting ---------------------------------------------------------------------------------------- */

static VALUE channel_close(VALUE object)
{
    channel *self = channel_of(object);
    self->closed = true;
    while (self->takers.first) {
        entry *entry = self->takers.first;
        remove_entry(&self->takers, entry);
        if (--entry->wait->open == 0)
            end_wait(entry->wait, REFUSED);
    }
    while (self->pushers.first) {
        entry *entry = self->pushers.first;
        remove_entry(&self->pushers, entry);
        end_wait(entry->wait, REFUSED);
    }
    return object;
}

static VALUE channel_limit(VALUE object, VALUE capacity)
{
    channel_of(object)->capacity = NIL_P(capacity) ? -1 : NUM2LONG(capacity);
    return capacity;
}

#define METHODS(X)                                                                                                     \
    X(channel_closed_p, "closed?", channel_of(self)->closed ? Qtrue : Qfalse)                                          \
    X(channel_item_p, "item?", has_item(channel_of(self)) ? Qtrue : Qfalse)                                            \
    X(channel_size, "size", SIZET2NUM(channel_of(self)->count))                                                        \
    X(channel_capacity, "capacity", channel_of(self)->capacity < 0 ? Qnil : LONG2NUM(channel_of(self)->capacity))
METHODS(HEDDLE_DEFINE_METHOD)

static VALUE channel_num_waiting(VALUE object)
{
    const channel *self = channel_of(object);
    size_t count = 0;
    for (const entry *entry = self->takers.first; entry; entry = entry->next)
        count++;
    for (const entry *entry = self->pushers.first; entry; entry = entry->next)
        count++;
    return SIZET2NUM(count);
}

void Init_heddle_concurrency(VALUE heddle)
{
    VALUE concurrency = rb_define_module_under(heddle, "Concurrency");
    Init_heddle_alarm_heap(concurrency);
    VALUE class = heddle_define_class(concurrency, "ChannelCore", channel_allocate);
    rb_define_private_method(class, "limit", channel_limit, 1);
    rb_define_method(class, "push", channel_push, -1);
    rb_define_method(class, "<<", channel_push, -1);
    rb_define_method(class, "pop", channel_pop, -1);
    rb_define_method(class, "close", channel_close, 0);
    METHODS(HEDDLE_REGISTER_METHOD)
    rb_define_method(class, "num_waiting", channel_num_waiting, 0);
    rb_define_private_method(rb_singleton_class(class), "await", channel_await, 2);
}
