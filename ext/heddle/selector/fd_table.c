#include "fd_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

heddle_fd_entry *heddle_fd_table_find(heddle_fd_table *table, int fd)
{
    return fd >= 0 && fd < table->size ? &table->entries[fd] : NULL;
}

heddle_fd_entry *heddle_fd_table_at(heddle_fd_table *table, int fd)
{
    if (fd >= table->size) {
        int size = table->size ? table->size : 64;
        while (size <= fd)
            size *= 2;
        heddle_fd_entry *entries = realloc(table->entries, (size_t)size * sizeof(*entries));
        if (!entries)
            return NULL;
        memset(entries + table->size, 0, (size_t)(size - table->size) * sizeof(*entries));
        table->entries = entries;
        table->size = size;
    }
    return &table->entries[fd];
}

void heddle_fd_table_free(heddle_fd_table *table)
{
    free(table->entries);
    table->entries = NULL;
    table->size = 0;
}

void heddle_fd_entry_link(heddle_fd_entry *entry, heddle_waiter *waiter)
{
    assert(!waiter->armed);
    waiter->previous = NULL;
    waiter->next = entry->waiters;
    if (waiter->next)
        waiter->next->previous = waiter;
    entry->waiters = waiter;
    waiter->armed = true;
}

void heddle_fd_entry_unlink(heddle_fd_entry *entry, heddle_waiter *waiter)
{
    assert(waiter->armed);
    if (waiter->previous)
        waiter->previous->next = waiter->next;
    else
        entry->waiters = waiter->next;
    if (waiter->next)
        waiter->next->previous = waiter->previous;
    waiter->next = waiter->previous = NULL;
    waiter->armed = false;
}

uint8_t heddle_fd_entry_events(const heddle_fd_entry *entry)
{
    uint8_t events = 0;
    for (const heddle_waiter *waiter = entry->waiters; waiter; waiter = waiter->next)
        events |= waiter->events;
    return events;
}

void heddle_fd_entry_deliver(heddle_fd_entry *entry, int ready)
{
    /* A callback only enqueues, or re-arms its own waiter at the head of the list: `next` stays valid. */
    for (heddle_waiter *waiter = entry->waiters, *next; waiter; waiter = next) {
        int result = ready < 0 ? ready : (ready & waiter->events);
        next = waiter->next;
        if (result == 0)
            continue;
        if (waiter->mode == HEDDLE_PERSISTENT && ready > 0) {
            waiter->fn(waiter, result, HEDDLE_MORE);
        } else {
            heddle_fd_entry_unlink(entry, waiter);
            waiter->fn(waiter, result, 0);
        }
    }
}
