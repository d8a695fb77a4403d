/* Delivers new messages and missed messages to subscribers. */

#include "net/prefetch.h"
#include "pubsub/fanout_records.h"
#include "scheduler/take_errinfo.h"

enum {
    SHARED_MESSAGES = 64, /* the maximum number of messages that the subscribers of a topic share in an overrun */
};

/*
 * The messages that the subscribers of a topic share while all of them catch up. The record is on the C stack, so the
 * GC marks and pins its Strings.
 */
struct heddle_shared_messages {
    const heddle_topic *topic;
    uint64_t lsns[SHARED_MESSAGES]; /* the message's LSN (see pubsub/history.h) + 1; 0: the slot is empty */
    heddle_message messages[SHARED_MESSAGES];
};

/* -- one message to one subscriber --------------------------------------------------------------------------------- */

static heddle_message start_message(const heddle_topic *topic, uint64_t offset, VALUE payload)
{
    heddle_message message = {
        .topic = topic->name, .topic_size = topic->size, .offset = offset, .payload = payload,
    };
    memcpy(message.epoch, topic->fanout->epoch, sizeof(message.epoch));
    return message;
}

static HEDDLE_LAST_USE void deliver_message(heddle_subscriber *subscriber, heddle_message *message)
{
    subscriber->seen = message->offset;
    if (message->reset)
        subscriber->topic->fanout->statistics.resets++;
    else
        subscriber->topic->fanout->statistics.delivered++;
    subscriber->operations->deliver(subscriber, message);
}

void heddle_fanout_deliver_reset(heddle_subscriber *subscriber, uint64_t offset)
{
    heddle_message message = start_message(subscriber->topic, offset, Qnil);
    message.reset = true;
    deliver_message(subscriber, &message);
}

/*
 * If too much output waits for the client, applies the subscriber's policy and returns true. Then the caller must
 * not deliver the message, nor use the subscriber, which may have been freed.
 */
static bool apply_policy_if_full(heddle_subscriber *subscriber, const heddle_message *message)
{
    heddle_fanout *fanout = subscriber->topic->fanout;
    if (!subscriber->operations->is_full(subscriber))
        return false;
    switch ((heddle_slow_policy)subscriber->policy) {
    case HEDDLE_SLOW_CLOSE:
        subscriber->closing = true;
        fanout->statistics.closed++;
        subscriber->operations->too_slow(subscriber);
        break;
    case HEDDLE_SLOW_COALESCE:
        subscriber->behind = true;
        fanout->statistics.dropped++;
        break;
    case HEDDLE_SLOW_RESUME:
        subscriber->behind = true;
        break;
    case HEDDLE_SLOW_DROP:
        subscriber->seen = message->offset;
        fanout->statistics.dropped++;
        break;
    }
    return true;
}

/*
 * During an overrun (all subscribers catch up from the history), `previous_offset` > `seen` means that the subscriber
 * has missed messages. It will get this message, too, when it catches up. Outside of an overrun the subscriber has
 * missed nothing, and the comparison would be wrong: if the history has forgotten the topic, `previous_offset` is only
 * an upper bound.
 */
static void offer_message(heddle_subscriber *subscriber, heddle_message *message)
{
    const heddle_topic *topic = subscriber->topic;
    if (subscriber->closing || subscriber->behind || subscriber->generation != topic->fanout->generation ||
        message->offset <= subscriber->seen || (topic->overrun && message->previous_offset > subscriber->seen))
        return;
    if (!apply_policy_if_full(subscriber, message))
        deliver_message(subscriber, message);
}

/*
 * The data of a subscriber is in several records, each with a pointer to the next (its socket, its output). The records
 * of ten thousand subscribers do not fit into the processor's caches. So the records of a subscriber are prefetched
 * step by step, while the message is delivered to the subscribers before it.
 */
static void prefetch_subscribers(const heddle_topic *topic, const heddle_link *next)
{
    for (int step = 0; step < 2; step++, next = next->next) {
        if (next == &topic->subscribers)
            return;
        const heddle_subscriber *subscriber = HEDDLE_CONTAINER_OF(next, heddle_subscriber, link);
        if (subscriber->operations->prefetch)
            subscriber->operations->prefetch(subscriber, step == 0);
    }
    /*
     * Prefetches the third subscriber's record, and the cache line after it. The subscriber is embedded in a larger
     * record; the operation later reads the members that follow, such as the pointer to the socket.
     */
    heddle_prefetch(next, sizeof(heddle_subscriber) + HEDDLE_CACHE_LINE);
}

/* -- records of the history ---------------------------------------------------------------------------------------- */

static VALUE make_string(VALUE size)
{
    return rb_utf8_str_new(NULL, (long)size);
}

/*
 * Returns the payload as a frozen String, in UTF-8 even if its bytes are not valid. Returns 0 if it was overwritten, or
 * when out of memory.
 */
static VALUE copy_payload(const heddle_history *history, const heddle_history_record *record)
{
    int state;
    VALUE string = rb_protect(make_string, (VALUE)record->data_size, &state);
    if (state) {
        heddle_take_errinfo();
        return 0;
    }
    bool copied = heddle_history_copy_data(history, record, RSTRING_PTR(string));
    return copied ? rb_obj_freeze(string) : 0;
}

/* -- a broadcast --------------------------------------------------------------------------------------------------- */

static bool add_message(heddle_fanout *fanout, heddle_topic *topic, const heddle_history_record *record)
{
    heddle_broadcast *broadcast = &fanout->broadcast;
    VALUE payload = copy_payload(fanout->history, record);
    if (!payload)
        return false;
    heddle_message *message = &broadcast->messages[broadcast->count];
    *message = start_message(topic, record->offset, payload);
    message->previous_offset = record->previous_offset;
    message->newest = record->next == heddle_history_head(fanout->history);
    broadcast->count++; /* from here on heddle_fanout_mark_broadcast marks the payload */
    broadcast->size += record->data_size;
    RB_GC_GUARD(payload);
    return true;
}

bool heddle_fanout_begin_broadcast(heddle_topic *topic, const heddle_history_record *record)
{
    heddle_fanout *fanout = topic->fanout;
    heddle_broadcast *broadcast = &fanout->broadcast;
    broadcast->topic = topic;
    broadcast->generation = fanout->generation;
    broadcast->count = 0;
    broadcast->size = 0;
    /* keeps the topic: the allocation of the payload may free the topic's last subscriber */
    topic->deliveries++;
    if (!add_message(fanout, topic, record)) {
        heddle_fanout_end_broadcast(fanout);
        return false;
    }
    broadcast->delivery = (heddle_delivery){.next = heddle_link_first(&topic->subscribers)};
    return true;
}

bool heddle_fanout_extend_broadcast(heddle_fanout *fanout, const heddle_history_record *record)
{
    const heddle_broadcast *broadcast = &fanout->broadcast;
    heddle_topic *topic = broadcast->topic;
    char name[HEDDLE_TOPIC_LIMIT + 8];
    return broadcast->count < HEDDLE_BROADCAST_MESSAGES && broadcast->size < HEDDLE_BROADCAST_SIZE &&
           record->generation == broadcast->generation && record->topic_size == topic->size &&
           heddle_history_copy_topic(fanout->history, record, name) && memcmp(name, topic->name, topic->size) == 0 &&
           add_message(fanout, topic, record);
}

unsigned heddle_fanout_continue_broadcast(heddle_fanout *fanout, unsigned most)
{
    heddle_broadcast *broadcast = &fanout->broadcast;
    heddle_delivery *delivery = &broadcast->delivery;
    const heddle_topic *topic = broadcast->topic;
    unsigned count = 0;
    /* If the generation is new, all subscribers get a reset instead. */
    if (broadcast->generation != fanout->generation)
        delivery->next = NULL;
    while (count < most && delivery->next) {
        heddle_subscriber *subscriber = HEDDLE_CONTAINER_OF(delivery->next, heddle_subscriber, link);
        delivery->next = heddle_link_after(&topic->subscribers, delivery->next);
        if (delivery->next)
            prefetch_subscribers(topic, delivery->next);
        delivery->subscriber = subscriber;
        count += broadcast->count;
        for (unsigned i = 0; i < broadcast->count && delivery->subscriber; i++)
            offer_message(subscriber, &broadcast->messages[i]);
    }
    delivery->subscriber = NULL;
    if (!delivery->next)
        heddle_fanout_end_broadcast(fanout);
    return count;
}

void heddle_fanout_end_broadcast(heddle_fanout *fanout)
{
    heddle_broadcast *broadcast = &fanout->broadcast;
    heddle_topic *topic = broadcast->topic;
    if (!topic)
        return;
    broadcast->topic = NULL;
    broadcast->delivery = (heddle_delivery){0};
    broadcast->count = 0;
    topic->deliveries--;
    heddle_fanout_drop_unused_topic(topic);
}

/*
 * Marks the payloads and the encoded Strings with their keys. An encoded String is found by the address of its key: if
 * the key were freed, a new object at the same address would get the wrong String.
 */
void heddle_fanout_mark_broadcast(void *fanout)
{
    const heddle_broadcast *broadcast = &((heddle_fanout *)fanout)->broadcast;
    for (unsigned i = 0; i < broadcast->count; i++) {
        const heddle_message *message = &broadcast->messages[i];
        rb_gc_mark(message->payload);
        for (int form = 0; form < HEDDLE_MESSAGE_FORMS && message->forms[form].encoder; form++) {
            rb_gc_mark(message->forms[form].key);
            rb_gc_mark(message->forms[form].string);
        }
    }
}

/* -- missed messages ----------------------------------------------------------------------------------------------- */

/*
 * Returns the message at an LSN: a shared message, or `own`, into which it is read. Returns NULL if the message was
 * overwritten or belongs to another generation, or when out of memory.
 */
static heddle_message *read_message(heddle_topic *topic, uint64_t lsn, heddle_message *own)
{
    const heddle_fanout *fanout = topic->fanout;
    heddle_shared_messages *shared = fanout->shared;
    if (shared && shared->topic != topic)
        shared = NULL;
    heddle_history_record record;
    if (heddle_history_check_record(fanout->history, lsn, &record) != 1 || record.lsn != lsn ||
        record.generation != fanout->generation)
        return NULL;
    size_t slot = record.offset % SHARED_MESSAGES;
    if (shared && shared->lsns[slot] == lsn + 1)
        return &shared->messages[slot];
    VALUE payload = copy_payload(fanout->history, &record);
    if (!payload)
        return NULL;
    /*
     * A used slot is not replaced. All subscribers read in the same order, so the next subscriber needs the slot's
     * message before it needs this message.
     */
    bool keep = shared && shared->lsns[slot] == 0;
    heddle_message *message = keep ? &shared->messages[slot] : own;
    *message = start_message(topic, record.offset, payload);
    if (keep)
        shared->lsns[slot] = lsn + 1;
    return message;
}

/* -- catching up --------------------------------------------------------------------------------------------------- */

/* Delivers a reset to a subscriber whose position belongs to an earlier generation, and so is invalid. */
static void renew_subscriber(heddle_subscriber *subscriber)
{
    heddle_topic *topic = subscriber->topic;
    heddle_history_state state;
    int64_t offset = heddle_history_offset(topic->fanout->history, topic->name, topic->size, &state);
    if (offset >= 0 && state.generation != topic->fanout->generation)
        return; /* the fan-out notices the new generation later: then all subscribers catch up and get the reset */
    subscriber->generation = topic->fanout->generation;
    /*
     * offset < 0 means that the history's mutex could not be acquired. Then the client continues from 0: it gets the
     * kept messages, or another reset.
     */
    heddle_fanout_deliver_reset(subscriber, offset < 0 ? 0 : (uint64_t)offset);
}

/*
 * Returns the offset after which the subscriber continues. If it only gets the newest message, this is the offset
 * before that message.
 */
static uint64_t find_start_offset(const heddle_subscriber *subscriber, bool all_missed)
{
    const heddle_topic *topic = subscriber->topic;
    heddle_history_state state;
    if (all_missed || subscriber->policy != HEDDLE_SLOW_COALESCE)
        return subscriber->seen;
    int64_t last = heddle_history_offset(topic->fanout->history, topic->name, topic->size, &state);
    return last > (int64_t)subscriber->seen ? (uint64_t)last - 1 : subscriber->seen;
}

static void deliver_missed(heddle_subscriber *subscriber, bool all_missed)
{
    heddle_topic *topic = subscriber->topic;
    heddle_fanout *fanout = topic->fanout;
    uint64_t lsns[HEDDLE_HISTORY_MESSAGES], since = find_start_offset(subscriber, all_missed), offset = since;
    /* The offset of a reset: heddle_history_find sets `offset`, except if the history can't be read. */
    int count = heddle_history_find(fanout->history, topic->name, topic->size, fanout->generation, since, lsns,
                                    &offset);
    if (count == -ESTALE)
        return; /* the fan-out notices the new generation later: then all subscribers catch up and get the reset */
    heddle_delivery delivery = {.subscriber = subscriber};
    heddle_fanout_begin_delivery(fanout, &delivery);
    /* deliver_message may free the subscriber; then `delivery.subscriber` is NULL. */
    for (int i = 0; i < count && delivery.subscriber; i++) {
        heddle_message own, *message = read_message(topic, lsns[i], &own);
        /*
         * read_message allocates, so the GC may have freed this subscriber. Then `delivery.subscriber` was set to NULL.
         */
        if (!delivery.subscriber)
            break;
        if (!message) {
            heddle_fanout_deliver_reset(subscriber, offset);
            break;
        }
        if (subscriber->operations->is_full(subscriber)) {
            subscriber->behind = true;
            break;
        }
        deliver_message(subscriber, message);
    }
    /* -ENODATA: messages are lost, or no message has had the offset `since`. Others: the history can't be read. */
    if (count < 0 && delivery.subscriber)
        heddle_fanout_deliver_reset(delivery.subscriber, offset);
    heddle_fanout_end_delivery(fanout, &delivery);
}

void heddle_fanout_catch_up(heddle_subscriber *subscriber, bool all_missed)
{
    heddle_topic *topic = subscriber->topic;
    subscriber->behind = false;
    topic->deliveries++;
    if (subscriber->generation == topic->fanout->generation)
        deliver_missed(subscriber, all_missed);
    else
        renew_subscriber(subscriber);
    topic->deliveries--;
    heddle_fanout_drop_unused_topic(topic);
}

void heddle_subscriber_catch_up(heddle_subscriber *subscriber)
{
    heddle_fanout_catch_up(subscriber, false);
}

unsigned heddle_fanout_catch_up_some(heddle_topic *topic, unsigned most)
{
    heddle_fanout *fanout = topic->fanout;
    heddle_shared_messages shared;
    unsigned count = 0;
    shared.topic = topic;
    memset(shared.lsns, 0, sizeof(shared.lsns));
    fanout->shared = &shared;
    for (; count < most && fanout->overrun.next; count++) {
        heddle_subscriber *subscriber = HEDDLE_CONTAINER_OF(fanout->overrun.next, heddle_subscriber, link);
        fanout->overrun.next = heddle_link_after(&topic->subscribers, fanout->overrun.next);
        if (!subscriber->closing && !subscriber->behind)
            heddle_fanout_catch_up(subscriber, false);
    }
    fanout->shared = NULL;
    return count;
}
