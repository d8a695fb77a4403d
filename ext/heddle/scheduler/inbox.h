#pragma once

/*
 * Messages to the loop from any native thread: a queue for many writers and one reader, without a lock and without the
 * GVL. To open a message, the loop calls the message's function `open`. A message is part of a record of its sender,
 * which must stay valid until the loop has opened the message.
 */

#include "system.h"

typedef struct heddle_loop_message heddle_loop_message;
struct heddle_loop_message {
    void (*open)(heddle_loop_message *message); /* on the loop's thread, with the GVL; must not block */
    heddle_loop_message *next;
};

typedef struct {
    _Atomic(heddle_loop_message *) newest;
} heddle_inbox;

static inline void heddle_inbox_post(heddle_inbox *inbox, heddle_loop_message *message)
{
    message->next = atomic_load_explicit(&inbox->newest, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&inbox->newest, &message->next, message)) {
    }
}

static inline bool heddle_inbox_empty(heddle_inbox *inbox)
{
    return atomic_load(&inbox->newest) == NULL;
}

/* Opens all messages in the order of their arrival. */
static inline void heddle_inbox_open(heddle_inbox *inbox)
{
    if (heddle_inbox_empty(inbox))
        return;
    heddle_loop_message *message = atomic_exchange(&inbox->newest, NULL), *ordered = NULL;
    while (message) {
        heddle_loop_message *next = message->next;
        message->next = ordered;
        ordered = message;
        message = next;
    }
    while (ordered) {
        heddle_loop_message *next = ordered->next;
        ordered->open(ordered);
        ordered = next;
    }
}
