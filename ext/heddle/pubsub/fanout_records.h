#pragma once

/* The records of a fan-out, which only its own source files use. */

#include "net/fate.h"
#include "pubsub/fanout.h"
#include "pubsub/fanout_wait.h"

struct heddle_topic {
    heddle_link link; /* in the list of all topics */
    heddle_link subscribers;
    heddle_fanout *fanout;
    heddle_topic *next; /* in the list of its hash bucket */
    uint64_t hash;
    unsigned deliveries; /* running deliveries: until they end, the topic is kept even without subscribers */
    uint32_t size;
    bool overrun; /* its subscribers must catch up; such topics are at the beginning of the list of topics */
    char name[];
};

/*
 * The cursor of a running delivery. If a subscriber that it points to ends, heddle_unsubscribe corrects it. A cursor is
 * on the C stack and in the list `deliveries`, except for the broadcast's cursor, which is in the broadcast's record.
 */
typedef struct heddle_delivery heddle_delivery;
struct heddle_delivery {
    heddle_delivery *outer;
    heddle_link *next;             /* the topic's subscriber that is next; NULL: none is left */
    heddle_subscriber *subscriber; /* the subscriber that gets messages now; NULL: none, or it has ended */
};

enum {
    HEDDLE_BROADCAST_MESSAGES = 16,
    HEDDLE_BROADCAST_SIZE = 262144, /* bytes of all messages; the last message may exceed this limit */
};

/*
 * A broadcast: the delivery of messages of one topic, which are consecutive in the log, to some of the topic's
 * subscribers in each tick. A subscriber gets all of the messages in the same tick, so they are sent together. The
 * fan-out's object marks the messages.
 */
typedef struct {
    heddle_delivery delivery; /* not in the list `deliveries`, which has only deliveries that end in this tick */
    heddle_topic *topic;      /* NULL: there is no broadcast */
    uint32_t generation;
    unsigned count;
    size_t size;
    heddle_message messages[HEDDLE_BROADCAST_MESSAGES];
} heddle_broadcast;

typedef struct heddle_shared_messages heddle_shared_messages;

/* A fan-out. The record exists until its Ruby object is freed and the last subscriber has left. */
struct heddle_fanout {
    heddle_attachment attachment;
    heddle_loop *loop;
    heddle_fanout_wait wait;
    heddle_history *history;
    uint64_t next_lsn; /* the LSN of the next record to deliver */
    char epoch[HEDDLE_EPOCH_SIZE + 4];
    uint32_t generation;
    heddle_topic **buckets;
    size_t bucket_count;
    heddle_link topics;
    struct {
        size_t topics;     /* how many topics must catch up; they are at the beginning of the list of topics */
        bool begun;        /* some subscribers of the first of these topics have caught up */
        heddle_link *next; /* the subscriber of that first topic that catches up next; NULL: none is left */
    } overrun;
    heddle_delivery *deliveries; /* the running deliveries except the broadcast's, innermost first */
    heddle_broadcast broadcast;
    heddle_shared_messages *shared; /* NULL: each subscriber catches up alone */
    heddle_fanout_statistics statistics;
    /* `closed`: the loop has closed, or the Ruby object was freed; `collected`: the Ruby object was freed */
    bool closed, collected;
};

/* -- fanout_topics.c -- */

/* Returns NULL if the topic has no subscribers. */
heddle_topic *heddle_fanout_find_topic(heddle_fanout *fanout, const char *name, size_t size);
/* Returns the existing topic, or a new one; NULL when out of memory. */
heddle_topic *heddle_fanout_make_topic(heddle_fanout *fanout, const char *name, size_t size);
/* Frees the topic, unless it has subscribers or running deliveries. */
void heddle_fanout_drop_unused_topic(heddle_topic *topic);

/* -- fanout_delivery.c -- */

static inline void heddle_fanout_begin_delivery(heddle_fanout *fanout, heddle_delivery *delivery)
{
    delivery->outer = fanout->deliveries;
    fanout->deliveries = delivery;
}

static inline void heddle_fanout_end_delivery(heddle_fanout *fanout, const heddle_delivery *delivery)
{
    fanout->deliveries = delivery->outer;
}

/*
 * Begins a broadcast with the record's message. No other broadcast may be running. Returns false if the message was
 * overwritten, or when out of memory.
 */
bool heddle_fanout_begin_broadcast(heddle_topic *topic, const heddle_history_record *record);
/*
 * Adds the record's message to the broadcast. Returns false if it has another topic, does not fit or was overwritten,
 * or when out of memory.
 */
bool heddle_fanout_extend_broadcast(heddle_fanout *fanout, const heddle_history_record *record);
/*
 * Delivers all messages of the broadcast to one subscriber after another, until there were at least `most` deliveries.
 * Returns the number of deliveries. The broadcast ends after the topic's last subscriber.
 */
unsigned heddle_fanout_continue_broadcast(heddle_fanout *fanout, unsigned most);
/* Ends the broadcast. The remaining subscribers do not get its messages. Idempotent. */
void heddle_fanout_end_broadcast(heddle_fanout *fanout);
void heddle_fanout_mark_broadcast(void *fanout); /* `dmark` of a fan-out's object */
HEDDLE_LAST_USE void heddle_fanout_deliver_reset(heddle_subscriber *subscriber, uint64_t offset);
/*
 * Delivers the messages that the subscriber has missed. With the policy COALESCE it gets only the newest one, unless
 * `all_missed` is set.
 */
HEDDLE_LAST_USE void heddle_fanout_catch_up(heddle_subscriber *subscriber, bool all_missed);
/* Delivers missed messages to at most `most` subscribers, from overrun.next on. Returns their number. */
unsigned heddle_fanout_catch_up_some(heddle_topic *topic, unsigned most);
