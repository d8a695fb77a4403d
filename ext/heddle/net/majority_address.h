#pragma once

/*
 * Finds the address whose connections use more than half of the memory of all connections, if there is one. Its
 * connections are closed first, so that the server does not close the connections of others because of one client. Two
 * passes over the connections are needed. The first pass finds the only address that can have a majority (Boyer and
 * Moore's majority vote). The second pass counts the bytes of that address, and of all addresses.
 */

#include "system.h"

typedef struct {
    uint16_t address;    /* the only one that can have a majority: the address_bucket of a heddle_connection */
    uint64_t votes;      /* first pass: the counter of Boyer and Moore's algorithm for this address, in bytes */
    uint64_t bytes, all; /* second pass: the bytes of this address, and of all addresses */
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

/*
 * Returns true if no address has a majority, or if this address has it. Address 0 never counts as the majority, because
 * it stands for many clients.
 */
static inline bool heddle_majority_includes(const heddle_majority *majority, uint16_t address)
{
    return !majority->address || majority->bytes <= majority->all / 2 || address == majority->address;
}
