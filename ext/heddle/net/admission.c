#include "net/sockets.h"

/* Is the queue so full that no connections are accepted? From half of its limit on, until it is down to a quarter. */
static bool is_filling(const heddle_sockets *sockets)
{
    size_t limit = sockets->admission.queue_limit;
    return heddle_rounds_count_waiting(sockets) + 1 >= limit - limit / 2;
}

heddle_fate heddle_admission_admit(heddle_sockets *sockets, heddle_work *work)
{
    heddle_admission *admission = &sockets->admission;
    if (work->list || (work->probe && !sockets->leaving))
        return HEDDLE_ALIVE;
    if (work->probe) {
        work->operations->reject(work, HEDDLE_QUEUE_ENDS);
        return HEDDLE_GONE;
    }
    if (heddle_rounds_count_waiting(sockets) >= admission->queue_limit) {
        admission->rejected_full++;
        work->operations->reject(work, HEDDLE_QUEUE_FULL);
        return HEDDLE_GONE;
    }
    if (is_filling(sockets) && !(sockets->paused & HEDDLE_PAUSED_BUSY))
        heddle_listeners_pause(sockets, HEDDLE_PAUSED_BUSY);
    return HEDDLE_ALIVE;
}

void heddle_admission_resume_accepting(heddle_sockets *sockets)
{
    if (heddle_rounds_count_waiting(sockets) <= sockets->admission.queue_limit / 4)
        heddle_listeners_resume(sockets, HEDDLE_PAUSED_BUSY);
}

void heddle_admission_reject_late(heddle_sockets *sockets, heddle_work *work)
{
    heddle_ready_list_remove(work);
    sockets->admission.rejected_late++;
    work->operations->reject(work, HEDDLE_QUEUED_TOO_LONG);
    heddle_admission_resume_accepting(sockets);
}

void heddle_admission_apply_limits(heddle_sockets *sockets)
{
    if (sockets->closed)
        return;
    heddle_admission_resume_accepting(sockets);
    if (heddle_rounds_count_waiting(sockets))
        heddle_runners_summon(sockets);
}

void heddle_admission_end_queue(heddle_sockets *sockets)
{
    heddle_work *work;
    while ((work = heddle_ready_list_take_first(&sockets->ready)) ||
           (work = heddle_ready_list_take_first(&sockets->rounds.deferred))) {
        if (heddle_connection_acquire(work->connection))
            work->operations->reject(work, HEDDLE_QUEUE_ENDS);
    }
}
