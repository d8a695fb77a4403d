/* Encodes header blocks (RFC 7541). */

#include "http/h2/hpack.h"
#include "http/h2/tables.h"
#include "http/text.h"

enum {
    LONGEST_INTEGER = 10, /* bytes */
    LARGEST_INDEXED = 128, /* bytes of the longest value that is indexed */
};

void heddle_hpack_encoder_start(heddle_hpack_encoder *encoder)
{
    *encoder = (heddle_hpack_encoder){.limit = HEDDLE_HPACK_DEFAULT_SIZE, .table.limit = HEDDLE_HPACK_DEFAULT_SIZE};
}

static void set_limit(heddle_hpack_encoder *encoder, uint32_t limit)
{
    if (!encoder->limit_changed || limit < encoder->lowest_limit)
        encoder->lowest_limit = limit;
    encoder->limit_changed = true;
    encoder->limit = limit;
}

void heddle_hpack_encoder_limit(heddle_hpack_encoder *encoder, uint32_t limit)
{
    if (limit > HEDDLE_HPACK_DEFAULT_SIZE)
        limit = HEDDLE_HPACK_DEFAULT_SIZE;
    if (limit != encoder->limit)
        set_limit(encoder, limit);
}

void heddle_hpack_encoder_trim(heddle_hpack_encoder *encoder)
{
    if (encoder->table.room == 0)
        return;
    uint32_t limit = encoder->limit;
    heddle_hpack_table_free(&encoder->table);
    set_limit(encoder, 0);
    set_limit(encoder, limit);
}

/* -- primitives (RFC 7541, 5) -------------------------------------------------------------------------------------- */

static uint8_t *write_integer(uint8_t *to, uint8_t first, unsigned prefix_bits, size_t value)
{
    size_t most = (1u << prefix_bits) - 1;
    if (value < most) {
        *to++ = (uint8_t)(first | value);
        return to;
    }
    *to++ = (uint8_t)(first | most);
    for (value -= most; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(0x80 | (value & 0x7F));
    *to++ = (uint8_t)value;
    return to;
}

static bool put_integer(heddle_bytes *to, uint8_t first, unsigned prefix_bits, size_t value)
{
    if (!heddle_bytes_reserve(to, LONGEST_INTEGER))
        return false;
    uint8_t *end = write_integer((uint8_t *)to->bytes + to->size, first, prefix_bits, value);
    to->size = (size_t)(end - (uint8_t *)to->bytes);
    return true;
}

static bool put_string(heddle_bytes *to, const char *text, size_t size)
{
    size_t coded = heddle_huffman_size(text, size);
    if (coded >= size)
        return put_integer(to, 0, 7, size) && heddle_bytes_add(to, text, size);
    if (!put_integer(to, HEDDLE_HPACK_HUFFMAN, 7, coded) || !heddle_bytes_reserve(to, coded))
        return false;
    heddle_huffman_encode(text, size, (uint8_t *)to->bytes + to->size);
    to->size += coded;
    return true;
}

/* -- lookup -------------------------------------------------------------------------------------------------------- */

/* Returns the lowest index in the static table with this name, or 0. */
static uint32_t find_static_name(const char *name, size_t size)
{
    if (size > HEDDLE_HPACK_LONGEST_STATIC_NAME)
        return 0;
    unsigned end = heddle_hpack_static_name_starts[size + 1];
    for (unsigned i = heddle_hpack_static_name_starts[size]; i < end; i++) {
        uint32_t index = heddle_hpack_static_names[i];
        if (memcmp(heddle_hpack_static_table[index].name, name, size) == 0)
            return index;
    }
    return 0;
}

/* Returns the index in the static table with this name and value, or 0. `first`: the lowest index with the name. */
static uint32_t find_static_value(uint32_t first, const char *value, size_t size)
{
    const heddle_hpack_static_entry *entry = &heddle_hpack_static_table[first];
    for (uint32_t index = first; index <= HEDDLE_HPACK_STATIC_COUNT; index++) {
        const heddle_hpack_static_entry *other = &heddle_hpack_static_table[index];
        if (strcmp(other->name, entry->name) != 0)
            return 0;
        if (other->value_size > 0 && other->value_size == size && memcmp(other->value, value, size) == 0)
            return index;
    }
    return 0;
}

static uint32_t find_dynamic(const heddle_hpack_table *table, uint32_t hash, const char *name, size_t name_size,
                             const char *value, size_t value_size)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const heddle_hpack_entry *entry = heddle_hpack_table_at(table, i);
        if (entry->hash == hash && entry->name_size == name_size && entry->value_size == value_size &&
            memcmp(entry->bytes, name, name_size) == 0 &&
            memcmp(entry->bytes + name_size, value, value_size) == 0)
            return HEDDLE_HPACK_STATIC_COUNT + 1 + i;
    }
    return 0;
}

/*
 * Remembers a field that is sent in full. Returns true if the same field was sent in full recently: then it gets an
 * entry in the dynamic table.
 */
static bool note_seen(heddle_hpack_encoder *encoder, uint32_t hash)
{
    for (unsigned i = 0; i < HEDDLE_HPACK_SEEN; i++) {
        if (encoder->seen[i] == hash)
            return true;
    }
    encoder->seen[encoder->seen_next++ % HEDDLE_HPACK_SEEN] = hash;
    return false;
}

/*
 * Is the value secret? If a secret were indexed, the size of later blocks would show an attacker whether a guess is
 * right (RFC 7541, 7.1).
 */
static bool is_sensitive(const char *name, size_t size)
{
    switch (size) {
    case 6:
        return memcmp(name, "cookie", 6) == 0;
    case 10:
        return memcmp(name, "set-cookie", 10) == 0;
    case 13:
        return memcmp(name, "authorization", 13) == 0;
    case 19:
        return memcmp(name, "proxy-authorization", 19) == 0;
    default:
        return false;
    }
}

/* -- encoding ------------------------------------------------------------------------------------------------------ */

bool heddle_hpack_encode_start(heddle_hpack_encoder *encoder, heddle_bytes *to)
{
    if (!encoder->limit_changed)
        return true;
    encoder->limit_changed = false;
    if (encoder->lowest_limit < encoder->limit) {
        heddle_hpack_table_resize(&encoder->table, encoder->lowest_limit);
        if (!put_integer(to, HEDDLE_HPACK_SIZE_UPDATE, 5, encoder->lowest_limit))
            return false;
    }
    heddle_hpack_table_resize(&encoder->table, encoder->limit);
    return put_integer(to, HEDDLE_HPACK_SIZE_UPDATE, 5, encoder->limit);
}

bool heddle_hpack_encode(heddle_hpack_encoder *encoder, heddle_bytes *to, const char *name, size_t name_size,
                         const char *value, size_t value_size)
{
    uint32_t name_index = find_static_name(name, name_size);
    uint32_t index = name_index ? find_static_value(name_index, value, value_size) : 0;
    if (index)
        return put_integer(to, HEDDLE_HPACK_INDEXED, 7, index);

    uint8_t first = 0;
    unsigned prefix_bits = 4;
    uint32_t hash = 0;
    if (is_sensitive(name, name_size)) {
        first = HEDDLE_HPACK_NEVER_INDEXED;
    } else if (value_size <= LARGEST_INDEXED && encoder->table.limit > 0) {
        hash = (uint32_t)heddle_hash_bytes(heddle_hash_bytes(0, name, name_size), value, value_size);
        index = find_dynamic(&encoder->table, hash, name, name_size, value, value_size);
        if (index)
            return put_integer(to, HEDDLE_HPACK_INDEXED, 7, index);
        if (note_seen(encoder, hash)) {
            first = HEDDLE_HPACK_INCREMENTAL;
            prefix_bits = 6;
        }
    }
    if (!put_integer(to, first, prefix_bits, name_index))
        return false;
    if (!name_index && !put_string(to, name, name_size))
        return false;
    if (!put_string(to, value, value_size))
        return false;
    return first != HEDDLE_HPACK_INCREMENTAL ||
           heddle_hpack_table_insert(&encoder->table, name, name_size, value, value_size, hash);
}
