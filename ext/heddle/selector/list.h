#pragma once

/*
 * Doubly linked lists of records with the members `next` and `previous`, which are NULL at the ends. These are macros,
 * because the records have many types. They evaluate their arguments several times.
 */

#include "system.h"

/* Adds the record at the beginning. `first` is the variable that points to the first record of the list. */
#define HEDDLE_LIST_ADD(first, record)                                                                                 \
    do {                                                                                                               \
        (record)->previous = NULL;                                                                                     \
        (record)->next = (first);                                                                                      \
        if (first)                                                                                                     \
            (first)->previous = (record);                                                                              \
        (first) = (record);                                                                                            \
    } while (0)

/* Removes the record. Does nothing if the record is in no list and its links are NULL. */
#define HEDDLE_LIST_REMOVE(first, record)                                                                              \
    do {                                                                                                               \
        if ((record)->previous)                                                                                        \
            (record)->previous->next = (record)->next;                                                                 \
        else if ((first) == (record))                                                                                  \
            (first) = (record)->next;                                                                                  \
        if ((record)->next)                                                                                            \
            (record)->next->previous = (record)->previous;                                                             \
        (record)->next = (record)->previous = NULL;                                                                    \
    } while (0)

/*
 * Removes a record from a list of nested blocks, which is linked by `outer` alone. Does nothing if the record is not in
 * the list. The record need not be the innermost one: blocks of fibers that resume each other end in any order.
 */
#define HEDDLE_LIST_REMOVE_INNER(innermost, record)                                                                    \
    do {                                                                                                               \
        __typeof__(&(innermost)) link_ = &(innermost);                                                                 \
        while (*link_ && *link_ != (record))                                                                           \
            link_ = &(*link_)->outer;                                                                                  \
        if (*link_)                                                                                                    \
            *link_ = (record)->outer;                                                                                  \
    } while (0)

/* Adds the record at the end. `queue` points to a record with the members `first` and `last`. */
#define HEDDLE_QUEUE_APPEND(queue, record)                                                                             \
    do {                                                                                                               \
        (record)->next = NULL;                                                                                         \
        (record)->previous = (queue)->last;                                                                            \
        *((queue)->last ? &(queue)->last->next : &(queue)->first) = (record);                                          \
        (queue)->last = (record);                                                                                      \
    } while (0)

#define HEDDLE_QUEUE_REMOVE(queue, record)                                                                             \
    do {                                                                                                               \
        *((record)->previous ? &(record)->previous->next : &(queue)->first) = (record)->next;                          \
        *((record)->next ? &(record)->next->previous : &(queue)->last) = (record)->previous;                           \
        (record)->next = (record)->previous = NULL;                                                                    \
    } while (0)
