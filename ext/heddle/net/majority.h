#pragma once

/*
 * The address that has more than half of all bytes, if there is one. It gives way first, so that one client does not
 * end what others have begun. Two passes over the bytes: the first one finds the only address that can have so many
 * (Boyer and Moore's majority vote), the second one counts them.
 */

#include "system.h"

typedef struct {
    uint16_t address; /* heddle_connection's address_bucket */
    uint64_t votes, bytes, all;
} heddle_majority;

static inline void heddle_majority_vote(heddle_majority *majority, uint16_t address, uint64_t bytes)
{
    if (address == majority->address) {
        majority->votes += bytes;
    } else if (majority->votes < bytes) {
        majority->address = address;
        majority->votes = bytes - majority->votes;
    } else {
        majority->votes -= bytes;
    }
}

static inline void heddle_majority_count(heddle_majority *majority, uint16_t address, uint64_t bytes)
{
    majority->all += bytes;
    if (address == majority->address)
        majority->bytes += bytes;
}

/* Is it this address, or is there none? Connections that are not counted by address (0) are of many clients. */
static inline bool heddle_majority_includes(const heddle_majority *majority, uint16_t address)
{
    return !majority->address || majority->bytes <= majority->all / 2 || address == majority->address;
}
