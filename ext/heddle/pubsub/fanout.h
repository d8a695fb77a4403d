#pragma once

/*
 * The fan-out of a loop: its subscribers, by topic. A message that any process publishes is copied from the history's
 * log (shared memory) once for this loop, encoded once for each form, and delivered to each subscriber by a C call.
 *
 * How a connection subscribes
 *
 * 1. It embeds a heddle_subscriber in its own record, zeroed, and sets `operations` (a static table) and `policy`.
 * 2. It registers this record with heddle_subscribe(heddle_fanout_of(loop), …). If a position is given, this calls
 *    `deliver` for each missed message, so the connection must be able to send by then.
 * 3. `deliver` appends heddle_message_encoded(message, encoder, …) to the connection's output, and calls
 *    heddle_connection_flush_later. If at least HEDDLE_OUTPUT_AT_ONCE bytes are queued, it flushes at once. If nothing
 *    is queued, the newest message may be sent without the queue (heddle_connection_send_now). A reset is delivered
 *    like any message.
 * 4. When a later flush has emptied its output, the connection calls heddle_subscriber_drained, which delivers the
 *    messages that were held back. If no message was held back, this costs one comparison.
 * 5. Before the record is freed, the connection calls heddle_unsubscribe, in the `release` of its protocol. In
 *    `abandon` (in a forked child) it calls heddle_subscriber_abandon instead. Both functions are idempotent, and also
 *    accept a record that was never subscribed.
 *
 * Ticks
 *
 * In each tick a message is delivered to at most a few hundred subscribers. So subscribers may leave, join, catch up or
 * be freed between two ticks of the same delivery.
 *
 * When a connection ends during a delivery
 *
 * All operations may call heddle_unsubscribe for this subscriber and for others, and may free their records: the
 * delivery continues with the next subscriber that still exists. Operations must not call heddle_subscribe for the
 * topic whose message is being delivered. A subscriber that is added between two ticks of a delivery does not get the
 * message of this delivery.
 *
 * Slow readers
 *
 * Before each message the fan-out calls `is_full`. If it returns true, the subscriber's policy decides. CLOSE calls
 * `too_slow`, once. COALESCE skips messages, and delivers the newest one when the output has drained. DROP skips
 * messages. RESUME continues from the history when the output has drained, with a reset if messages are no longer in
 * the history. With every policy, a subscriber that catches up from a position stops if `is_full` returns true, and
 * continues when its output has drained; with COALESCE, it then gets only the newest message.
 *
 * All functions run on the loop's thread, with the GVL. No operation may raise or run Ruby code.
 */

#include "net/fate.h"
#include "net/link.h"
#include "pubsub/message.h"
#include "pubsub/history.h"
#include "scheduler/loop.h"

typedef struct heddle_fanout heddle_fanout;
typedef struct heddle_topic heddle_topic;
typedef struct heddle_subscriber heddle_subscriber;

enum {
    HEDDLE_PENDING_LIMIT = 1048576, /* the limit of waiting output in bytes, where no option sets it */
    HEDDLE_TOPIC_LIMIT = 1024,      /* bytes of a topic's name */
};

typedef enum {
    HEDDLE_SLOW_CLOSE,
    HEDDLE_SLOW_COALESCE,
    HEDDLE_SLOW_DROP,
    HEDDLE_SLOW_RESUME,
} heddle_slow_policy;

typedef struct {
    void (*deliver)(heddle_subscriber *subscriber, heddle_message *message);
    /* Does more output wait for the client than is allowed? */
    bool (*is_full)(const heddle_subscriber *subscriber);
    /* Ends the connection of a client that is too slow, as WebSockets do with 1008. No message follows. */
    void (*too_slow)(heddle_subscriber *subscriber);
    /* Called when the loop closes: the subscriber is no longer subscribed. May be NULL. */
    void (*ended)(heddle_subscriber *subscriber);
    /*
     * Prefetches memory that `deliver` reads. Called twice before a delivery; `is_next` is true in the second call. The
     * second call may use the memory that the first call has prefetched. May be NULL.
     */
    void (*prefetch)(const heddle_subscriber *subscriber, bool is_next);
} heddle_subscriber_operations;

struct heddle_subscriber {
    heddle_link link;    /* in the list of its topic's subscribers */
    heddle_topic *topic; /* NULL: it is not subscribed */
    const heddle_subscriber_operations *operations;
    uint64_t seen;  /* the offset of the last message that was delivered, or need not be delivered */
    uint32_t generation; /* the generation of the history that `seen` belongs to */
    uint8_t policy; /* a heddle_slow_policy */
    bool behind;    /* the subscriber continues from the history when its output has drained */
    bool closing;   /* `too_slow` was called */
};

/* The position from which a client continues, as the client sent it: "epoch:offset". */
typedef struct {
    const char *text; /* NULL: only new messages */
    size_t size;
} heddle_position;

typedef enum {
    HEDDLE_SUBSCRIBED,
    HEDDLE_TOPIC_TOO_LONG,
    /* out of memory, the loop closes, or another process does not release the history's mutex */
    HEDDLE_SUBSCRIBE_FAILED,
} heddle_subscribe_result;

/* Returns the loop's fan-out. Creates it at the first call, and raises if that fails. */
heddle_fanout *heddle_fanout_of(heddle_loop *loop);

/*
 * Subscribes. If the position is unknown, or messages after it are lost, the subscriber gets a reset at once. The
 * operations of the subscriber may unsubscribe it during this call.
 */
heddle_subscribe_result heddle_subscribe(heddle_fanout *fanout, heddle_subscriber *subscriber, const char *topic,
                                         size_t size, heddle_position since) __attribute__((warn_unused_result));
void heddle_unsubscribe(heddle_subscriber *subscriber);
/* Called in a forked child, where the fan-out belongs to the parent. */
static inline void heddle_subscriber_abandon(heddle_subscriber *subscriber)
{
    subscriber->topic = NULL;
}

/* Writes the subscriber's position, "epoch:offset" and a NUL; returns its length. */
size_t heddle_subscriber_position(const heddle_subscriber *subscriber, char *text);

/* The slow path of heddle_subscriber_drained. */
HEDDLE_LAST_USE void heddle_subscriber_catch_up(heddle_subscriber *subscriber);

/* The connection must call this function when its output is empty. */
static inline HEDDLE_LAST_USE void heddle_subscriber_drained(heddle_subscriber *subscriber)
{
    if (subscriber->behind && subscriber->topic)
        heddle_subscriber_catch_up(subscriber);
}

typedef struct {
    uint64_t delivered; /* counted once for each subscriber */
    /* DROP: messages that slow subscribers did not get; COALESCE: how often a subscriber fell behind */
    uint64_t dropped;
    uint64_t resets;    /* counted once for each subscriber */
    uint64_t closed;    /* subscribers that were too slow */
    size_t subscribers, topics;
} heddle_fanout_statistics;

/* Returns zeros if the loop has no fan-out. May be called on any thread with the GVL. */
heddle_fanout_statistics heddle_fanout_read_statistics(const heddle_loop *loop);
