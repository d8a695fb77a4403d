#ifndef HEDDLE_FIBER_TABLE_H
#define HEDDLE_FIBER_TABLE_H

/*
 * From a fiber to a record of ours, by open addressing. The keys are object addresses: the caller must keep the fiber
 * marked and pinned.
 */

#include "scheduler/loop.h"

/* Raises NoMemoryError before anything has changed. */
void heddle_fiber_table_put(heddle_fiber_table *table, VALUE fiber, void *value);
void *heddle_fiber_table_get(const heddle_fiber_table *table, VALUE fiber);
void heddle_fiber_table_delete(heddle_fiber_table *table, VALUE fiber);
void heddle_fiber_table_clear(heddle_fiber_table *table);
void heddle_fiber_table_free(heddle_fiber_table *table);

#endif
