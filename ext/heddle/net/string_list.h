#pragma once

/* What is to be sent: a String or an Array of Strings. */

#include "system.h"

#include <ruby.h>
#include <sys/uio.h>

enum { HEDDLE_PIECES = 256 };

typedef struct {
    VALUE data;
    long first;  /* the first String that is not known to be sent */
    size_t sent; /* bytes that were sent from there on */
    bool copied;
} heddle_string_list;

/* Raises TypeError for anything else. */
heddle_string_list heddle_string_list_of(VALUE data);

/* Sets the pieces to the unsent rest, as far as they suffice. Returns their number; 0 when everything was sent. */
int heddle_string_list_gather(heddle_string_list *list, struct iovec pieces[HEDDLE_PIECES]);

/* To be called before a wait: other fibers run during it, and a frozen copy can't change. */
void heddle_string_list_copy(heddle_string_list *list);
