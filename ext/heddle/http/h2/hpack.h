#pragma once

/*
 * HPACK (RFC 7541), for servers and clients. Uses no Ruby. heddle_hpack_decoder_start and heddle_hpack_encoder_start
 * initialize a record. An empty dynamic table takes no memory.
 */

#include "selector/bytes.h"

enum {
    HEDDLE_HPACK_DEFAULT_SIZE = 4096, /* bytes of a dynamic table (RFC 9113, 6.5.2) */
    /* octets that are counted for a field in addition to its name and value (RFC 7541, 4.1) */
    HEDDLE_HPACK_OVERHEAD = 32,
    HEDDLE_HPACK_SEEN = 16, /* fields that an encoder remembers, see `seen` */
    /* the first bits of each representation (RFC 7541, 6), and of a string in the Huffman code (5.2) */
    HEDDLE_HPACK_INDEXED = 0x80,
    HEDDLE_HPACK_INCREMENTAL = 0x40,
    HEDDLE_HPACK_SIZE_UPDATE = 0x20,
    HEDDLE_HPACK_NEVER_INDEXED = 0x10,
    HEDDLE_HPACK_HUFFMAN = 0x80,
};

/* -- Huffman code -------------------------------------------------------------------------------------------------- */

/* Returns the size of the encoded text, in bytes. */
size_t heddle_huffman_size(const char *text, size_t size);
/* Encodes into `to`, which has room for heddle_huffman_size bytes. */
void heddle_huffman_encode(const char *text, size_t size, uint8_t *to);
/* Returns a number of bytes that is enough for any text that `size` encoded bytes can contain. */
static inline size_t heddle_huffman_room(size_t size)
{
    return size * 8 / 5 + 1;
}
/*
 * Decodes into `to`, which has room for heddle_huffman_room bytes. Returns the size of the text, or -1 if the bytes
 * violate RFC 7541, 5.2.
 */
int64_t heddle_huffman_decode(const uint8_t *bytes, size_t size, char *to);

/* -- dynamic table ------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t name_size, value_size;
    uint32_t hash; /* the hash of name and value; only encoders use it */
    char bytes[];  /* the name, then the value */
} heddle_hpack_entry;

typedef struct {
    heddle_hpack_entry **entries; /* a ring; `newest` is the position of the entry with the lowest index */
    uint32_t room, newest, count;
    uint32_t size, limit; /* octets, as counted by RFC 7541, 4.1 */
} heddle_hpack_table;

/* Returns the entry at this distance from the newest one. The distance must be less than `count`. */
static inline heddle_hpack_entry *heddle_hpack_table_at(const heddle_hpack_table *table, uint32_t distance)
{
    return table->entries[(table->newest - distance) & (table->room - 1)];
}

/*
 * Evicts old entries until there is room, and inserts an entry. An entry that is larger than the table's
 * limit empties the table, and is not inserted (RFC 7541, 4.4). Returns false when out of memory.
 */
bool heddle_hpack_table_insert(heddle_hpack_table *table, const char *name, size_t name_size, const char *value,
                               size_t value_size, uint32_t hash);
void heddle_hpack_table_resize(heddle_hpack_table *table, uint32_t limit);
void heddle_hpack_table_free(heddle_hpack_table *table);

/* -- decoder ------------------------------------------------------------------------------------------------------- */

typedef struct {
    heddle_hpack_table table;
    uint32_t limit; /* the SETTINGS_HEADER_TABLE_SIZE of this side, which never changes */
} heddle_hpack_decoder;

void heddle_hpack_decoder_start(heddle_hpack_decoder *decoder, uint32_t limit);

/* A decoded field. Its strings are valid until the next field is decoded. */
typedef struct {
    const char *name, *value;
    uint32_t name_size, value_size;
    bool never_indexed; /* a proxy that forwards the field must not index it */
} heddle_hpack_field;

/* A complete header block (RFC 9113, 4.3) that is being decoded. */
typedef struct {
    heddle_hpack_decoder *decoder;
    heddle_bytes *scratch; /* for decoded strings and copies; the caller may use it for other blocks later */
    const uint8_t *at, *end;
    bool has_fields;
} heddle_hpack_block;

typedef enum {
    HEDDLE_HPACK_FIELD,
    HEDDLE_HPACK_END,
    HEDDLE_HPACK_MALFORMED, /* a connection error, because the tables of both sides may differ now */
    HEDDLE_HPACK_NO_MEMORY, /* a connection error, too */
} heddle_hpack_result;

heddle_hpack_block heddle_hpack_block_start(heddle_hpack_decoder *decoder, heddle_bytes *scratch, const void *bytes,
                                            size_t size);
heddle_hpack_result heddle_hpack_block_next(heddle_hpack_block *block, heddle_hpack_field *field);

/* -- encoder ------------------------------------------------------------------------------------------------------- */

typedef struct {
    heddle_hpack_table table;
    uint32_t limit;        /* the table's size limit in octets; applies from the next block on */
    uint32_t lowest_limit; /* the lowest limit since the last block; the next block announces it (RFC 7541, 4.2) */
    bool limit_changed;
    uint8_t seen_next;
    /* hashes of the last fields that were sent in full; a field that is sent in full again is added to the table */
    uint32_t seen[HEDDLE_HPACK_SEEN];
} heddle_hpack_encoder;

void heddle_hpack_encoder_start(heddle_hpack_encoder *encoder);
/* Called with the peer's SETTINGS_HEADER_TABLE_SIZE. The encoder never uses more than the default. */
void heddle_hpack_encoder_limit(heddle_hpack_encoder *encoder, uint32_t limit);
/* Empties and frees the table of an idle connection. The next block tells the peer's decoder to empty its table. */
void heddle_hpack_encoder_trim(heddle_hpack_encoder *encoder);

/*
 * Must be called before the first field of a block. When out of memory, this function and heddle_hpack_encode return
 * false: then the connection must end.
 */
bool heddle_hpack_encode_start(heddle_hpack_encoder *encoder, heddle_bytes *to);
/* Adds a field to the block. The name must be in lower case. Secrets, such as `authorization`, are never indexed. */
bool heddle_hpack_encode(heddle_hpack_encoder *encoder, heddle_bytes *to, const char *name, size_t name_size,
                         const char *value, size_t value_size);
