#pragma once

/*
 * Makes a loop call a function in its next tick. The record is not embedded in its owner, who may be freed before the
 * loop has opened the message.
 */

#include "scheduler/inbox.h"

typedef struct {
    heddle_loop_message base;
    void (*fn)(void *owner);
    void *owner;         /* NULL: freed meanwhile */
    _Atomic bool posted; /* set by the loop itself, or by the watch thread */
} heddle_recall;

static inline void heddle_recall_open(heddle_loop_message *message)
{
    heddle_recall *recall = (heddle_recall *)message;
    recall->posted = false;
    if (recall->owner)
        recall->fn(recall->owner); /* may free the owner, and so the record */
    else
        free(recall);
}

/* Returns NULL without memory. */
static inline heddle_recall *heddle_recall_new(void (*fn)(void *owner), void *owner)
{
    heddle_recall *recall = malloc(sizeof(*recall));
    if (recall)
        *recall = (heddle_recall){.base.open = heddle_recall_open, .fn = fn, .owner = owner};
    return recall;
}

static inline void heddle_recall_post(heddle_recall *recall, heddle_inbox *inbox)
{
    if (!atomic_exchange(&recall->posted, true))
        heddle_inbox_post(inbox, &recall->base);
}

/* Called by the owner when it is freed. */
static inline void heddle_recall_drop(heddle_recall **recall)
{
    if (*recall && (*recall)->posted)
        (*recall)->owner = NULL; /* heddle_recall_open frees it */
    else
        free(*recall);
    *recall = NULL;
}
