#pragma once

/* The static table of HPACK (RFC 7541, appendix A), written by bin/support/hpack_tables.rb. */

#include "system.h"

enum {
    HEDDLE_HPACK_STATIC_COUNT = 61,
    HEDDLE_HPACK_LONGEST_STATIC_NAME = 27,
};

typedef struct {
    const char *name, *value;
    uint8_t name_size, value_size;
} heddle_hpack_static_entry;

/* The entries begin at index 1; entries with the same name follow each other. */
extern const heddle_hpack_static_entry heddle_hpack_static_table[HEDDLE_HPACK_STATIC_COUNT + 1];

/*
 * heddle_hpack_static_names has the first index of each name, ordered by the size of the name. For each size,
 * heddle_hpack_static_name_starts has the position in heddle_hpack_static_names at which the names of that size start.
 */
extern const uint8_t heddle_hpack_static_names[];
extern const uint8_t heddle_hpack_static_name_starts[HEDDLE_HPACK_LONGEST_STATIC_NAME + 2];
