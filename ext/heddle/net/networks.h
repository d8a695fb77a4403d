#pragma once

/* A set of networks of IP addresses, such as the networks of trusted proxies. May contain Unix sockets, too. */

#include "net/address.h"

#include <ruby.h>

/* Heddle::Net::Networks. */
extern const rb_data_type_t heddle_networks_type;
/*
 * Returns whether the address is in one of the networks. `networks` is a Heddle::Net::Networks (the caller has checked
 * its class), or Qnil, which contains no address.
 */
bool heddle_networks_include(VALUE networks, const heddle_address *address);
void Init_heddle_networks(VALUE net);
