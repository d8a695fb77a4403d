#pragma once

/*
 * A message to a loop's inbox: the loop calls a function in its next tick. The message is allocated separately, because
 * its owner may be freed before the loop has handled it.
 */

#include "scheduler/inbox.h"

typedef struct {
    heddle_loop_message base;
    void (*fn)(void *owner);
    void *owner;         /* NULL: it was freed meanwhile */
    _Atomic bool posted; /* the message is in the inbox; set by the loop or by the watch thread */
} heddle_next_tick_call;

static inline void heddle_next_tick_call_open(heddle_loop_message *message)
{
    heddle_next_tick_call *call = (heddle_next_tick_call *)message;
    call->posted = false;
    if (call->owner)
        call->fn(call->owner); /* may free the owner, and with it `call` */
    else
        free(call);
}

/* Returns NULL if memory is exhausted. */
static inline heddle_next_tick_call *heddle_next_tick_call_new(void (*fn)(void *owner), void *owner)
{
    heddle_next_tick_call *call = malloc(sizeof(*call));
    if (call)
        *call = (heddle_next_tick_call){.base.open = heddle_next_tick_call_open, .fn = fn, .owner = owner};
    return call;
}

static inline void heddle_next_tick_call_post(heddle_next_tick_call *call, heddle_inbox *inbox)
{
    if (!atomic_exchange(&call->posted, true))
        heddle_inbox_post(inbox, &call->base);
}

/* Called before the owner is freed. */
static inline void heddle_next_tick_call_drop(heddle_next_tick_call **call)
{
    if (*call && (*call)->posted)
        (*call)->owner = NULL; /* heddle_next_tick_call_open frees the message */
    else
        free(*call);
    *call = NULL;
}
