#include "http/h2/hpack.h"
#include "http/h2/tables.h"

enum {
    LARGEST_SHIFT = 28, /* the largest shift of an integer's byte, in bits: integers have at most 32 bits */
};

void heddle_hpack_decoder_start(heddle_hpack_decoder *decoder, uint32_t limit)
{
    *decoder = (heddle_hpack_decoder){.limit = limit, .table.limit = limit};
}

heddle_hpack_block heddle_hpack_block_start(heddle_hpack_decoder *decoder, heddle_bytes *scratch, const void *bytes,
                                            size_t size)
{
    const uint8_t *at = bytes;
    heddle_bytes_reset(scratch, SIZE_MAX);
    return (heddle_hpack_block){decoder, scratch, at, at + size, false};
}

/* Reads an integer (RFC 7541, 5.1). Returns false if it is incomplete or too large. */
static bool read_integer(heddle_hpack_block *block, unsigned prefix_bits, uint32_t *value)
{
    uint32_t most = (1u << prefix_bits) - 1;
    if (block->at == block->end)
        return false;
    *value = *block->at++ & most;
    if (*value < most)
        return true;
    for (unsigned shift = 0; shift <= LARGEST_SHIFT && block->at < block->end; shift += 7) {
        uint8_t byte = *block->at++;
        uint64_t sum = *value + ((uint64_t)(byte & 0x7F) << shift);
        if (sum > UINT32_MAX)
            return false;
        *value = (uint32_t)sum;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* Reads a string (RFC 7541, 5.2). A string in the Huffman code is decoded into `scratch`; others are not copied. */
static heddle_hpack_result read_string(heddle_hpack_block *block, const char **text, uint32_t *size)
{
    uint32_t length;
    bool huffman = block->at < block->end && *block->at & HEDDLE_HPACK_HUFFMAN;
    if (!read_integer(block, 7, &length) || length > (size_t)(block->end - block->at))
        return HEDDLE_HPACK_MALFORMED;
    const uint8_t *bytes = block->at;
    block->at += length;
    *text = (const char *)bytes;
    *size = length;
    if (!huffman)
        return HEDDLE_HPACK_FIELD;
    char *to = block->scratch->bytes + block->scratch->size;
    int64_t decoded = heddle_huffman_decode(bytes, length, to);
    if (decoded < 0)
        return HEDDLE_HPACK_MALFORMED;
    block->scratch->size += (size_t)decoded;
    *text = to;
    *size = (uint32_t)decoded;
    return HEDDLE_HPACK_FIELD;
}

/* Finds the name and value at an index (RFC 7541, 2.3.3). Returns false if there is no such index. */
static bool find_indexed(const heddle_hpack_block *block, uint32_t index, heddle_hpack_field *field)
{
    if (index == 0)
        return false;
    if (index <= HEDDLE_HPACK_STATIC_COUNT) {
        const heddle_hpack_static_entry *entry = &heddle_hpack_static_table[index];
        *field = (heddle_hpack_field){entry->name, entry->value, entry->name_size, entry->value_size, false};
        return true;
    }
    index -= HEDDLE_HPACK_STATIC_COUNT + 1;
    if (index >= block->decoder->table.count)
        return false;
    const heddle_hpack_entry *entry = heddle_hpack_table_at(&block->decoder->table, index);
    *field = (heddle_hpack_field){entry->bytes, entry->bytes + entry->name_size, entry->name_size, entry->value_size,
                                  false};
    return true;
}

/* Copies the name, because inserting the field may evict the entry that holds the name. */
static void keep_name(heddle_hpack_block *block, heddle_hpack_field *field)
{
    char *copy = block->scratch->bytes + block->scratch->size;
    memcpy(copy, field->name, field->name_size);
    block->scratch->size += field->name_size;
    field->name = copy;
}

static heddle_hpack_result read_literal(heddle_hpack_block *block, uint8_t first, heddle_hpack_field *field)
{
    bool incremental = first & HEDDLE_HPACK_INCREMENTAL;
    uint32_t index;
    if (!read_integer(block, incremental ? 6 : 4, &index))
        return HEDDLE_HPACK_MALFORMED;
    if (index > 0 && !find_indexed(block, index, field))
        return HEDDLE_HPACK_MALFORMED;

    /* Reserves room for both strings and a copy of the name, so that the name does not move when the value is read. */
    block->scratch->size = 0;
    size_t name_room = index > HEDDLE_HPACK_STATIC_COUNT ? field->name_size : 0;
    if (!heddle_bytes_reserve(block->scratch, name_room + heddle_huffman_room((size_t)(block->end - block->at)) + 1))
        return HEDDLE_HPACK_NO_MEMORY;
    if (index > HEDDLE_HPACK_STATIC_COUNT && incremental)
        keep_name(block, field);
    heddle_hpack_result result = HEDDLE_HPACK_FIELD;
    if (index == 0)
        result = read_string(block, &field->name, &field->name_size);
    if (result == HEDDLE_HPACK_FIELD)
        result = read_string(block, &field->value, &field->value_size);
    if (result != HEDDLE_HPACK_FIELD)
        return result;
    field->never_indexed = !incremental && first & HEDDLE_HPACK_NEVER_INDEXED;
    if (incremental && !heddle_hpack_table_insert(&block->decoder->table, field->name, field->name_size,
                                                  field->value, field->value_size, 0))
        return HEDDLE_HPACK_NO_MEMORY;
    return HEDDLE_HPACK_FIELD;
}

/* Reads a new size of the table, which must come before the first field of a block (RFC 7541, 4.2). */
static bool read_size_update(heddle_hpack_block *block)
{
    uint32_t size;
    if (block->has_fields || !read_integer(block, 5, &size) || size > block->decoder->limit)
        return false;
    heddle_hpack_table_resize(&block->decoder->table, size);
    return true;
}

heddle_hpack_result heddle_hpack_block_next(heddle_hpack_block *block, heddle_hpack_field *field)
{
    while (block->at < block->end && (*block->at & 0xE0) == HEDDLE_HPACK_SIZE_UPDATE) {
        if (!read_size_update(block))
            return HEDDLE_HPACK_MALFORMED;
    }
    if (block->at == block->end)
        return HEDDLE_HPACK_END;
    block->has_fields = true;
    uint8_t first = *block->at;
    if (!(first & HEDDLE_HPACK_INDEXED))
        return read_literal(block, first, field);
    uint32_t index;
    if (!read_integer(block, 7, &index) || !find_indexed(block, index, field))
        return HEDDLE_HPACK_MALFORMED;
    return HEDDLE_HPACK_FIELD;
}
