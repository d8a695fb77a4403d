#include "pubsub/fanout_records.h"

#include "binding.h"
#include "pubsub/history_ruby.h"

enum {
    RECORDS_A_TICK = 1024, /* records of the log that are read before the loop's other work gets its turn */
    /* deliveries in one tick; each delivers one message to one subscriber, and takes 10 us or less */
    DELIVERIES_A_TICK = 256,
    CATCH_UPS_A_TICK = 256, /* subscribers that catch up in one tick of an overrun */
    RENEWALS = 3,           /* attempts to read a topic's offset; one fails if the generation changes meanwhile */
};

/* -- life ---------------------------------------------------------------------------------------------------------- */

static void free_unused(heddle_fanout *fanout)
{
    if (!fanout->collected || fanout->statistics.subscribers)
        return;
    free(fanout->buckets);
    free(fanout);
}

/* Called by the garbage collector, before or after it has collected the loop and the records of subscribers. */
static void release_fanout(void *data)
{
    heddle_fanout *fanout = data;
    heddle_fanout_wait_abandon(&fanout->wait);
    heddle_fanout_end_broadcast(fanout);
    fanout->closed = fanout->collected = true;
    free_unused(fanout);
}

static const rb_data_type_t fanout_type =
    HEDDLE_TYPE("Heddle::PubSub::Fanout", 0, .dmark = heddle_fanout_mark_broadcast, .dfree = release_fanout);

static void end_subscriber(heddle_subscriber *subscriber)
{
    const heddle_subscriber_operations *operations = subscriber->operations;
    heddle_unsubscribe(subscriber);
    if (operations->ended)
        operations->ended(subscriber);
}

static void handle_loop_close(heddle_attachment *attachment)
{
    heddle_fanout *fanout = HEDDLE_CONTAINER_OF(attachment, heddle_fanout, attachment);
    VALUE object = attachment->object;
    heddle_loop_detach(fanout->loop, attachment);
    if (fanout->closed)
        return;
    fanout->closed = true;
    heddle_fanout_wait_close(&fanout->wait);
    heddle_fanout_end_broadcast(fanout);
    heddle_link *link;
    while (!fanout->wait.abandoned && (link = heddle_link_first(&fanout->topics))) {
        heddle_topic *topic = HEDDLE_CONTAINER_OF(link, heddle_topic, link);
        end_subscriber(HEDDLE_CONTAINER_OF(heddle_link_first(&topic->subscribers), heddle_subscriber, link));
    }
    RB_GC_GUARD(object);
}

static void read_log(heddle_fanout_wait *wait);

static heddle_fanout *find_fanout(const heddle_loop *loop)
{
    for (heddle_attachment *attachment = loop->attachments; attachment; attachment = attachment->next) {
        heddle_fanout *fanout = HEDDLE_CONTAINER_OF(attachment, heddle_fanout, attachment);
        if (attachment->closing == handle_loop_close && !fanout->wait.abandoned)
            return fanout;
    }
    return NULL;
}

static void set_state(heddle_fanout *fanout, const heddle_history_state *state)
{
    memcpy(fanout->epoch, state->epoch, sizeof(fanout->epoch));
    fanout->generation = state->generation;
}

heddle_fanout *heddle_fanout_of(heddle_loop *loop)
{
    heddle_fanout *fanout = find_fanout(loop);
    if (fanout)
        return fanout;
    heddle_history *history = heddle_process_history();
    heddle_history_state state;
    /* read before the state, so that a message that comes meanwhile is read twice rather than missed */
    uint64_t head = heddle_history_head(history);
    int result = heddle_history_read_state(history, &state);
    if (result < 0)
        rb_syserr_fail(-result, "reading the pub/sub history");
    fanout = calloc(1, sizeof(*fanout));
    if (!fanout)
        rb_memerror();
    heddle_link_init_head(&fanout->topics);
    heddle_fanout_wait_init(&fanout->wait);
    VALUE object = TypedData_Wrap_Struct(0, &fanout_type, fanout);
    fanout->loop = loop;
    fanout->history = history;
    fanout->next_lsn = head;
    set_state(fanout, &state);
    result = heddle_fanout_wait_open(&fanout->wait, loop, history->wake_fd, read_log);
    if (result == -ENOSYS)
        rb_raise(rb_eNotImpError, "subscribers of Heddle::PubSub need Linux: this system has no epoll");
    if (result < 0)
        rb_syserr_fail(-result, "waiting for pub/sub messages");
    fanout->attachment = (heddle_attachment){.object = object, .closing = handle_loop_close};
    heddle_loop_attach(loop, &fanout->attachment);
    RB_GC_GUARD(object);
    return fanout;
}

heddle_fanout_statistics heddle_fanout_read_statistics(const heddle_loop *loop)
{
    const heddle_fanout *fanout = find_fanout(loop);
    return fanout ? fanout->statistics : (heddle_fanout_statistics){0};
}

/* -- records of the log -------------------------------------------------------------------------------------------- */

/* Begins an overrun: all subscribers catch up from the history, some of them in each tick. */
static void begin_overrun(heddle_fanout *fanout)
{
    for (heddle_link *link = heddle_link_first(&fanout->topics); link; link = heddle_link_after(&fanout->topics, link))
        HEDDLE_CONTAINER_OF(link, heddle_topic, link)->overrun = true;
    fanout->overrun.topics = fanout->statistics.topics;
    fanout->overrun.begun = false;
    heddle_fanout_wait_call_again(&fanout->wait);
}

static void finish_topic_overrun(heddle_fanout *fanout, heddle_topic *topic)
{
    topic->overrun = fanout->overrun.begun = false;
    fanout->overrun.topics--;
    heddle_link_remove(&topic->link);
    heddle_link_push_last(&fanout->topics, &topic->link);
}

static void continue_overrun(heddle_fanout *fanout)
{
    for (unsigned count = 0; count < CATCH_UPS_A_TICK && fanout->overrun.topics && !fanout->closed;) {
        heddle_topic *topic = HEDDLE_CONTAINER_OF(heddle_link_first(&fanout->topics), heddle_topic, link);
        topic->deliveries++;
        if (!fanout->overrun.begun)
            fanout->overrun.next = heddle_link_first(&topic->subscribers);
        fanout->overrun.begun = true;
        count += heddle_fanout_catch_up_some(topic, CATCH_UPS_A_TICK - count);
        topic->deliveries--;
        if (!fanout->overrun.next)
            finish_topic_overrun(fanout, topic);
        heddle_fanout_drop_unused_topic(topic);
    }
    if (fanout->overrun.topics && !fanout->closed)
        heddle_fanout_wait_call_again(&fanout->wait);
}

/*
 * If the history has a new generation, earlier positions are invalid, so every subscriber must get a reset. Begins an
 * overrun for this. Calls no operation of a subscriber.
 */
static void renew_generation(heddle_fanout *fanout)
{
    heddle_history_state state;
    if (heddle_history_generation(fanout->history) == fanout->generation)
        return;
    if (heddle_history_read_state(fanout->history, &state) < 0) {
        heddle_fanout_wait_call_again(&fanout->wait);
        return;
    }
    set_state(fanout, &state);
    if (fanout->next_lsn < state.floor_lsn)
        fanout->next_lsn = state.floor_lsn;
    begin_overrun(fanout);
}

/*
 * Begins a broadcast (the delivery of messages of one topic) if the record's topic has subscribers. Returns false if
 * the record was overwritten, or when out of memory.
 */
static bool begin_broadcast(heddle_fanout *fanout, const heddle_history_record *record)
{
    char name[HEDDLE_TOPIC_LIMIT + 8];
    if (record->generation != fanout->generation)
        renew_generation(fanout); /* if there is a newer generation, all subscribers catch up, also with this record */
    if (record->topic_size > HEDDLE_TOPIC_LIMIT || record->generation != fanout->generation)
        return true;
    if (!heddle_history_copy_topic(fanout->history, record, name))
        return false;
    heddle_topic *topic = heddle_fanout_find_topic(fanout, name, record->topic_size);
    return !topic || heddle_fanout_begin_broadcast(topic, record);
}

/* Adds the topic's next messages to the broadcast, up to the first message of another topic. */
static void extend_broadcast(heddle_fanout *fanout)
{
    heddle_history_record record;
    while (fanout->broadcast.topic &&
           heddle_history_check_record(fanout->history, fanout->next_lsn, &record) > 0 &&
           heddle_fanout_extend_broadcast(fanout, &record))
        fanout->next_lsn = record.next;
}

/*
 * Reads a record, and begins the broadcast of its message. Returns false if there is no record. Also returns false, and
 * begins an overrun, if records were overwritten, or when out of memory.
 */
static bool read_record(heddle_fanout *fanout)
{
    heddle_history_record record;
    int result = heddle_history_check_record(fanout->history, fanout->next_lsn, &record);
    if (result == 0)
        return false;
    if (result > 0)
        fanout->next_lsn = record.next;
    if (result < 0 || !begin_broadcast(fanout, &record)) {
        fanout->next_lsn = heddle_history_head(fanout->history);
        begin_overrun(fanout);
        return false;
    }
    extend_broadcast(fanout);
    return true;
}

/*
 * Delivers the new messages of the log. A broadcast begins only after the previous one has ended, which keeps the order
 * in each topic.
 */
static void read_log(heddle_fanout_wait *wait)
{
    heddle_fanout *fanout = HEDDLE_CONTAINER_OF(wait, heddle_fanout, wait);
    unsigned records = 0, deliveries = 0;
    renew_generation(fanout);
    continue_overrun(fanout);
    while (!fanout->closed) {
        if (fanout->broadcast.topic)
            deliveries += heddle_fanout_continue_broadcast(fanout, DELIVERIES_A_TICK - deliveries);
        if (deliveries >= DELIVERIES_A_TICK || records == RECORDS_A_TICK) {
            if (!fanout->closed)
                heddle_fanout_wait_call_again(&fanout->wait);
            return;
        }
        if (!read_record(fanout))
            return;
        records++;
    }
}

/* -- subscribing --------------------------------------------------------------------------------------------------- */

/* Returns false if the position is malformed, or has another epoch than the history. */
static bool parse_position(const heddle_fanout *fanout, heddle_position position, uint64_t *offset)
{
    const size_t epoch = HEDDLE_EPOCH_SIZE;
    if (position.size <= epoch + 1 || position.size > epoch + 1 + 19 || position.text[epoch] != ':' ||
        memcmp(position.text, fanout->epoch, epoch) != 0)
        return false;
    *offset = 0;
    for (size_t i = epoch + 1; i < position.size; i++) {
        if (position.text[i] < '0' || position.text[i] > '9')
            return false;
        *offset = *offset * 10 + (uint64_t)(position.text[i] - '0');
    }
    return true;
}

/* Returns the topic's last offset in the fan-out's generation, or a negative number if the history can't be read. */
static int64_t find_last_offset(heddle_fanout *fanout, const char *name, size_t size)
{
    for (int tries = 0; tries < RENEWALS; tries++) {
        heddle_history_state state;
        renew_generation(fanout);
        int64_t offset = heddle_history_offset(fanout->history, name, size, &state);
        if (offset < 0 || state.generation == fanout->generation)
            return offset;
    }
    return -1;
}

heddle_subscribe_result heddle_subscribe(heddle_fanout *fanout, heddle_subscriber *subscriber, const char *name,
                                         size_t size, heddle_position since)
{
    if (size > HEDDLE_TOPIC_LIMIT)
        return HEDDLE_TOPIC_TOO_LONG;
    int64_t offset = fanout->closed ? -1 : find_last_offset(fanout, name, size);
    heddle_topic *topic = offset < 0 ? NULL : heddle_fanout_make_topic(fanout, name, size);
    if (!topic)
        return HEDDLE_SUBSCRIBE_FAILED;
    subscriber->topic = topic;
    subscriber->seen = (uint64_t)offset;
    subscriber->generation = fanout->generation;
    subscriber->behind = subscriber->closing = false;
    heddle_link_push_first(&topic->subscribers, &subscriber->link);
    fanout->statistics.subscribers++;
    if (!since.text)
        return HEDDLE_SUBSCRIBED;
    uint64_t at;
    if (!parse_position(fanout, since, &at)) {
        heddle_fanout_deliver_reset(subscriber, (uint64_t)offset);
    } else if (at != (uint64_t)offset) {
        subscriber->seen = at;
        heddle_fanout_catch_up(subscriber, true);
    }
    return HEDDLE_SUBSCRIBED;
}

static void skip_in_delivery(heddle_delivery *delivery, const heddle_subscriber *subscriber, heddle_link *after)
{
    if (delivery->next == &subscriber->link)
        delivery->next = after;
    if (delivery->subscriber == subscriber)
        delivery->subscriber = NULL;
}

void heddle_unsubscribe(heddle_subscriber *subscriber)
{
    heddle_topic *topic = subscriber->topic;
    if (!topic)
        return;
    heddle_fanout *fanout = topic->fanout;
    heddle_link *after = heddle_link_after(&topic->subscribers, &subscriber->link);
    skip_in_delivery(&fanout->broadcast.delivery, subscriber, after);
    for (heddle_delivery *delivery = fanout->deliveries; delivery; delivery = delivery->outer)
        skip_in_delivery(delivery, subscriber, after);
    if (fanout->overrun.next == &subscriber->link)
        fanout->overrun.next = after;
    heddle_link_remove(&subscriber->link);
    subscriber->topic = NULL;
    fanout->statistics.subscribers--;
    heddle_fanout_drop_unused_topic(topic);
    free_unused(fanout);
}

size_t heddle_subscriber_position(const heddle_subscriber *subscriber, char *text)
{
    const heddle_fanout *fanout = subscriber->topic->fanout;
    /*
     * Until the subscriber has received its reset, its position belongs to an earlier generation. During this time the
     * result has the offset 0: a client that resumes from there gets all messages that the history has, or a reset.
     */
    uint64_t offset = subscriber->generation == fanout->generation ? subscriber->seen : 0;
    return heddle_position_write(fanout->epoch, offset, text);
}
