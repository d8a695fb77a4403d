/* The dynamic table of a decoder or an encoder (RFC 7541, section 2.3.2). */

#include "http/h2/hpack.h"

enum {
    FIRST_ROOM = 8,
};

static void evict_oldest(heddle_hpack_table *table)
{
    heddle_hpack_entry *oldest = heddle_hpack_table_at(table, table->count - 1);
    table->size -= oldest->name_size + oldest->value_size + HEDDLE_HPACK_OVERHEAD;
    table->count--;
    free(oldest);
}

static bool grow_ring(heddle_hpack_table *table)
{
    uint32_t room = table->room ? table->room * 2 : FIRST_ROOM;
    heddle_hpack_entry **entries = malloc(room * sizeof(*entries));
    if (!entries)
        return false;
    for (uint32_t i = 0; i < table->count; i++)
        entries[table->count - 1 - i] = heddle_hpack_table_at(table, i);
    free(table->entries);
    table->entries = entries;
    table->room = room;
    table->newest = table->count - 1; /* wraps around in an empty table */
    return true;
}

bool heddle_hpack_table_insert(heddle_hpack_table *table, const char *name, size_t name_size, const char *value,
                               size_t value_size, uint32_t hash)
{
    size_t size = name_size + value_size + HEDDLE_HPACK_OVERHEAD;
    while (table->count > 0 && (size > table->limit || table->size > table->limit - size))
        evict_oldest(table);
    if (size > table->limit)
        return true;
    if (table->count == table->room && !grow_ring(table))
        return false;
    heddle_hpack_entry *entry = malloc(sizeof(*entry) + name_size + value_size);
    if (!entry)
        return false;
    *entry = (heddle_hpack_entry){(uint32_t)name_size, (uint32_t)value_size, hash};
    if (name_size > 0)
        memcpy(entry->bytes, name, name_size);
    if (value_size > 0)
        memcpy(entry->bytes + name_size, value, value_size);
    table->newest = (table->newest + 1) & (table->room - 1);
    table->entries[table->newest] = entry;
    table->count++;
    table->size += (uint32_t)size;
    return true;
}

void heddle_hpack_table_resize(heddle_hpack_table *table, uint32_t limit)
{
    table->limit = limit;
    while (table->size > limit)
        evict_oldest(table);
}

void heddle_hpack_table_free(heddle_hpack_table *table)
{
    while (table->count > 0)
        evict_oldest(table);
    free(table->entries);
    table->entries = NULL;
    table->room = 0;
}
