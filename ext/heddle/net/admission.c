#include "net/sockets.h"

/* Accepting rests while the queue is at least half full, until it is down to a quarter. */
static bool is_filling(const heddle_sockets *sockets)
{
    size_t limit = sockets->admission.queue_limit;
    return sockets->ready.count + 1 >= limit - limit / 2;
}

bool heddle_admission_queue(heddle_sockets *sockets, heddle_connection *connection)
{
    heddle_admission *admission = &sockets->admission;
    if (connection->queued)
        return true;
    if (sockets->ready.count >= admission->queue_limit) {
        admission->refused_full++;
        sockets->protocol->operations->overloaded(connection, HEDDLE_QUEUE_FULL);
        return false;
    }
    if (is_filling(sockets) && !(sockets->paused & HEDDLE_PAUSED_BUSY))
        heddle_listeners_pause(sockets, HEDDLE_PAUSED_BUSY);
    return true;
}

void heddle_admission_ease(heddle_sockets *sockets)
{
    if (sockets->ready.count <= sockets->admission.queue_limit / 4)
        heddle_listeners_resume(sockets, HEDDLE_PAUSED_BUSY);
}

void heddle_admission_too_late(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    heddle_ready_list_remove(heddle_connection_list(connection), connection);
    connection->held = false;
    sockets->admission.refused_late++;
    sockets->protocol->operations->overloaded(connection, HEDDLE_QUEUED_TOO_LONG);
    heddle_admission_ease(sockets);
}

void heddle_admission_changed(heddle_sockets *sockets)
{
    if (sockets->closed)
        return;
    heddle_admission_ease(sockets);
    if (sockets->ready.count)
        heddle_runners_call(sockets);
}

void heddle_admission_end_queue(heddle_sockets *sockets)
{
    heddle_connection *connection;
    while ((connection = heddle_ready_list_take(&sockets->ready))) {
        if (heddle_connection_hold(connection))
            sockets->protocol->operations->overloaded(connection, HEDDLE_QUEUE_ENDS);
    }
}
