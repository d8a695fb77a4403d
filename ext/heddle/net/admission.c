/* Decides which work items (requests and callbacks) begin, which wait and which are rejected: see admission.h. */

#include "net/runner.h"
#include "net/sockets.h"
#include "net/work_sharing.h"

/*
 * Does this address have as many begun items as it may have? If the limit is above 1, a quarter of the limit, rounded
 * up, is reserved for other addresses.
 */
static bool has_its_share(const heddle_sockets *sockets, const heddle_address_share *share)
{
    size_t limit = sockets->admission.limit;
    return limit && share && share->begun >= (limit > 1 ? limit - (limit + 3) / 4 : 1);
}

/*
 * Returns how many items of the queue, with this one, may begin now. Returns 0 if the item's address has used up its
 * share, and for a request while the gate (request_gate.h) is closed. While there is room, a callback is never
 * rejected, because its rejection closes a WebSocket.
 */
static size_t find_room(heddle_sockets *sockets, const heddle_work *work)
{
    bool request = heddle_rounds_list_of(sockets, work) == &sockets->ready;
    if (has_its_share(sockets, heddle_address_share_of(work->connection)) || (sockets->gate.closed && request))
        return 0;
    size_t room = heddle_admission_room(sockets);
    return room && !request ? HEDDLE_UNLIMITED_ITEMS : room;
}

bool heddle_admission_reject_full(heddle_sockets *sockets, heddle_work *work, size_t waiting, size_t room)
{
    size_t limit = sockets->admission.queue_limit + room;
    const heddle_address_share *share = heddle_address_share_of(work->connection);
    /*
     * An item is also rejected if its address has as many waiting items as the queue has free places, or more. So one
     * address can fill at most half of the queue. If it does, a second address can fill a quarter, and so on.
     */
    if (waiting < limit && !(share && share->waiting >= limit - waiting))
        return false;
    sockets->admission.rejected_full++;
    work->operations->reject(work, HEDDLE_QUEUE_FULL);
    return true;
}

void heddle_admission_limit_probe(heddle_sockets *sockets, heddle_work *work)
{
    if (!work->probe || work->list || sockets->leaving)
        return;
    const heddle_address_share *share = heddle_address_share_of(work->connection);
    work->probe = sockets->probes.count + sockets->runners.probing_count < HEDDLE_MOST_PROBES &&
                  !(share && share->probes >= HEDDLE_PROBES_OF_ADDRESS);
}

heddle_fate heddle_admission_admit(heddle_sockets *sockets, heddle_work *work)
{
    if (work->list || (work->probe && !sockets->leaving))
        return HEDDLE_ALIVE;
    if (work->probe) {
        work->operations->reject(work, HEDDLE_QUEUE_ENDS);
        return HEDDLE_GONE;
    }
    size_t waiting = heddle_rounds_count_waiting(sockets) - sockets->probes.count;
    return heddle_admission_reject_full(sockets, work, waiting, find_room(sockets, work)) ? HEDDLE_GONE : HEDDLE_ALIVE;
}

void heddle_admission_reject_late(heddle_sockets *sockets, heddle_work *work)
{
    heddle_ready_list_remove(work);
    sockets->admission.rejected_late++;
    work->operations->reject(work, HEDDLE_QUEUED_TOO_LONG);
}

bool heddle_admission_drop_abandoned(heddle_sockets *sockets, heddle_work *work, int64_t now)
{
    if (!work->operations->is_abandoned || !work->operations->is_abandoned(work, now))
        return false;
    sockets->clients_gone++;
    work->operations->reject(work, HEDDLE_CLIENT_LEFT);
    return true;
}

void heddle_admission_end_queue(heddle_sockets *sockets)
{
    heddle_work *work;
    while ((work = heddle_ready_list_take_first(&sockets->ready)) ||
           (work = heddle_ready_list_take_first(&sockets->probes)) ||
           (work = heddle_ready_list_take_first(&sockets->callbacks)) ||
           (work = heddle_ready_list_take_first(&sockets->rounds.deferred)) ||
           (work = heddle_ready_list_take_first(&sockets->held))) {
        if (heddle_connection_acquire(work->connection))
            work->operations->reject(work, HEDDLE_QUEUE_ENDS);
    }
}

/* -- shares of addresses ------------------------------------------------------------------------------------------- */

/* Moves items from the beginning of the list to `held`, as long as their addresses have used up their shares. */
static void hold_first(heddle_sockets *sockets, heddle_ready_list *list)
{
    heddle_work *work;
    while ((work = heddle_work_of_link(heddle_link_first(&list->head))) && has_its_share(sockets, work->share))
        heddle_ready_list_move(&sockets->held, work);
}

/*
 * Puts the items of this address (or of all addresses, if `share` is NULL) from `held` back into their lists. The items
 * get new rounds, because other addresses had their turns meanwhile. With their old rounds, all these items would come
 * before the next item of any other address.
 */
static void release_held(heddle_sockets *sockets, const heddle_address_share *share)
{
    heddle_link *head = &sockets->held.head;
    for (heddle_link *link = heddle_link_first(head); link; link = heddle_link_after(head, link)) {
        heddle_work *work = heddle_work_of_link(link);
        if (!share || work->share == share)
            work->share->round = sockets->rounds.served;
    }
    for (heddle_link *link = heddle_link_first(head), *next; link; link = next) {
        heddle_work *work = heddle_work_of_link(link);
        next = heddle_link_after(head, link);
        if (share && work->share != share)
            continue;
        heddle_ready_list_remove(work);
        heddle_ready_list_add(heddle_rounds_list_of(sockets, work), work, false);
    }
}

void heddle_admission_count_begun(heddle_sockets *sockets, heddle_address_share *share)
{
    sockets->runners.excess_count += has_its_share(sockets, share);
    share->begun++;
}

void heddle_admission_count_ended(heddle_sockets *sockets, heddle_address_share *share)
{
    share->begun--;
    if (has_its_share(sockets, share))
        sockets->runners.excess_count--;
    else if (sockets->held.count && !sockets->abandoned)
        release_held(sockets, share);
}

void heddle_admission_set_limit(heddle_sockets *sockets, size_t limit)
{
    heddle_runners *runners = &sockets->runners;
    sockets->admission.limit = limit;
    runners->excess_count = 0;
    for (heddle_runner *runner = runners->serving; runner; runner = runner->next) {
        if (runner->share)
            runner->share->begun = 0;
    }
    for (heddle_runner *runner = runners->serving; runner; runner = runner->next) {
        if (runner->share)
            heddle_admission_count_begun(sockets, runner->share);
    }
    release_held(sockets, NULL);
    heddle_admission_request(sockets);
}

/* -- choosing the next work --------------------------------------------------------------------------------------- */

heddle_ready_list *heddle_admission_choose_list(heddle_sockets *sockets)
{
    bool room = heddle_admission_room(sockets);
    if (room && sockets->admission.limit) {
        hold_first(sockets, &sockets->ready);
        hold_first(sockets, &sockets->callbacks);
    }
    bool request = room && sockets->ready.count && heddle_admission_open(sockets);
    bool callback = room && sockets->callbacks.count;
    sockets->probed = sockets->probes.count && (!sockets->probed || !(request || callback));
    if (sockets->probed)
        return &sockets->probes;
    if (!room)
        return NULL;
    if (sockets->urgent)
        return sockets->urgent == &sockets->callbacks || request ? sockets->urgent : NULL;
    if (request && callback)
        callback = sockets->callback_next = !sockets->callback_next;
    return callback ? &sockets->callbacks : request ? &sockets->ready : NULL;
}

/* Hands off the first waiting request if another worker could serve it sooner (work_sharing.h). */
static void share_next(heddle_sockets *sockets)
{
    heddle_work *work = heddle_ready_list_take_first(&sockets->ready);
    if (!work || heddle_work_share(sockets, work, heddle_clock_coarse()))
        return;
    if (!heddle_connection_acquire(work->connection))
        return; /* another process has the connection */
    uint32_t round = work->round;
    heddle_ready_list_add(&sockets->ready, work, true);
    work->round = round; /* remains the first item */
    heddle_connection_release(work->connection);
}

static bool holds_gate(const heddle_park *park)
{
    return park->waits_for != HEDDLE_SPENT_CLIENT && heddle_fiber_has_quantum_left(park->owner);
}

void heddle_admission_begin_work(heddle_attachment *attachment)
{
    heddle_sockets *sockets = HEDDLE_CONTAINER_OF(attachment, heddle_sockets, attachment);
    size_t waiting = heddle_rounds_count_waiting(sockets) - sockets->held.count;
    bool room = heddle_admission_room(sockets), probe = sockets->probes.count;
    if (sockets->closed)
        return;
    if (!waiting) {
        heddle_runners_publish_load(sockets); /* the queue became empty, for example because the clients have left */
        return;
    }
    bool held = heddle_loop_has_ready(sockets->loop, holds_gate);
    bool open = heddle_gate_judge(&sockets->gate, held, held ? heddle_clock_read(CLOCK_THREAD_CPUTIME_ID) : 0,
                                  sockets->loop->statistics.ticks + 1);
    if (!open || !room) {
        heddle_runners_publish_load(sockets);
        share_next(sockets);
    }
    if (probe || (room && (open || sockets->callbacks.count)))
        heddle_runners_summon(sockets);
    /* If there is no room, the end of an item leads to the next call. If the retry timer is set, its expiry does. */
    if ((room || probe) && !sockets->runners.retry.slot)
        heddle_admission_request(sockets);
}
