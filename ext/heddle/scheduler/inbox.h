#ifndef HEDDLE_INBOX_H
#define HEDDLE_INBOX_H

/*
 * What other native threads have for the loop: many writers, one reader, no lock and no GVL. A letter is part of
 * the sender's own record and must stay until it was opened.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct heddle_letter heddle_letter;
struct heddle_letter {
    void (*open)(heddle_letter *letter); /* on the loop's thread, with the GVL; must not block */
    heddle_letter *next;
};

typedef struct {
    _Atomic(heddle_letter *) newest;
} heddle_inbox;

static inline void heddle_inbox_post(heddle_inbox *inbox, heddle_letter *letter)
{
    letter->next = atomic_load_explicit(&inbox->newest, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&inbox->newest, &letter->next, letter)) {
    }
}

static inline bool heddle_inbox_empty(heddle_inbox *inbox)
{
    return atomic_load(&inbox->newest) == NULL;
}

/* Opens all letters in the order in which they came. */
static inline void heddle_inbox_open(heddle_inbox *inbox)
{
    if (heddle_inbox_empty(inbox))
        return;
    heddle_letter *letter = atomic_exchange(&inbox->newest, NULL), *ordered = NULL;
    while (letter) {
        heddle_letter *next = letter->next;
        letter->next = ordered;
        ordered = letter;
        letter = next;
    }
    while (ordered) {
        heddle_letter *next = ordered->next;
        ordered->open(ordered);
        ordered = next;
    }
}

#endif
