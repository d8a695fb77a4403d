#pragma once

/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012) with a result of 128 bits, which identifies a topic in the table of a
 * history. The key is random, so that clients can't find two topics with the same hash. Uses no Ruby.
 */

#include "system.h"

typedef struct {
    uint64_t low, high;
} heddle_topic_hash;

static inline uint64_t heddle_rotate(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void heddle_sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = heddle_rotate(v[1], 13) ^ v[0];
    v[0] = heddle_rotate(v[0], 32);
    v[2] += v[3];
    v[3] = heddle_rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = heddle_rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = heddle_rotate(v[1], 17) ^ v[2];
    v[2] = heddle_rotate(v[2], 32);
}

static inline heddle_topic_hash heddle_hash_topic(const uint64_t key[2], const char *bytes, size_t size)
{
    uint64_t v[4] = {
        key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
        key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573),
    };
    for (size_t at = 0; at <= size; at += 8) {
        uint64_t word = 0;
        size_t left = size - at;
        memcpy(&word, bytes + at, left < 8 ? left : 8);
        if (left < 8)
            word |= (uint64_t)(size & 0xff) << 56;
        v[3] ^= word;
        heddle_sip_round(v);
        heddle_sip_round(v);
        v[0] ^= word;
    }
    heddle_topic_hash hash;
    v[2] ^= 0xee;
    for (int i = 0; i < 4; i++)
        heddle_sip_round(v);
    hash.low = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    for (int i = 0; i < 4; i++)
        heddle_sip_round(v);
    hash.high = v[0] ^ v[1] ^ v[2] ^ v[3];
    return hash;
}
