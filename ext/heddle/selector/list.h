#pragma once

/*
 * Lists of records with `next` and `previous`, NULL at the ends. Macros, because the records are of many types; the
 * arguments are evaluated several times. Uses no Ruby.
 */

#include "system.h"

/* `first`: the list. */
#define HEDDLE_LIST_ADD(first, record)                                                                                 \
    do {                                                                                                               \
        (record)->previous = NULL;                                                                                     \
        (record)->next = (first);                                                                                      \
        if (first)                                                                                                     \
            (first)->previous = (record);                                                                              \
        (first) = (record);                                                                                            \
    } while (0)

/* Idempotent if the links of a record that is in no list are NULL. */
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
 * Removes a record from a list that is linked by `outer` alone. Does nothing if the record is not in the list. The
 * record is not always the innermost one, because blocks of fibers that resume each other end in any order.
 */
#define HEDDLE_LIST_REMOVE_INNER(innermost, record)                                                                    \
    do {                                                                                                               \
        __typeof__(&(innermost)) link_ = &(innermost);                                                                 \
        while (*link_ && *link_ != (record))                                                                           \
            link_ = &(*link_)->outer;                                                                                  \
        if (*link_)                                                                                                    \
            *link_ = (record)->outer;                                                                                  \
    } while (0)

/* `queue`: a pointer to a record with `first` and `last`. */
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
