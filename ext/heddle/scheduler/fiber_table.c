#include "scheduler/fiber_table.h"

static uint32_t slot_of(const heddle_fiber_table *table, VALUE fiber)
{
    /* Objects are at least 40 bytes apart; Fibonacci hashing spreads the remaining bits. */
    uint64_t hash = ((uint64_t)fiber >> 3) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 32) & (table->size - 1);
}

static uint32_t find_slot(const heddle_fiber_table *table, VALUE fiber)
{
    uint32_t index = slot_of(table, fiber);
    while (table->keys[index] && table->keys[index] != fiber)
        index = (index + 1) & (table->size - 1);
    return index;
}

static void grow_table(heddle_fiber_table *table)
{
    heddle_fiber_table old = *table, bigger = {.size = old.size ? old.size * 2 : 32, .count = old.count};
    bigger.keys = calloc(bigger.size, sizeof(*bigger.keys));
    bigger.values = calloc(bigger.size, sizeof(*bigger.values));
    if (!bigger.keys || !bigger.values) {
        free(bigger.keys);
        free(bigger.values);
        rb_memerror();
    }
    for (uint32_t i = 0; i < old.size; i++) {
        if (old.keys[i]) {
            uint32_t index = find_slot(&bigger, old.keys[i]);
            bigger.keys[index] = old.keys[i];
            bigger.values[index] = old.values[i];
        }
    }
    *table = bigger;
    heddle_fiber_table_free(&old);
}

void heddle_fiber_table_put(heddle_fiber_table *table, VALUE fiber, void *value)
{
    if ((table->count + 1) * 2 > table->size)
        grow_table(table);
    uint32_t index = find_slot(table, fiber);
    if (!table->keys[index])
        table->count++;
    table->keys[index] = fiber;
    table->values[index] = value;
}

void *heddle_fiber_table_get(const heddle_fiber_table *table, VALUE fiber)
{
    return table->count ? table->values[find_slot(table, fiber)] : NULL;
}

void heddle_fiber_table_delete(heddle_fiber_table *table, VALUE fiber)
{
    if (!table->count)
        return;
    uint32_t hole = find_slot(table, fiber), mask = table->size - 1;
    if (!table->keys[hole])
        return;
    table->count--;
    /* Moves later entries into the gap, so that searches need no tombstones. */
    for (uint32_t index = (hole + 1) & mask; table->keys[index]; index = (index + 1) & mask) {
        if (((index - slot_of(table, table->keys[index])) & mask) >= ((index - hole) & mask)) {
            table->keys[hole] = table->keys[index];
            table->values[hole] = table->values[index];
            hole = index;
        }
    }
    table->keys[hole] = 0;
    table->values[hole] = NULL;
}

void heddle_fiber_table_clear(heddle_fiber_table *table)
{
    for (uint32_t i = 0; i < table->size; i++) {
        table->keys[i] = 0;
        table->values[i] = NULL;
    }
    table->count = 0;
}

void heddle_fiber_table_free(heddle_fiber_table *table)
{
    free(table->keys);
    free(table->values);
    *table = (heddle_fiber_table){0};
}
