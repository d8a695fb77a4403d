/* The topics that a loop's subscribers have: a hash table and a list. */

#include "pubsub/fanout_records.h"

static heddle_topic **find_slot(heddle_fanout *fanout, uint64_t hash, const char *name, size_t size)
{
    heddle_topic **link = &fanout->buckets[hash & (fanout->bucket_count - 1)];
    while (*link && ((*link)->hash != hash || (*link)->size != size || memcmp((*link)->name, name, size) != 0))
        link = &(*link)->next;
    return link;
}

heddle_topic *heddle_fanout_find_topic(heddle_fanout *fanout, const char *name, size_t size)
{
    return fanout->statistics.topics ? *find_slot(fanout, heddle_history_hash(fanout->history, name, size), name, size)
                                 : NULL;
}

static bool grow_table(heddle_fanout *fanout)
{
    if (fanout->statistics.topics < fanout->bucket_count)
        return true;
    size_t count = fanout->bucket_count ? fanout->bucket_count * 2 : 16;
    heddle_topic **buckets = calloc(count, sizeof(heddle_topic *));
    if (!buckets)
        return false;
    free(fanout->buckets);
    fanout->buckets = buckets;
    fanout->bucket_count = count;
    for (heddle_link *link = heddle_link_first(&fanout->topics); link;
         link = heddle_link_after(&fanout->topics, link)) {
        heddle_topic *topic = HEDDLE_CONTAINER_OF(link, heddle_topic, link);
        topic->next = buckets[topic->hash & (count - 1)];
        buckets[topic->hash & (count - 1)] = topic;
    }
    return true;
}

heddle_topic *heddle_fanout_make_topic(heddle_fanout *fanout, const char *name, size_t size)
{
    heddle_topic *topic = heddle_fanout_find_topic(fanout, name, size);
    if (topic)
        return topic;
    topic = calloc(1, sizeof(*topic) + size);
    if (!topic || !grow_table(fanout)) {
        free(topic);
        return NULL;
    }
    topic->fanout = fanout;
    topic->hash = heddle_history_hash(fanout->history, name, size);
    topic->size = (uint32_t)size;
    memcpy(topic->name, name, size);
    heddle_link_init_head(&topic->subscribers);
    heddle_link_push_last(&fanout->topics, &topic->link);
    *find_slot(fanout, topic->hash, name, size) = topic;
    fanout->statistics.topics++;
    return topic;
}

static void leave_overrun(heddle_topic *topic)
{
    heddle_fanout *fanout = topic->fanout;
    if (!topic->overrun)
        return;
    if (heddle_link_first(&fanout->topics) == &topic->link)
        fanout->overrun.begun = false;
    fanout->overrun.topics--;
}

void heddle_fanout_drop_unused_topic(heddle_topic *topic)
{
    heddle_fanout *fanout = topic->fanout;
    if (topic->deliveries || heddle_link_first(&topic->subscribers))
        return;
    leave_overrun(topic);
    *find_slot(fanout, topic->hash, topic->name, topic->size) = topic->next;
    heddle_link_remove(&topic->link);
    fanout->statistics.topics--;
    free(topic);
}
