#pragma once

/*
 * Finds the address that has more than half of all bytes, if there is one. Its connections are closed first, so that
 * one client does not end the requests of others. There are two passes over the connections. The first one finds the
 * only address that can have a majority (Boyer and Moore's majority vote). The second one counts its bytes.
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

/*
 * True if there is no majority, or if this address has it. Address 0 never has it: its connections belong to many
 * clients.
 */
static inline bool heddle_majority_includes(const heddle_majority *majority, uint16_t address)
{
    return !majority->address || majority->bytes <= majority->all / 2 || address == majority->address;
}
