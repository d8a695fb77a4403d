#pragma once

/*
 * Decides how many work items of a connection are served in one turn (work_rounds.h): the smallest number that any
 * connection had ready recently. If all connections have many items ready, as with HTTP/2, turns are long, and the
 * responses of a turn are sent together. As soon as a client sends one request at a time, every turn has one item. Uses
 * no Ruby.
 */

#include "system.h"

enum {
    HEDDLE_LONGEST_TURN = 16,  /* in work items */
    HEDDLE_TURNS_WATCHED = 64, /* before turns become longer, at least this many turns are observed */
};

/* In ns. Before turns become longer, they are observed for at least this long. */
#define HEDDLE_TURN_WINDOW INT64_C(10000000)

typedef struct {
    unsigned items;    /* the current length of a turn */
    unsigned shortest; /* the smallest number of items that a connection had ready since `since` */
    unsigned watched;  /* the number of turns since `since` */
    int64_t since;     /* when the observation began, in ns */
} heddle_turn_length;

static inline void heddle_turn_length_start_window(heddle_turn_length *length, int64_t now)
{
    length->shortest = HEDDLE_LONGEST_TURN;
    length->watched = 0;
    length->since = now;
}

static inline void heddle_turn_length_init(heddle_turn_length *length)
{
    length->items = HEDDLE_LONGEST_TURN;
    heddle_turn_length_start_window(length, 0);
}

/*
 * Called when a connection with `usable` ready items begins its turn. The length of turns falls at once, and rises step
 * by step.
 */
static inline void heddle_turn_length_note(heddle_turn_length *length, unsigned usable, int64_t now)
{
    if (usable < length->shortest)
        length->shortest = usable;
    if (length->items > usable)
        length->items = usable;
    if (++length->watched < HEDDLE_TURNS_WATCHED || now - length->since < HEDDLE_TURN_WINDOW)
        return;
    length->items = length->items * 2 < length->shortest ? length->items * 2 : length->shortest;
    heddle_turn_length_start_window(length, now);
}
