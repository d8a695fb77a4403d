#ifndef HEDDLE_READY_LIST_H
#define HEDDLE_READY_LIST_H

/*
 * Connections that have something to be read and nobody to do it, in the order in which they came. Short critical
 * sections under a lock, since not only the loop may take from it.
 */

#include "net/connection.h"

#include <pthread.h>

typedef struct {
    pthread_mutex_t lock;
    heddle_connection *first, *last;
    size_t count;
} heddle_ready_list;

static inline void heddle_ready_list_start(heddle_ready_list *list)
{
    *list = (heddle_ready_list){0};
    pthread_mutex_init(&list->lock, NULL);
}

/* At the end, or with `next` before all others. One that is on the list already stays where it is. */
static inline void heddle_ready_list_put(heddle_ready_list *list, heddle_connection *connection, bool next)
{
    pthread_mutex_lock(&list->lock);
    if (!connection->queued) {
        connection->queued = true;
        connection->next = next ? list->first : NULL;
        connection->previous = next ? NULL : list->last;
        if (connection->previous)
            connection->previous->next = connection;
        else
            list->first = connection;
        if (connection->next)
            connection->next->previous = connection;
        else
            list->last = connection;
        list->count++;
    }
    pthread_mutex_unlock(&list->lock);
}

static inline void heddle_ready_list_unlink(heddle_ready_list *list, heddle_connection *connection)
{
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        list->first = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    else
        list->last = connection->previous;
    connection->next = connection->previous = NULL;
    connection->queued = false;
    list->count--;
}

static inline heddle_connection *heddle_ready_list_take(heddle_ready_list *list)
{
    pthread_mutex_lock(&list->lock);
    heddle_connection *connection = list->first;
    if (connection)
        heddle_ready_list_unlink(list, connection);
    pthread_mutex_unlock(&list->lock);
    return connection;
}

static inline void heddle_ready_list_remove(heddle_ready_list *list, heddle_connection *connection)
{
    pthread_mutex_lock(&list->lock);
    if (connection->queued)
        heddle_ready_list_unlink(list, connection);
    pthread_mutex_unlock(&list->lock);
}

#endif
