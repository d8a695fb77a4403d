#pragma once

#include "net/sockets.h"

/* The record of a Heddle::Net::Sockets; raises if the object was never set up. */
heddle_sockets *heddle_sockets_of(VALUE self);
/* Returns NULL if the sockets are closed or not opened yet; raises on another thread. */
heddle_sockets *heddle_sockets_in_use(VALUE self);
/* Opens the sockets at first use; raises when they are closed, or on another thread. */
heddle_sockets *heddle_sockets_open(VALUE self);

void Init_heddle_sockets_sharing(VALUE sockets_class);
void Init_heddle_sockets_statistics(VALUE sockets_class);
