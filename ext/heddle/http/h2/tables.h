#ifndef HEDDLE_H2_TABLES_H
#define HEDDLE_H2_TABLES_H

/* The fixed tables of HPACK (RFC 7541, appendices A and B), written by bin/support/hpack_tables.rb. */

#include <stdint.h>

enum {
    HEDDLE_HPACK_STATIC_COUNT = 61,
    HEDDLE_HPACK_LONGEST_STATIC_NAME = 27,
};

typedef struct {
    const char *name, *value;
    uint8_t name_size, value_size;
} heddle_hpack_static_entry;

/* From index 1 on; entries with the same name follow each other. */
extern const heddle_hpack_static_entry heddle_hpack_static_table[HEDDLE_HPACK_STATIC_COUNT + 1];

/* The first index of each name, ordered by the size of the name, and where the names of each size start in it. */
extern const uint8_t heddle_hpack_static_names[];
extern const uint8_t heddle_hpack_static_name_starts[HEDDLE_HPACK_LONGEST_STATIC_NAME + 2];

typedef struct {
    uint32_t code;
    uint8_t bits;
} heddle_huffman_code;

extern const heddle_huffman_code heddle_huffman_codes[256];

/* The result of four bits in a node of the code's tree: the next node in the lowest byte, a symbol in the second. */
enum {
    HEDDLE_HUFFMAN_EMIT = 0x10000,   /* the symbol is complete */
    HEDDLE_HUFFMAN_ACCEPT = 0x20000, /* the string may end here */
    HEDDLE_HUFFMAN_FAIL = 0x40000,   /* the end-of-string symbol, which must not occur */
};

extern const uint32_t heddle_huffman_steps[256 * 16];

#endif
