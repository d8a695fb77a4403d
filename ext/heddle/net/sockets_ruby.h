#pragma once

#include "net/sockets.h"

/* Returns the record of a Heddle::Net::Sockets. Raises ArgumentError if the object is not initialized. */
heddle_sockets *heddle_sockets_of(VALUE self);
/*
 * Returns the record, or NULL if the sockets are closed or not opened yet. Raises an error on a thread other than the
 * loop's.
 */
heddle_sockets *heddle_sockets_in_use(VALUE self);
/*
 * Returns the record, and opens the sockets at first use. Raises an error if they are closed, or on a thread other than
 * the loop's.
 */
heddle_sockets *heddle_sockets_open(VALUE self);

void Init_heddle_sockets_sharing(VALUE sockets_class);
void Init_heddle_sockets_statistics(VALUE sockets_class);
