#pragma once

/*
 * How many work items a connection may have served in one turn: as many as every connection had ready lately. Where all
 * connections have many ready, as clients of HTTP/2 have, a turn is long and its responses are sent together. Where one
 * client sends one request at a time, every turn is one item. Turns stay long until such a client comes. Uses no Ruby.
 */

#include "system.h"

enum {
    HEDDLE_LONGEST_TURN = 16,  /* items */
    HEDDLE_TURNS_WATCHED = 64, /* how many turns are observed, at least, before turns become longer */
};

/* How long turns are observed, at least: ns. */
#define HEDDLE_TURN_WINDOW INT64_C(10000000)

typedef struct {
    unsigned items;    /* items in a turn */
    unsigned shortest; /* the fewest items that a connection had ready, since `since` */
    unsigned watched;  /* turns since then */
    int64_t since;     /* when the observation began, ns */
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

/* A connection with this many items ready begins its turn. Turns become shorter at once, and longer slowly. */
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
