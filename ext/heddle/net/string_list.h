#pragma once

/* The data to send: a String or an Array of Strings. */

#include "system.h"

#include <ruby.h>
#include <sys/uio.h>

enum { HEDDLE_PIECES = 256 };

typedef struct {
    VALUE data;
    long first;  /* the first String that is not known to be sent */
    size_t sent; /* bytes of that String and the following ones that were sent */
    bool copied;
} heddle_string_list;

/* Raises TypeError for anything else. */
heddle_string_list heddle_string_list_of(VALUE data);

/* Sets the pieces to the unsent rest, or to as much of it as fits. Returns their number; 0 when everything was sent. */
int heddle_string_list_gather(heddle_string_list *list, struct iovec pieces[HEDDLE_PIECES]);

/* Copies the strings. Call this before a wait: other fibers run during it, and a frozen copy can't change. */
void heddle_string_list_copy(heddle_string_list *list);
