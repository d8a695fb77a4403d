/*
 * The order in which the work items of several addresses are served. Each item has a round number. In a round each
 * address has one item. So an address with many waiting items delays the next item of another address by one item only.
 *
 * If the item that was served last had round n, the first waiting item of an address gets round n + 1, and each further
 * item the next number. An item of a connection that is not counted by address always gets round n + 1, so such items
 * are served in the order of their arrival.
 */

#include "net/sockets.h"

enum {
    MOST_STEPS = 1024, /* the maximum length of a search from each end: each step may miss the caches */
};

static bool comes_after(uint32_t round, uint32_t other)
{
    return (int32_t)(round - other) > 0;
}

static uint32_t choose_round(uint32_t served, heddle_address_share *share)
{
    if (!share)
        return served + 1;
    bool later = share->waiting && comes_after(share->round, served);
    return share->round = (later ? share->round : served) + 1;
}

/*
 * Searches from both ends at once. In a long list, an item belongs near the end if its address has many items, and near
 * the front if its address has few.
 */
static heddle_link *find_place(heddle_ready_list *list, uint32_t round)
{
    heddle_link *before = list->head.previous, *after = list->head.next;
    for (int i = 0; i < MOST_STEPS; i++, before = before->previous, after = after->next) {
        if (before == &list->head || !comes_after(heddle_work_of_link(before)->round, round))
            break;
        if (comes_after(heddle_work_of_link(after)->round, round))
            return after->previous;
    }
    return before;
}

static void insert_item(heddle_ready_list *list, heddle_work *work, bool at_front)
{
    if (work->share) {
        work->share->waiting++;
        work->share->probes += work->probe;
    }
    heddle_ready_list_lock(list);
    heddle_link_insert_after(at_front ? &list->head : find_place(list, work->round), &work->link);
    work->list = list;
    list->count++;
    heddle_ready_list_unlock(list);
}

void heddle_ready_list_add(heddle_ready_list *list, heddle_work *work, bool at_front)
{
    if (work->list)
        return;
    heddle_sockets *sockets = work->connection->sockets;
    work->share = heddle_address_share_of(work->connection);
    work->round = at_front ? sockets->rounds.served : choose_round(sockets->rounds.served, work->share);
    insert_item(list, work, at_front);
}

void heddle_ready_list_move(heddle_ready_list *list, heddle_work *work)
{
    heddle_ready_list_remove(work);
    insert_item(list, work, false);
}

void heddle_ready_list_remove(heddle_work *work)
{
    heddle_ready_list *list = work->list;
    if (!list)
        return;
    if (work->share) {
        work->share->waiting--;
        work->share->probes -= work->probe;
    }
    heddle_ready_list_lock(list);
    heddle_link_remove(&work->link);
    work->list = NULL;
    list->count--;
    heddle_ready_list_unlock(list);
}

void heddle_ready_list_note_served(heddle_sockets *sockets, const heddle_work *work)
{
    if (comes_after(work->round, sockets->rounds.served))
        sockets->rounds.served = work->round;
}
