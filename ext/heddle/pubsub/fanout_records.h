#ifndef HEDDLE_PUBSUB_FANOUT_RECORDS_H
#define HEDDLE_PUBSUB_FANOUT_RECORDS_H

/* The records of a fan-out, for the files that it consists of. */

#include "net/fate.h"
#include "pubsub/fanout.h"
#include "pubsub/fanout_wait.h"

struct heddle_topic {
    heddle_link link; /* in the list of all */
    heddle_link subscribers;
    heddle_fanout *fanout;
    heddle_topic *next; /* in its bucket */
    uint64_t hash;
    unsigned deliveries; /* under way: it stays, though nobody may be left */
    uint32_t size;
    bool overrun; /* its subscribers have to catch up: it is among the first of the list */
    char name[];
};

/* The cursor of a running delivery, on the C stack. Unsubscribing moves it past the subscriber that goes. */
typedef struct heddle_delivery heddle_delivery;
struct heddle_delivery {
    heddle_delivery *outer;
    heddle_link *next;             /* of a topic's subscribers; NULL: none is left */
    heddle_subscriber *subscriber; /* the only one; NULL: it is gone */
};

typedef struct heddle_shared_messages heddle_shared_messages;

/* It lives until its object is collected, and the last subscriber has left. */
struct heddle_fanout {
    heddle_attachment attachment;
    heddle_loop *loop;
    heddle_fanout_wait wait;
    heddle_history *history;
    uint64_t next_lsn; /* of the log: the next record to deliver */
    char epoch[HEDDLE_EPOCH_SIZE + 4];
    uint32_t generation;
    heddle_topic **buckets;
    size_t bucket_count;
    heddle_link topics;
    struct {
        size_t topics;     /* so many of the first ones have to catch up */
        bool begun;        /* with the first one */
        heddle_link *next; /* of its subscribers */
    } overrun;
    heddle_delivery *deliveries;
    heddle_shared_messages *shared; /* NULL: each catches up by itself */
    heddle_fanout_counts counts;
    bool closed, collected;
};

/* -- fanout_topics.c -- */

/* NULL: nobody is subscribed. */
heddle_topic *heddle_fanout_find_topic(heddle_fanout *fanout, const char *name, size_t size);
/* NULL: there is no memory. */
heddle_topic *heddle_fanout_make_topic(heddle_fanout *fanout, const char *name, size_t size);
/* Frees it, unless it has subscribers or a delivery is under way. */
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

/* Gives the record's message to the topic's subscribers. false: it was overwritten, or there is no memory. */
bool heddle_fanout_offer(heddle_topic *topic, const heddle_history_record *record);
HEDDLE_LAST_USE void heddle_fanout_give_reset(heddle_subscriber *subscriber, uint64_t offset);
/* `whole`: also to a subscriber whose policy skips to the newest message. */
HEDDLE_LAST_USE void heddle_fanout_catch_up(heddle_subscriber *subscriber, bool whole);
/* At most so many of the subscribers from overrun.next on, which share what they are given. How many. */
unsigned heddle_fanout_catch_up_some(heddle_topic *topic, unsigned most);

#endif
