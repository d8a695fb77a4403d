#pragma once

/*
 * The perfect hash behind fields.h. The size of a name, its first letter and its second-last letter distinguish it from
 * all other names. Multiplied by the factor, they give each name a slot of its own. bin/support/field_factor.rb finds
 * another factor when a name is added.
 */

#include "http/fields.h"

enum {
    HEDDLE_KNOWN_NAME_ROOM = 31,
    HEDDLE_FIELD_SLOT_BITS = 7,
    HEDDLE_FIELD_SHORTEST = 2,
};

#define HEDDLE_FIELD_FACTOR UINT32_C(1577657337)

/* 32 bytes, so that two loads of 16 read a name. */
typedef struct {
    char name[HEDDLE_KNOWN_NAME_ROOM];
    uint8_t size;
} heddle_known_name;

extern const heddle_known_name heddle_known_names[HEDDLE_FIELD_COUNT];
extern uint8_t heddle_field_slots[1 << HEDDLE_FIELD_SLOT_BITS];

static inline unsigned heddle_field_slot(const char *name, size_t size)
{
    uint32_t first = (uint8_t)name[0] | 0x20, late = (uint8_t)name[size - 2] | 0x20;
    return (((uint32_t)size << 16 | first << 8 | late) * HEDDLE_FIELD_FACTOR) >> (32 - HEDDLE_FIELD_SLOT_BITS);
}

/* The only known name that this one can be; `size` >= HEDDLE_FIELD_SHORTEST. */
static inline unsigned heddle_field_candidate(const char *name, size_t size)
{
    return heddle_field_slots[heddle_field_slot(name, size)];
}
