#pragma once

#include "net/sockets.h"

/* Returns the heddle_sockets of a Heddle::Net::Sockets. Raises ArgumentError if the object is not initialized. */
heddle_sockets *heddle_sockets_of(VALUE self);
/*
 * Returns the heddle_sockets, or NULL if they are closed or not opened yet. Raises an error on a thread other than the
 * loop's.
 */
heddle_sockets *heddle_sockets_in_use(VALUE self);
/*
 * Returns the heddle_sockets, and opens them at first use. Raises an error if they are closed, or on a thread other
 * than the loop's.
 */
heddle_sockets *heddle_sockets_open(VALUE self);

void Init_heddle_sockets_sharing(VALUE sockets_class);
void Init_heddle_sockets_statistics(VALUE sockets_class);
