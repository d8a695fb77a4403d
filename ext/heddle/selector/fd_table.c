/* The waiters of each descriptor: see fd_table.h. */

#include "fd_table.h"
#include "selector/assert.h"
#include "selector/list.h"

enum { ENTRIES_A_PAGE = 256 };

heddle_fd_entry *heddle_fd_table_find(const heddle_fd_table *table, int fd)
{
    int page = fd / ENTRIES_A_PAGE;
    return fd >= 0 && page < table->page_count && table->pages[page] ? &table->pages[page][fd % ENTRIES_A_PAGE] : NULL;
}

heddle_fd_entry *heddle_fd_table_at(heddle_fd_table *table, int fd)
{
    HEDDLE_ASSERT(fd >= 0);
    int page = fd / ENTRIES_A_PAGE;
    if (page >= table->page_count) {
        int count = table->page_count ? table->page_count : 4;
        while (count <= page)
            count *= 2;
        heddle_fd_entry **pages = realloc(table->pages, (size_t)count * sizeof(*pages));
        if (!pages)
            return NULL;
        memset(pages + table->page_count, 0, (size_t)(count - table->page_count) * sizeof(*pages));
        table->pages = pages;
        table->page_count = count;
    }
    if (!table->pages[page])
        table->pages[page] = calloc(ENTRIES_A_PAGE, sizeof(heddle_fd_entry));
    return table->pages[page] ? &table->pages[page][fd % ENTRIES_A_PAGE] : NULL;
}

void heddle_fd_table_free(heddle_fd_table *table)
{
    for (int i = 0; i < table->page_count; i++)
        free(table->pages[i]);
    free(table->pages);
    table->pages = NULL;
    table->page_count = 0;
}

void heddle_fd_entry_link(heddle_fd_entry *entry, heddle_waiter *waiter)
{
    HEDDLE_ASSERT(!waiter->armed);
    HEDDLE_LIST_ADD(entry->waiters, waiter);
    waiter->armed = true;
}

void heddle_fd_entry_unlink(heddle_fd_entry *entry, heddle_waiter *waiter)
{
    HEDDLE_ASSERT(waiter->armed);
    if (entry->next_to_call == waiter)
        entry->next_to_call = waiter->next;
    HEDDLE_LIST_REMOVE(entry->waiters, waiter);
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
    for (heddle_waiter *waiter = entry->waiters; waiter; waiter = entry->next_to_call) {
        int result = ready < 0 ? ready : (ready & waiter->events);
        entry->next_to_call = waiter->next;
        if (result == 0)
            continue;
        if (waiter->mode == HEDDLE_PERSISTENT && ready > 0) {
            waiter->fn(waiter, result, HEDDLE_MORE);
        } else {
            heddle_fd_entry_unlink(entry, waiter);
            waiter->fn(waiter, result, 0);
        }
    }
    entry->next_to_call = NULL;
}

int heddle_selector_works(char *reason, size_t size)
{
    return 0;
}
