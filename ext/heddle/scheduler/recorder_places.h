#pragma once

/*
 * Places: the lines of code that the recorder refers to, in a table of fixed size that has each text once. Recorded
 * entries contain an index into this table, or 0 if they have no place.
 */

#include "system.h"

#include <ruby.h>

enum {
    HEDDLE_PLACES = 4096,
    HEDDLE_PLACE_SIZE = 128, /* bytes of a text, including the final NUL */
};

typedef struct {
    unsigned used;
    char texts[HEDDLE_PLACES][HEDDLE_PLACE_SIZE];
} heddle_places;

/*
 * Sets the prefixes of paths, an Array of [prefix, kind]. The first prefix that matches a path determines the file's
 * kind: 0 for the application, 1 for Ruby and Heddle, which act for their caller, and 2 for a gem. A file whose path
 * has none of the prefixes belongs to the application. The texts in the table have the path without its prefix.
 */
void heddle_places_set_prefixes(VALUE prefixes);

/*
 * Returns the index of the innermost line of the application on the calling thread's stack. If the stack contains no
 * such line, returns the index of the innermost line of a gem. If it contains neither, returns 0. Allocates no object.
 */
uint16_t heddle_places_find(heddle_places *self);

/*
 * Sets `place` to the line that heddle_places_find returns, and `frames` to at most `most` frames of the stack,
 * innermost first: the innermost frame, each frame of the application, and each frame that the application has called
 * directly. Leaves out frames of Ruby and Heddle, except methods in C. Allocates objects.
 */
void heddle_places_read_stack(heddle_places *self, uint16_t *frames, unsigned most, uint16_t *place);

/* Is the table nearly full? Then the caller should empty it, and delete all records that contain indexes into it. */
static inline bool heddle_places_are_full(const heddle_places *self)
{
    return self->used > HEDDLE_PLACES * 3 / 4;
}
