#ifndef HEDDLE_NETWORKS_H
#define HEDDLE_NETWORKS_H

/* A set of networks, such as that of the proxies whose word is taken. */

#include "net/address.h"

#include <ruby.h>
#include <stdbool.h>

/* Heddle::Net::Networks. */
extern const rb_data_type_t heddle_networks_type;
/* Of one that was checked; Qnil: none, which has nobody. */
bool heddle_networks_trust(VALUE networks, const heddle_address *address);
void Init_heddle_networks(VALUE net);

#endif
