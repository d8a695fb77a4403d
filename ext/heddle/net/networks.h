#ifndef HEDDLE_NETWORKS_H
#define HEDDLE_NETWORKS_H

/* A set of networks, such as that of the proxies whose word is taken. */

#include "net/address.h"

#include <ruby.h>
#include <stdbool.h>
#include <stddef.h>

/* IPv4 as the addresses of IPv6 that stand for it (RFC 4291, 2.5.5.2), so that one listener for both sees one network. */
typedef struct {
    uint8_t bytes[16];
    uint8_t bits; /* how many of the first ones count, 0 to 128 */
} heddle_network;

typedef struct {
    bool local; /* whoever reaches a unix socket is on this machine */
    size_t count;
    heddle_network *networks;
} heddle_networks;

bool heddle_networks_have(const heddle_networks *networks, const heddle_address *address);

/* Heddle::Net::Networks. */
extern const rb_data_type_t heddle_networks_type;
/* Of one that was checked; Qnil: none, which has nobody. */
bool heddle_networks_trust(VALUE networks, const heddle_address *address);
void Init_heddle_networks(VALUE net);

#endif
