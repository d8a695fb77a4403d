#pragma once

/*
 * A circular doubly linked list of records that contain their link. The head is a link outside of any record. A link
 * that is in no list is all zeros, so a record from calloc is valid. Uses no Ruby.
 */

#include "system.h"

typedef struct heddle_link heddle_link;
struct heddle_link {
    heddle_link *next, *previous;
};

#define HEDDLE_CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

static inline void heddle_link_init_head(heddle_link *head)
{
    head->next = head->previous = head;
}

static inline bool heddle_link_is_listed(const heddle_link *link)
{
    return link->next != NULL;
}

/* Returns NULL if the list is empty. */
static inline heddle_link *heddle_link_first(const heddle_link *head)
{
    return head->next == head ? NULL : head->next;
}

/* Returns NULL at the end of the list. */
static inline heddle_link *heddle_link_after(const heddle_link *head, const heddle_link *link)
{
    return link->next == head ? NULL : link->next;
}

/* The link must be in no list. */
static inline void heddle_link_insert_after(heddle_link *place, heddle_link *link)
{
    link->previous = place;
    link->next = place->next;
    place->next->previous = link;
    place->next = link;
}

static inline void heddle_link_push_first(heddle_link *head, heddle_link *link)
{
    heddle_link_insert_after(head, link);
}

static inline void heddle_link_push_last(heddle_link *head, heddle_link *link)
{
    heddle_link_insert_after(head->previous, link);
}

/* Does nothing when the link is in no list. */
static inline void heddle_link_remove(heddle_link *link)
{
    if (!heddle_link_is_listed(link))
        return;
    link->previous->next = link->next;
    link->next->previous = link->previous;
    link->next = link->previous = NULL;
}
