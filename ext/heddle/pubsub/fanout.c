#include "pubsub/fanout.h"

#include "pubsub/fanout_wait.h"
#include "pubsub/process_history.h"
#include "scheduler/take_errinfo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    RECORDS_A_TICK = 1024, /* of the ring, before the loop's other work has its turn */
    SHARED_MESSAGES = 64,  /* of a topic, that its subscribers share when all of them catch up */
};

struct heddle_topic {
    heddle_link link; /* in the list of all */
    heddle_link subscribers;
    heddle_fanout *fanout;
    heddle_topic *next; /* in its bucket */
    uint64_t hash;
    unsigned deliveries; /* under way: it stays, though nobody may be left */
    uint32_t size;
    char name[];
};

/* A function that calls operations, and what it goes on with: whoever goes meanwhile is taken out here. */
typedef struct delivery delivery;
struct delivery {
    delivery *outer;
    heddle_link *next;             /* of a topic's subscribers; NULL: none is left */
    heddle_subscriber *subscriber; /* the only one; NULL: it is gone */
};

/* What a topic's subscribers share while all of them catch up. On the C stack, which keeps and pins its Strings. */
typedef struct {
    const heddle_topic *topic;
    uint64_t places[SHARED_MESSAGES]; /* of each, and 1; 0: none */
    heddle_message messages[SHARED_MESSAGES];
} shared_messages;

/* It lives until its object is collected, and the last subscriber has left. */
struct heddle_fanout {
    heddle_attachment attachment;
    heddle_loop *loop;
    heddle_fanout_wait wait;
    heddle_history *history;
    uint64_t place; /* in the ring: what comes next */
    heddle_topic **buckets;
    size_t bucket_count;
    heddle_link topics;
    delivery *deliveries;
    shared_messages *shared; /* NULL: each catches up by itself */
    heddle_fanout_counts counts;
    bool closed, collected;
};

/* -- topics -------------------------------------------------------------------------------------------------------- */

static heddle_topic **place_of(heddle_fanout *fanout, uint64_t hash, const char *name, size_t size)
{
    heddle_topic **place = &fanout->buckets[hash & (fanout->bucket_count - 1)];
    while (*place && ((*place)->hash != hash || (*place)->size != size || memcmp((*place)->name, name, size) != 0))
        place = &(*place)->next;
    return place;
}

static heddle_topic *find_topic(heddle_fanout *fanout, const char *name, size_t size)
{
    return fanout->counts.topics ? *place_of(fanout, heddle_history_hash(fanout->history, name, size), name, size) : NULL;
}

static bool grow(heddle_fanout *fanout)
{
    if (fanout->counts.topics < fanout->bucket_count)
        return true;
    size_t count = fanout->bucket_count ? fanout->bucket_count * 2 : 16;
    heddle_topic **buckets = calloc(count, sizeof(heddle_topic *));
    if (!buckets)
        return false;
    free(fanout->buckets);
    fanout->buckets = buckets;
    fanout->bucket_count = count;
    for (heddle_link *link = heddle_link_first(&fanout->topics); link; link = heddle_link_after(&fanout->topics, link)) {
        heddle_topic *topic = HEDDLE_CONTAINER_OF(link, heddle_topic, link);
        topic->next = buckets[topic->hash & (count - 1)];
        buckets[topic->hash & (count - 1)] = topic;
    }
    return true;
}

static heddle_topic *make_topic(heddle_fanout *fanout, const char *name, size_t size)
{
    heddle_topic *topic = find_topic(fanout, name, size);
    if (topic)
        return topic;
    topic = calloc(1, sizeof(*topic) + size);
    if (!topic || !grow(fanout)) {
        free(topic);
        return NULL;
    }
    topic->fanout = fanout;
    topic->hash = heddle_history_hash(fanout->history, name, size);
    topic->size = (uint32_t)size;
    memcpy(topic->name, name, size);
    heddle_link_init_head(&topic->subscribers);
    heddle_link_push_last(&fanout->topics, &topic->link);
    *place_of(fanout, topic->hash, name, size) = topic;
    fanout->counts.topics++;
    return topic;
}

static void drop_unused_topic(heddle_topic *topic)
{
    heddle_fanout *fanout = topic->fanout;
    if (topic->deliveries || heddle_link_first(&topic->subscribers))
        return;
    *place_of(fanout, topic->hash, topic->name, topic->size) = topic->next;
    heddle_link_remove(&topic->link);
    fanout->counts.topics--;
    free(topic);
}

/* -- life ---------------------------------------------------------------------------------------------------------- */

static void free_unused(heddle_fanout *fanout)
{
    if (!fanout->collected || fanout->counts.subscribers)
        return;
    free(fanout->buckets);
    free(fanout);
}

/* By the garbage collector: the loop, and what subscribers belong to, may be collected before or after it. */
static void collected(void *data)
{
    heddle_fanout *fanout = data;
    heddle_fanout_wait_abandon(&fanout->wait);
    fanout->closed = fanout->collected = true;
    free_unused(fanout);
}

static size_t memory_size(const void *data)
{
    const heddle_fanout *fanout = data;
    return sizeof(*fanout) + fanout->bucket_count * sizeof(heddle_topic *) + fanout->counts.topics * sizeof(heddle_topic);
}

static const rb_data_type_t fanout_type = {
    .wrap_struct_name = "Heddle::PubSub::Fanout",
    .function = {.dfree = collected, .dsize = memory_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static void end_subscriber(heddle_subscriber *subscriber)
{
    const heddle_subscriber_operations *operations = subscriber->operations;
    heddle_unsubscribe(subscriber);
    if (operations->ended)
        operations->ended(subscriber);
}

static void loop_closes(heddle_attachment *attachment)
{
    heddle_fanout *fanout = HEDDLE_CONTAINER_OF(attachment, heddle_fanout, attachment);
    VALUE object = attachment->object;
    heddle_loop_detach(fanout->loop, attachment);
    if (fanout->closed)
        return;
    fanout->closed = true;
    heddle_fanout_wait_close(&fanout->wait);
    heddle_link *link;
    while (!fanout->wait.abandoned && (link = heddle_link_first(&fanout->topics))) {
        heddle_topic *topic = HEDDLE_CONTAINER_OF(link, heddle_topic, link);
        end_subscriber(HEDDLE_CONTAINER_OF(heddle_link_first(&topic->subscribers), heddle_subscriber, link));
    }
    RB_GC_GUARD(object);
}

static void pump(heddle_fanout_wait *wait);

static heddle_fanout *find_fanout(const heddle_loop *loop)
{
    for (heddle_attachment *attachment = loop->attachments; attachment; attachment = attachment->next) {
        heddle_fanout *fanout = HEDDLE_CONTAINER_OF(attachment, heddle_fanout, attachment);
        if (attachment->closing == loop_closes && !fanout->wait.abandoned)
            return fanout;
    }
    return NULL;
}

heddle_fanout *heddle_fanout_of(heddle_loop *loop)
{
    heddle_fanout *fanout = find_fanout(loop);
    if (fanout)
        return fanout;
    heddle_history *ring = heddle_process_history();
    fanout = calloc(1, sizeof(*fanout));
    if (!fanout)
        rb_memerror();
    heddle_link_init_head(&fanout->topics);
    heddle_fanout_wait_init(&fanout->wait);
    VALUE object = TypedData_Wrap_Struct(0, &fanout_type, fanout);
    fanout->loop = loop;
    fanout->history = ring;
    fanout->place = heddle_history_head(ring);
    int result = heddle_fanout_wait_open(&fanout->wait, loop, ring->wake_fd, pump);
    if (result < 0)
        rb_syserr_fail(-result, "waiting for messages");
    fanout->attachment = (heddle_attachment){.object = object, .closing = loop_closes};
    heddle_loop_attach(loop, &fanout->attachment);
    RB_GC_GUARD(object);
    return fanout;
}

heddle_fanout_counts heddle_fanout_count(const heddle_loop *loop)
{
    const heddle_fanout *fanout = find_fanout(loop);
    return fanout ? fanout->counts : (heddle_fanout_counts){0};
}

/* -- one message to one subscriber --------------------------------------------------------------------------------- */

static void begin_delivery(heddle_fanout *fanout, delivery *delivery)
{
    delivery->outer = fanout->deliveries;
    fanout->deliveries = delivery;
}

static void end_delivery(heddle_fanout *fanout, delivery *delivery)
{
    fanout->deliveries = delivery->outer;
}

static heddle_message new_message(const heddle_topic *topic, uint64_t offset, VALUE payload)
{
    return (heddle_message){
        .topic = topic->name, .topic_size = topic->size, .epoch = heddle_history_epoch(topic->fanout->history),
        .offset = offset, .payload = payload,
    };
}

/* The subscriber may be gone afterwards. */
static void give(heddle_subscriber *subscriber, heddle_message *message)
{
    subscriber->seen = message->offset;
    if (message->reset)
        subscriber->topic->fanout->counts.resets++;
    else
        subscriber->topic->fanout->counts.delivered++;
    subscriber->operations->deliver(subscriber, message);
}

static void give_reset(heddle_subscriber *subscriber, uint64_t offset)
{
    heddle_message message = new_message(subscriber->topic, offset, Qnil);
    message.reset = true;
    give(subscriber, &message);
}

/* Its client has taken too little: true, and the message is not for it. The subscriber may be gone then. */
static bool is_too_slow(heddle_subscriber *subscriber, const heddle_message *message)
{
    heddle_fanout *fanout = subscriber->topic->fanout;
    if (subscriber->operations->pending(subscriber) <= HEDDLE_PENDING_LIMIT)
        return false;
    switch (subscriber->policy) {
    case HEDDLE_SLOW_CLOSE:
        subscriber->closing = true;
        fanout->counts.closed++;
        subscriber->operations->too_slow(subscriber);
        break;
    case HEDDLE_SLOW_COALESCE:
        subscriber->behind = true;
        fanout->counts.dropped++;
        break;
    case HEDDLE_SLOW_RESUME:
        subscriber->behind = true;
        break;
    default:
        subscriber->seen = message->offset;
        fanout->counts.dropped++;
        break;
    }
    return true;
}

static void offer(heddle_subscriber *subscriber, heddle_message *message)
{
    if (subscriber->closing || subscriber->behind || message->offset <= subscriber->seen ||
        is_too_slow(subscriber, message))
        return;
    if (message->offset == subscriber->seen + 1)
        give(subscriber, message);
    else
        heddle_subscriber_catch_up(subscriber);
}

static void offer_to_all(heddle_topic *topic, heddle_message *message)
{
    heddle_fanout *fanout = topic->fanout;
    delivery delivery = {.next = heddle_link_first(&topic->subscribers)};
    begin_delivery(fanout, &delivery);
    topic->deliveries++;
    while (delivery.next) {
        heddle_subscriber *subscriber = HEDDLE_CONTAINER_OF(delivery.next, heddle_subscriber, link);
        delivery.next = heddle_link_after(&topic->subscribers, delivery.next);
        if (message)
            offer(subscriber, message);
        else if (!subscriber->closing && !subscriber->behind)
            heddle_subscriber_catch_up(subscriber);
    }
    topic->deliveries--;
    end_delivery(fanout, &delivery);
    drop_unused_topic(topic);
}

/* -- what the ring has --------------------------------------------------------------------------------------------- */

static VALUE new_string(VALUE size)
{
    VALUE string = rb_str_new(NULL, (long)size);
    return string;
}

/* The payload as a frozen String; 0: it was overwritten, or there is no memory. */
static VALUE copy_payload(const heddle_history *ring, const heddle_history_record *record)
{
    int state;
    VALUE string = rb_protect(new_string, (VALUE)record->data_size, &state);
    if (state) {
        heddle_take_errinfo();
        return 0;
    }
    bool copied = heddle_history_copy_data(ring, record, RSTRING_PTR(string));
    return copied ? rb_obj_freeze(string) : 0;
}

/* The message at a place of the ring: `own`, or one that others are given, too. NULL: it was overwritten. */
static heddle_message *read_message(heddle_topic *topic, uint64_t place, heddle_message *own)
{
    const heddle_history *ring = topic->fanout->history;
    shared_messages *shared = topic->fanout->shared;
    if (shared && shared->topic != topic)
        shared = NULL;
    heddle_history_record record;
    if (heddle_history_look(ring, place, &record) != 1 || record.place != place)
        return NULL;
    size_t slot = record.offset % SHARED_MESSAGES;
    if (shared && shared->places[slot] == place + 1)
        return &shared->messages[slot];
    VALUE payload = copy_payload(ring, &record);
    if (!payload)
        return NULL;
    /* The first ones stay: each subscriber goes through all of them, and would find none if the last ones did. */
    bool keep = shared && shared->places[slot] == 0;
    heddle_message *message = keep ? &shared->messages[slot] : own;
    *message = new_message(topic, record.offset, payload);
    if (keep)
        shared->places[slot] = place + 1;
    return message;
}

/* `whole`: also to a subscriber whose policy skips to the newest message. */
static void catch_up(heddle_subscriber *subscriber, bool whole)
{
    heddle_topic *topic = subscriber->topic;
    heddle_fanout *fanout = topic->fanout;
    uint64_t places[HEDDLE_HISTORY_MESSAGES], offset, seen = subscriber->seen;
    bool newest = !whole && subscriber->policy == HEDDLE_SLOW_COALESCE;
    subscriber->behind = false;
    int64_t last = newest ? heddle_history_offset(fanout->history, topic->name, topic->size) : 0;
    if (last > (int64_t)seen)
        seen = (uint64_t)last - 1;
    int count = heddle_history_find(fanout->history, topic->name, topic->size, seen, places, HEDDLE_HISTORY_MESSAGES, &offset);
    delivery delivery = {.subscriber = subscriber};
    if (count == -ETIMEDOUT) {
        /* The history can't be read, so nobody knows what is missed. */
        offset = seen;
    }
    begin_delivery(fanout, &delivery);
    topic->deliveries++;
    for (int i = 0; i < count && delivery.subscriber; i++) {
        heddle_message own, *message = read_message(topic, places[i], &own);
        /* The garbage collector may have taken it, in the allocation above. */
        if (!delivery.subscriber)
            break;
        if (!message) {
            give_reset(subscriber, offset);
            break;
        }
        if (subscriber->operations->pending(subscriber) > HEDDLE_PENDING_LIMIT) {
            subscriber->behind = true;
            break;
        }
        give(subscriber, message);
    }
    if (count < 0 && delivery.subscriber)
        give_reset(subscriber, offset);
    topic->deliveries--;
    end_delivery(fanout, &delivery);
    drop_unused_topic(topic);
}

void heddle_subscriber_catch_up(heddle_subscriber *subscriber)
{
    catch_up(subscriber, false);
}

static void share_while_catching_up(heddle_topic *topic)
{
    heddle_fanout *fanout = topic->fanout;
    shared_messages shared;
    shared.topic = topic;
    memset(shared.places, 0, sizeof(shared.places));
    fanout->shared = &shared;
    offer_to_all(topic, NULL);
    fanout->shared = NULL;
}

/* This loop was too slow for the ring: everybody goes on with what the history has. */
static void catch_up_all(heddle_fanout *fanout)
{
    fanout->place = heddle_history_head(fanout->history);
    for (size_t left = fanout->counts.topics; left > 0 && fanout->counts.topics; left--) {
        heddle_link *link = heddle_link_first(&fanout->topics);
        heddle_link_remove(link);
        heddle_link_push_last(&fanout->topics, link);
        share_while_catching_up(HEDDLE_CONTAINER_OF(link, heddle_topic, link));
    }
}

/* false: what is there was overwritten. */
static bool take_record(heddle_fanout *fanout, const heddle_history_record *record)
{
    char name[HEDDLE_TOPIC_LIMIT + 8];
    if (record->topic_size > HEDDLE_TOPIC_LIMIT)
        return true;
    if (!heddle_history_copy_topic(fanout->history, record, name))
        return false;
    heddle_topic *topic = find_topic(fanout, name, record->topic_size);
    if (!topic)
        return true;
    /* The allocation may collect the topic's last subscriber. */
    topic->deliveries++;
    VALUE payload = copy_payload(fanout->history, record);
    if (payload) {
        heddle_message message = new_message(topic, record->offset, payload);
        offer_to_all(topic, &message);
    }
    topic->deliveries--;
    drop_unused_topic(topic);
    RB_GC_GUARD(payload);
    return payload != 0;
}

static void pump(heddle_fanout_wait *wait)
{
    heddle_fanout *fanout = HEDDLE_CONTAINER_OF(wait, heddle_fanout, wait);
    for (int i = 0; i < RECORDS_A_TICK && !fanout->closed; i++) {
        heddle_history_record record;
        int result = heddle_history_look(fanout->history, fanout->place, &record);
        if (result == 0)
            return;
        if (result > 0)
            fanout->place = record.next;
        if (result < 0 || !take_record(fanout, &record)) {
            catch_up_all(fanout);
            return;
        }
    }
    if (!fanout->closed)
        heddle_fanout_wait_come_back(&fanout->wait);
}

/* -- subscribing --------------------------------------------------------------------------------------------------- */

/* false: the position is none of this ring's. */
static bool parse_position(const heddle_history *ring, heddle_position position, uint64_t *offset)
{
    const size_t epoch = HEDDLE_EPOCH_SIZE;
    if (position.size <= epoch + 1 || position.size > epoch + 1 + 19 || position.text[epoch] != ':' ||
        memcmp(position.text, heddle_history_epoch(ring), epoch) != 0)
        return false;
    *offset = 0;
    for (size_t i = epoch + 1; i < position.size; i++) {
        if (position.text[i] < '0' || position.text[i] > '9')
            return false;
        *offset = *offset * 10 + (uint64_t)(position.text[i] - '0');
    }
    return true;
}

heddle_subscribe_result heddle_subscribe(heddle_fanout *fanout, heddle_subscriber *subscriber, const char *name,
                                         size_t size, heddle_position since)
{
    if (size > HEDDLE_TOPIC_LIMIT)
        return HEDDLE_TOPIC_TOO_LONG;
    int64_t offset = heddle_history_offset(fanout->history, name, size);
    heddle_topic *topic = offset < 0 || fanout->closed ? NULL : make_topic(fanout, name, size);
    if (!topic)
        return HEDDLE_SUBSCRIBE_FAILED;
    subscriber->topic = topic;
    subscriber->seen = (uint64_t)offset;
    subscriber->behind = subscriber->closing = false;
    heddle_link_push_first(&topic->subscribers, &subscriber->link);
    fanout->counts.subscribers++;
    if (!since.text)
        return HEDDLE_SUBSCRIBED;
    uint64_t at;
    if (!parse_position(fanout->history, since, &at)) {
        give_reset(subscriber, (uint64_t)offset);
    } else if (at != (uint64_t)offset) {
        subscriber->seen = at;
        catch_up(subscriber, true);
    }
    return HEDDLE_SUBSCRIBED;
}

void heddle_unsubscribe(heddle_subscriber *subscriber)
{
    heddle_topic *topic = subscriber->topic;
    if (!topic)
        return;
    heddle_fanout *fanout = topic->fanout;
    for (delivery *delivery = fanout->deliveries; delivery; delivery = delivery->outer) {
        if (delivery->next == &subscriber->link)
            delivery->next = heddle_link_after(&topic->subscribers, &subscriber->link);
        if (delivery->subscriber == subscriber)
            delivery->subscriber = NULL;
    }
    heddle_link_remove(&subscriber->link);
    subscriber->topic = NULL;
    fanout->counts.subscribers--;
    drop_unused_topic(topic);
    free_unused(fanout);
}

size_t heddle_subscriber_position(const heddle_subscriber *subscriber, char *text)
{
    heddle_message message = new_message(subscriber->topic, subscriber->seen, Qnil);
    return heddle_message_position(&message, text);
}
