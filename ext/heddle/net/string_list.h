#pragma once

/* The data to send: a String or an Array of Strings. */

#include "system.h"

#include <ruby.h>
#include <sys/uio.h>

enum { HEDDLE_PIECES = 256 };

typedef struct {
    VALUE data;
    long first;  /* index of the first String that is not sent completely */
    size_t sent; /* bytes of that String and the following ones that were sent */
    bool copied;
} heddle_string_list;

/* Raises TypeError for anything else. */
heddle_string_list heddle_string_list_of(VALUE data);

/*
 * Sets the pieces to the unsent rest, or to its beginning if they are too few. Returns the number of pieces; 0 when
 * everything was sent.
 */
int heddle_string_list_gather(heddle_string_list *list, struct iovec pieces[HEDDLE_PIECES]);

/*
 * Replaces the strings by frozen copies. Call this before a wait, because other fibers could change the strings
 * meanwhile.
 */
void heddle_string_list_copy(heddle_string_list *list);
