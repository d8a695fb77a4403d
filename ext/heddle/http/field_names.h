#pragma once

/*
 * The perfect hash behind fields.h. No two known names have the same size, first letter and second-last letter. The
 * number that these three form, multiplied by HEDDLE_FIELD_FACTOR, gives each known name its own slot. When you add a
 * name, find a new factor with bin/support/field_factor.rb.
 */

#include "http/fields.h"

enum {
    HEDDLE_KNOWN_NAME_ROOM = 31,
    HEDDLE_FIELD_SLOT_BITS = 7,
    HEDDLE_FIELD_SHORTEST = 2,
};

#define HEDDLE_FIELD_FACTOR UINT32_C(1577657337)

/* A record has 32 bytes, so that two loads of 16 bytes read a whole name. */
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

/*
 * Returns the id of the only known name that this name can be equal to, or HEDDLE_FIELD_OTHER. `size` must be at least
 * HEDDLE_FIELD_SHORTEST.
 */
static inline unsigned heddle_field_candidate(const char *name, size_t size)
{
    return heddle_field_slots[heddle_field_slot(name, size)];
}
