/* Heddle::PubSub::Subscription: a subscriber with a queue, from which a fiber takes the messages. */

#include "binding.h"
#include "pubsub/fanout.h"
#include "pubsub/history_ruby.h"
#include "scheduler/slot_wait.h"

#include <ruby/encoding.h>
#include <ruby/fiber/scheduler.h>

typedef struct {
    char epoch[HEDDLE_EPOCH_SIZE + 4];
    uint64_t offset;
    VALUE payload; /* nil: a reset */
} entry;

enum {
    ENTRY_SIZE = 96, /* estimated bytes of a queued message without its payload: its entry, and the String */
};

typedef struct subscription {
    heddle_subscriber subscriber;
    heddle_wait *wait; /* the fiber that waits in #take */
    entry *entries;
    size_t first, count, room;
    size_t bytes; /* memory of the queued messages */
    bool lost;    /* a message was lost because memory was exhausted: #take must return a reset */
} subscription;

static void mark_subscription(void *data)
{
    const subscription *subscription = data;
    for (size_t i = 0; i < subscription->count; i++)
        rb_gc_mark(subscription->entries[(subscription->first + i) % subscription->room].payload);
}

static void free_subscription(void *data)
{
    subscription *subscription = data;
    heddle_unsubscribe(&subscription->subscriber);
    free(subscription->entries);
    ruby_xfree(subscription);
}

static const rb_data_type_t subscription_type =
    HEDDLE_TYPE("Heddle::PubSub::Subscription", 0, .dmark = mark_subscription, .dfree = free_subscription);

HEDDLE_RECORD_OF(subscription_of, subscription, subscription_type)

static VALUE allocate_subscription(VALUE klass)
{
    subscription *subscription;
    return TypedData_Make_Struct(klass, struct subscription, &subscription_type, subscription);
}

/* -- as a subscriber ----------------------------------------------------------------------------------------------- */

static subscription *subscription_at(const heddle_subscriber *subscriber)
{
    return HEDDLE_CONTAINER_OF(subscriber, struct subscription, subscriber);
}

static bool make_room(subscription *subscription)
{
    if (subscription->count < subscription->room)
        return true;
    size_t room = subscription->room ? subscription->room * 2 : 8;
    entry *entries = malloc(room * sizeof(entry));
    if (!entries)
        return false;
    for (size_t i = 0; i < subscription->count; i++)
        entries[i] = subscription->entries[(subscription->first + i) % subscription->room];
    free(subscription->entries);
    subscription->entries = entries;
    subscription->first = 0;
    subscription->room = room;
    return true;
}

static size_t size_of(VALUE payload)
{
    return ENTRY_SIZE + (NIL_P(payload) ? 0 : (size_t)RSTRING_LEN(payload));
}

static void deliver_message(heddle_subscriber *subscriber, heddle_message *message)
{
    subscription *subscription = subscription_at(subscriber);
    heddle_wait_wake(subscription->wait);
    if (!make_room(subscription)) {
        subscription->lost = true;
        return;
    }
    size_t index = (subscription->first + subscription->count++) % subscription->room;
    subscription->entries[index] = (entry){.offset = message->offset, .payload = message->payload};
    memcpy(subscription->entries[index].epoch, message->epoch, sizeof(message->epoch));
    subscription->bytes += size_of(message->payload);
}

static bool is_full(const heddle_subscriber *subscriber)
{
    return subscription_at(subscriber)->bytes > HEDDLE_PENDING_LIMIT;
}

static void note_end(heddle_subscriber *subscriber)
{
    heddle_wait_wake(subscription_at(subscriber)->wait);
}

static const heddle_subscriber_operations operations = {
    .deliver = deliver_message,
    .is_full = is_full,
    .too_slow = note_end, /* never called, because the policy is RESUME */
    .ended = note_end,
};

/* -- Ruby methods -------------------------------------------------------------------------------------------------- */

/*
 * call-seq: Subscription.new(scheduler, topic, since) -> subscription
 *
 * +since+: the position after which messages are delivered, or nil for new messages only.
 */
static VALUE subscription_initialize(VALUE self, VALUE scheduler, VALUE topic, VALUE since)
{
    subscription *subscription = subscription_of(self);
    if (subscription->subscriber.operations)
        rb_raise(rb_eArgError, "this Subscription is already initialized");
    StringValue(topic);
    if (!NIL_P(since))
        StringValue(since);
    heddle_fanout *fanout = heddle_fanout_of(heddle_loop_get(scheduler));
    subscription->subscriber.operations = &operations;
    subscription->subscriber.policy = HEDDLE_SLOW_RESUME;
    heddle_position position = {0};
    if (!NIL_P(since))
        position = (heddle_position){RSTRING_PTR(since), (size_t)RSTRING_LEN(since)};
    switch (
        heddle_subscribe(fanout, &subscription->subscriber, RSTRING_PTR(topic), (size_t)RSTRING_LEN(topic), position)) {
    case HEDDLE_SUBSCRIBED:
        break;
    case HEDDLE_TOPIC_TOO_LONG:
        rb_raise(rb_eArgError, "the topic has %ld bytes, the limit is %d", RSTRING_LEN(topic), HEDDLE_TOPIC_LIMIT);
    case HEDDLE_SUBSCRIBE_FAILED:
        rb_raise(rb_eIOError,
                 "the subscription failed: out of memory, or another process does not release the history's lock");
    }
    RB_GC_GUARD(topic);
    RB_GC_GUARD(since);
    return self;
}

static VALUE position_of(const subscription *subscription)
{
    char text[HEDDLE_POSITION_SIZE];
    return rb_usascii_str_new(text, (long)heddle_subscriber_position(&subscription->subscriber, text));
}

static VALUE position_of_entry(const entry *entry)
{
    char text[HEDDLE_POSITION_SIZE];
    return rb_usascii_str_new(text, (long)heddle_position_write(entry->epoch, entry->offset, text));
}

/* Returns the payload as a String in UTF-8, or in BINARY if it is not valid UTF-8, like a WebSocket's message. */
static VALUE data_of(VALUE payload)
{
    if (NIL_P(payload) || rb_enc_str_coderange(payload) != ENC_CODERANGE_BROKEN)
        return payload;
    return rb_obj_freeze(rb_enc_associate(rb_str_dup(payload), rb_ascii8bit_encoding()));
}

/*
 * call-seq: take -> [data, position] or nil
 *
 * Waits for the next message. Its data is a String in UTF-8, or in BINARY if it is not valid UTF-8. For a reset
 * (messages are lost) the data is nil. Returns nil if the subscription has ended and no message is queued. Only one
 * fiber may wait at a time.
 */
static VALUE subscription_take(VALUE self)
{
    subscription *subscription = subscription_of(self);
    for (;;) {
        if (subscription->lost && subscription->subscriber.topic) {
            subscription->lost = false;
            subscription->bytes = subscription->first = subscription->count = 0;
            return rb_ary_new_from_args(2, Qnil, position_of(subscription));
        }
        if (subscription->count == 0)
            heddle_subscriber_drained(&subscription->subscriber);
        if (subscription->count > 0)
            break;
        if (!subscription->subscriber.topic)
            return Qnil;
        heddle_wait wait = {.slot = &subscription->wait, .deadline = -1, .part = HEDDLE_SPENT_LOCK};
        heddle_wait_in_slot(heddle_loop_get(rb_fiber_scheduler_current()), wait,
                            "another fiber already waits for this subscription's messages");
    }
    entry entry = subscription->entries[subscription->first];
    VALUE pair = rb_ary_new_from_args(2, data_of(entry.payload), position_of_entry(&entry));
    subscription->first = (subscription->first + 1) % subscription->room;
    subscription->count--;
    subscription->bytes -= size_of(entry.payload);
    RB_GC_GUARD(self);
    return pair;
}

/*
 * call-seq: position -> String or nil
 *
 * Returns the position after the last message that was added to the queue; nil if the subscription has ended.
 */
static VALUE subscription_position(VALUE self)
{
    const subscription *subscription = subscription_of(self);
    return subscription->subscriber.topic ? position_of(subscription) : Qnil;
}

/*
 * call-seq: close -> nil
 *
 * Ends the subscription. It receives no more messages, but #take still returns queued messages. Idempotent.
 */
static VALUE subscription_close(VALUE self)
{
    subscription *subscription = subscription_of(self);
    heddle_unsubscribe(&subscription->subscriber);
    heddle_wait_wake(subscription->wait);
    return Qnil;
}

/*
 * call-seq: Heddle::PubSub::Subscription.statistics(scheduler) -> Hash
 *
 * Statistics of the scheduler's loop: the present numbers of subscribers and topics; and, since the loop began, the
 * numbers of messages that were delivered and dropped, of resets, and of subscribers that were closed because they were
 * too slow. May be called on any thread.
 */
static VALUE read_statistics(VALUE self, VALUE scheduler)
{
    heddle_fanout_statistics statistics = heddle_fanout_read_statistics(heddle_loop_of(scheduler));
    VALUE hash = rb_hash_new();
    rb_hash_aset(hash, ID2SYM(rb_intern("subscribers")), SIZET2NUM(statistics.subscribers));
    rb_hash_aset(hash, ID2SYM(rb_intern("topics")), SIZET2NUM(statistics.topics));
    rb_hash_aset(hash, ID2SYM(rb_intern("delivered")), ULL2NUM(statistics.delivered));
    rb_hash_aset(hash, ID2SYM(rb_intern("dropped")), ULL2NUM(statistics.dropped));
    rb_hash_aset(hash, ID2SYM(rb_intern("resets")), ULL2NUM(statistics.resets));
    rb_hash_aset(hash, ID2SYM(rb_intern("closed")), ULL2NUM(statistics.closed));
    return hash;
}

static void define_subscription(VALUE pubsub)
{
    VALUE subscription_class = heddle_define_class(pubsub, "Subscription", allocate_subscription);
    rb_define_method(subscription_class, "initialize", subscription_initialize, 3);
    rb_define_method(subscription_class, "take", subscription_take, 0);
    rb_define_method(subscription_class, "position", subscription_position, 0);
    rb_define_method(subscription_class, "close", subscription_close, 0);
    rb_define_singleton_method(subscription_class, "statistics", read_statistics, 1);
}

void Init_heddle_pubsub(VALUE heddle)
{
    VALUE pubsub = rb_define_module_under(heddle, "PubSub");
    Init_heddle_history(pubsub);
    define_subscription(pubsub);
}
