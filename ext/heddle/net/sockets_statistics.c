/* Heddle::Net::Sockets: counters. */

#include "net/sockets_ruby.h"

#define COUNTER(name, expression)                                                                                     \
    static VALUE sockets_##name(VALUE self)                                                                           \
    {                                                                                                                 \
        heddle_sockets *sockets = heddle_sockets_of(self);                                                            \
        return ULL2NUM(expression);                                                                                   \
    }

/* Open connections. */
COUNTER(connections, sockets->connections)

/* Connections for which the block runs now. */
COUNTER(running, sockets->running)

/* The number of running blocks, including those that go on after their response. */
COUNTER(busy, sockets->runners.serving_count)

/* Items that wait to be served. */
COUNTER(waiting, heddle_rounds_count_waiting(sockets) + sockets->reserve.deferred.count)

/* Of these, items that a reserve does not start, because their label holds up a worker. */
COUNTER(reserve_deferred, sockets->reserve.deferred.count)

/* How often a reserve has started to serve. */
COUNTER(reserve_activations, sockets->reserve.activations)

/* Work items rejected because the queue was full. */
COUNTER(rejected_full, sockets->admission.rejected_full)

/* Work items rejected because they had waited for too long. */
COUNTER(rejected_late, sockets->admission.rejected_late)

static size_t count_transit(const heddle_sockets *sockets)
{
    size_t count = 0;
    for (uint32_t i = 0; i < sockets->slot_count; i++) {
        const heddle_connection *connection = sockets->slots[i].connection;
        if (!connection || connection->running)
            continue;
        const heddle_protocol *protocol = connection->protocol;
        count += protocol ? protocol->is_in_transit && protocol->is_in_transit(connection)
                          : !heddle_handshake_is_idle(connection);
    }
    return count;
}

/*
 * Connections in transit: they receive a request, or send the rest of a response, while no block runs for them. Looks
 * at every connection.
 */
COUNTER(transit, count_transit(sockets))

/* Connections that wait for a request, or to be served. */
COUNTER(idle, sockets->connections - sockets->running - count_transit(sockets))

/* Connections accepted so far. */
COUNTER(accepted, sockets->accepted)

/* Connections handed off to another process while the loop was held up, or had too much to do. */
COUNTER(handed_off, atomic_load(&sockets->handoff.sent_count))

/* Connections that another process has handed off to this one. */
COUNTER(handoffs_received, sockets->handoffs_received)

/*
 * Connections whose peer left, or took nothing for too long, while the response was still being sent and the block had
 * returned.
 */
COUNTER(clients_gone, sockets->clients_gone)

/* Connections closed at once because their address had too many. */
COUNTER(refused, sockets->refused)

/* Idle connections closed because max_connections was reached and others waited. */
COUNTER(closed_for_others, sockets->closed_for_others)

/* TLS handshakes that succeeded. */
COUNTER(handshakes, sockets->handshakes)

/* TLS handshakes that failed: a client without a common version or cipher, a scanner. */
COUNTER(failed_handshakes, sockets->failed_handshakes)

void Init_heddle_sockets_statistics(VALUE sockets_class)
{
    rb_define_method(sockets_class, "connections", sockets_connections, 0);
    rb_define_method(sockets_class, "running", sockets_running, 0);
    rb_define_method(sockets_class, "busy", sockets_busy, 0);
    rb_define_method(sockets_class, "waiting", sockets_waiting, 0);
    rb_define_method(sockets_class, "reserve_deferred", sockets_reserve_deferred, 0);
    rb_define_method(sockets_class, "reserve_activations", sockets_reserve_activations, 0);
    rb_define_method(sockets_class, "rejected_full", sockets_rejected_full, 0);
    rb_define_method(sockets_class, "rejected_late", sockets_rejected_late, 0);
    rb_define_method(sockets_class, "transit", sockets_transit, 0);
    rb_define_method(sockets_class, "idle", sockets_idle, 0);
    rb_define_method(sockets_class, "accepted", sockets_accepted, 0);
    rb_define_method(sockets_class, "handed_off", sockets_handed_off, 0);
    rb_define_method(sockets_class, "handoffs_received", sockets_handoffs_received, 0);
    rb_define_method(sockets_class, "clients_gone", sockets_clients_gone, 0);
    rb_define_method(sockets_class, "refused", sockets_refused, 0);
    rb_define_method(sockets_class, "closed_for_others", sockets_closed_for_others, 0);
    rb_define_method(sockets_class, "handshakes", sockets_handshakes, 0);
    rb_define_method(sockets_class, "failed_handshakes", sockets_failed_handshakes, 0);
}
