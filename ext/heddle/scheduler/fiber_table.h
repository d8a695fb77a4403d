#pragma once

/*
 * A hash table with open addressing from a Fiber to a pointer. The keys are object addresses: the caller must keep each
 * Fiber marked and pinned.
 */

#include "scheduler/loop.h"

/* Raises NoMemoryError before it changes anything. */
void heddle_fiber_table_put(heddle_fiber_table *table, VALUE fiber, void *value);
void *heddle_fiber_table_get(const heddle_fiber_table *table, VALUE fiber);
void heddle_fiber_table_delete(heddle_fiber_table *table, VALUE fiber);
void heddle_fiber_table_clear(heddle_fiber_table *table);
void heddle_fiber_table_free(heddle_fiber_table *table);
