/*
 * The order in which items of several addresses are served. Items have a round, and in a round each address has one
 * item, so an address with many waiting items delays the next item of another one by a single item. An item of an
 * address that has none waiting belongs to the round after that of the item served last. Items of connections that are
 * not counted by address do so, too, in the order in which they come.
 */

#include "net/sockets.h"

enum {
    MOST_STEPS = 1024, /* from each end of the list to an item's place: each is a step through memory */
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
 * From both ends at once: an item of an address with many others belongs near the end of a long list, an item of an
 * address with few near its front.
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
