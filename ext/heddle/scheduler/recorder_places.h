#pragma once

/*
 * Lines of the application that the recorder names, each text once, in a table of fixed size: what is recorded has
 * numbers. 0 stands for none.
 */

#include <ruby.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    HEDDLE_PLACES = 4096,
    HEDDLE_PLACE_SIZE = 128, /* bytes of a text, its end included */
};

typedef struct {
    unsigned used;
    char texts[HEDDLE_PLACES][HEDDLE_PLACE_SIZE];
} heddle_places;

/*
 * Whose code begins with which path: [prefix, kind] each, the first that fits counts; none: the application's. The
 * kinds: 0 the application, 1 Ruby or Heddle, which act for their caller, 2 a gem. Texts have the path without the
 * prefix.
 */
void heddle_places_set_prefixes(VALUE prefixes);

/* The innermost line of the application on the calling thread's stack, else of a gem. Allocates no object. */
uint16_t heddle_places_find(heddle_places *self);

/*
 * Sets `place` to the same line, and `frames` to frames of the stack, innermost first: the innermost one, each of the
 * application, and each that the application has called. Returns the number of frames. Allocates objects.
 */
unsigned heddle_places_read_stack(heddle_places *self, uint16_t *frames, unsigned most, uint16_t *place);

/* Is it nearly full? Then it should be emptied, with all records that have its numbers. */
static inline bool heddle_places_are_full(const heddle_places *self)
{
    return self->used > HEDDLE_PLACES * 3 / 4;
}
