#ifndef HEDDLE_READY_LIST_H
#define HEDDLE_READY_LIST_H

/*
 * Work items that wait for a runner, in order. Only the loop adds and removes; the lock lets the watch thread read the
 * list meanwhile.
 */

#include "net/work.h"

#include <pthread.h>

struct heddle_ready_list {
    pthread_mutex_t lock;
    heddle_link head;
    size_t count;
};

static inline void heddle_ready_list_init(heddle_ready_list *list)
{
    *list = (heddle_ready_list){0};
    heddle_link_init_head(&list->head);
    pthread_mutex_init(&list->lock, NULL);
}

static inline heddle_work *heddle_work_of_link(heddle_link *link)
{
    return link ? HEDDLE_CONTAINER_OF(link, heddle_work, link) : NULL;
}

/* Adds the item at the end, or with `at_front` at the front. Does nothing if the item is in a list. */
static inline void heddle_ready_list_add(heddle_ready_list *list, heddle_work *work, bool at_front)
{
    if (work->list)
        return;
    pthread_mutex_lock(&list->lock);
    heddle_link_insert_after(at_front ? &list->head : list->head.previous, &work->link);
    work->list = list;
    list->count++;
    pthread_mutex_unlock(&list->lock);
}

/* Removes the item from its list, if it is in one. */
static inline void heddle_ready_list_remove(heddle_work *work)
{
    heddle_ready_list *list = work->list;
    if (!list)
        return;
    pthread_mutex_lock(&list->lock);
    heddle_link_remove(&work->link);
    work->list = NULL;
    list->count--;
    pthread_mutex_unlock(&list->lock);
}

static inline heddle_work *heddle_ready_list_take_first(heddle_ready_list *list)
{
    heddle_work *work = heddle_work_of_link(heddle_link_first(&list->head));
    if (work)
        heddle_ready_list_remove(work);
    return work;
}

#endif
