#pragma once

/* The records of a fan-out, for its source files. */

#include "net/fate.h"
#include "pubsub/fanout.h"
#include "pubsub/fanout_wait.h"

struct heddle_topic {
    heddle_link link; /* in the list of all topics */
    heddle_link subscribers;
    heddle_fanout *fanout;
    heddle_topic *next; /* in its bucket */
    uint64_t hash;
    unsigned deliveries; /* a delivery is running: the topic is kept, even without subscribers */
    uint32_t size;
    bool overrun; /* its subscribers have to catch up: it is at the beginning of the list */
    char name[];
};

/*
 * The cursor of a running delivery; heddle_unsubscribe moves it on. On the C stack and in the list `deliveries`. Only
 * the broadcast's is in its record.
 */
typedef struct heddle_delivery heddle_delivery;
struct heddle_delivery {
    heddle_delivery *outer;
    heddle_link *next;             /* of a topic's subscribers; NULL: none is left */
    heddle_subscriber *subscriber; /* the one that gets messages now; NULL: it is gone, or none */
};

enum {
    HEDDLE_BROADCAST_MESSAGES = 16,
    HEDDLE_BROADCAST_SIZE = 262144, /* bytes of the messages; the last one may exceed it */
};

/*
 * Messages of a topic, consecutive in the log, on their way to its subscribers: some subscribers in each tick. Each
 * subscriber gets all of them in the same tick, so they leave together. Marked by the fan-out's object.
 */
typedef struct {
    heddle_delivery delivery; /* not in the list of deliveries, which end before the next tick */
    heddle_topic *topic;      /* NULL: there is none */
    uint32_t generation;
    unsigned count;
    size_t size;
    heddle_message messages[HEDDLE_BROADCAST_MESSAGES];
} heddle_broadcast;

typedef struct heddle_shared_messages heddle_shared_messages;

/* Exists until its object is collected and the last subscriber has left. */
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
        size_t topics;     /* how many topics, at the beginning of the list, have to catch up */
        bool begun;        /* some subscribers of the first of these topics have caught up */
        heddle_link *next; /* its subscriber that catches up next; NULL: none is left */
    } overrun;
    heddle_delivery *deliveries;
    heddle_broadcast broadcast;
    heddle_shared_messages *shared; /* NULL: each subscriber catches up alone */
    heddle_fanout_statistics statistics;
    bool closed, collected;
};

/* -- fanout_topics.c -- */

/* NULL: there are no subscribers. */
heddle_topic *heddle_fanout_find_topic(heddle_fanout *fanout, const char *name, size_t size);
/* NULL: no memory. */
heddle_topic *heddle_fanout_make_topic(heddle_fanout *fanout, const char *name, size_t size);
/* Frees it, unless it has subscribers or a delivery is running. */
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

/* Begins a broadcast with the record's message; none may be running. False: it was overwritten, or no memory. */
bool heddle_fanout_begin_broadcast(heddle_topic *topic, const heddle_history_record *record);
/* Adds the record's message if it is the topic's. False: it is not, does not fit, was overwritten, or no memory. */
bool heddle_fanout_extend_broadcast(heddle_fanout *fanout, const heddle_history_record *record);
/*
 * Delivers all messages of the broadcast to one subscriber after another, until there were `most` deliveries or, by the
 * last subscriber's, some more. Returns the number of deliveries. The broadcast ends after the topic's last subscriber.
 */
unsigned heddle_fanout_continue_broadcast(heddle_fanout *fanout, unsigned most);
/* Idempotent. The subscribers that are left do not get its messages. */
void heddle_fanout_end_broadcast(heddle_fanout *fanout);
void heddle_fanout_mark_broadcast(const heddle_fanout *fanout);
HEDDLE_LAST_USE void heddle_fanout_deliver_reset(heddle_subscriber *subscriber, uint64_t offset);
/*
 * Delivers what the subscriber has missed. `all_missed`: every message, even if the policy is COALESCE, which otherwise
 * gets only the newest.
 */
HEDDLE_LAST_USE void heddle_fanout_catch_up(heddle_subscriber *subscriber, bool all_missed);
/* At most `most` subscribers, from overrun.next on, catch up with shared messages. Returns their number. */
unsigned heddle_fanout_catch_up_some(heddle_topic *topic, unsigned most);
