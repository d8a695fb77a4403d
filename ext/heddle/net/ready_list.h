#pragma once

/*
 * The work items that wait for a runner (a pooled fiber), in the order in which they will be served. Addresses take
 * turns. Only the loop adds and removes items. The lock exists for the watch thread, which reads the list only while
 * the loop is blocked, and holds the lock for microseconds.
 */

#include "net/work_item.h"

#include <sched.h>

struct heddle_ready_list {
    atomic_flag lock;
    heddle_link head;
    size_t count;
};

static inline void heddle_ready_list_init(heddle_ready_list *list)
{
    *list = (heddle_ready_list){.lock = ATOMIC_FLAG_INIT};
    heddle_link_init_head(&list->head);
}

/* A spinlock, because the loop locks it twice for each request, and other threads hardly ever lock it. */
static inline void heddle_ready_list_lock(heddle_ready_list *list)
{
    while (atomic_flag_test_and_set_explicit(&list->lock, memory_order_acquire))
        sched_yield(); /* the thread that holds the lock may need this processor */
}

static inline void heddle_ready_list_unlock(heddle_ready_list *list)
{
    atomic_flag_clear_explicit(&list->lock, memory_order_release);
}

static inline heddle_work *heddle_work_of_link(heddle_link *link)
{
    return link ? HEDDLE_CONTAINER_OF(link, heddle_work, link) : NULL;
}

/*
 * Adds the item behind the items of its own round and of earlier rounds, and before the items of later rounds. These
 * are rounds of addresses (ready_list.c), not of connections (work_rounds.h). With `at_front`, adds the item before all
 * others. Does nothing if the item is in a list already.
 */
void heddle_ready_list_add(heddle_ready_list *list, heddle_work *work, bool at_front);

/* Moves an item to another list. The item keeps its round, so that its address does not lose its turn. */
void heddle_ready_list_move(heddle_ready_list *list, heddle_work *work);

/* Removes the item from its list, if it is in one. */
void heddle_ready_list_remove(heddle_work *work);

static inline heddle_work *heddle_ready_list_take_first(heddle_ready_list *list)
{
    heddle_work *work = heddle_work_of_link(heddle_link_first(&list->head));
    if (work)
        heddle_ready_list_remove(work);
    return work;
}
