/* The counters of Heddle::Net::Sockets. */

#include "net/sockets_ruby.h"

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

/* Each row has a name and a number. "Item" means a work item: a request or a callback. */
#define COUNTERS(X)                                                                                                    \
    /* Open connections. */                                                                                            \
    X(connections, sockets->connections)                                                                               \
    /* Connections with an item that is being served. */                                                               \
    X(running, sockets->running)                                                                                       \
    /* Items that are being served, including those whose code continues after the response. */                        \
    X(busy, sockets->runners.serving_count)                                                                            \
    /* Items that wait to be served. */                                                                                \
    X(waiting, heddle_rounds_count_waiting(sockets) + sockets->reserve.deferred.count)                                 \
    /* Waiting items that a reserve does not start, because a request with their label blocks a worker. */             \
    X(reserve_deferred, sockets->reserve.deferred.count)                                                               \
    /* How often a reserve has started to serve. */                                                                    \
    X(reserve_activations, sockets->reserve.activations)                                                               \
    /* Items rejected because the queue was full. */                                                                   \
    X(rejected_full, sockets->admission.rejected_full)                                                                 \
    /* Items rejected because they had waited for too long. */                                                         \
    X(rejected_late, sockets->admission.rejected_late)                                                                 \
    /* Connections in transit: they are in a handshake, receive a request, or send the rest of a response, while none  \
     * of their items is being served. Reading this counter examines every connection. */                              \
    X(transit, count_transit(sockets))                                                                                 \
    /* Connections that wait for a request, or to be served. */                                                        \
    X(idle, sockets->connections - sockets->running - count_transit(sockets))                                          \
    /* Connections accepted so far. */                                                                                 \
    X(accepted, sockets->accepted)                                                                                     \
    /* Connections handed off to another process while the loop was blocked, or had too much to do. */                 \
    X(handed_off, atomic_load(&sockets->handoff.sent_count))                                                           \
    /* Connections that another process has handed off to this one. */                                                 \
    X(handoffs_received, sockets->handoffs_received)                                                                   \
    /* Clients that left while their request waited to be served. Also clients that left, or read nothing for too      \
     * long, while the rest of a response was being sent after its item had been served. */                            \
    X(clients_gone, sockets->clients_gone)                                                                             \
    /* Connections closed at once because their address had too many. */                                               \
    X(refused, sockets->refused)                                                                                       \
    /* Connections, mostly idle ones, closed because max_connections was reached and a client waited. */               \
    X(closed_for_others, sockets->closed_for_others)                                                                   \
    /* TLS handshakes that succeeded. */                                                                               \
    X(handshakes, sockets->handshakes)                                                                                 \
    /* TLS handshakes that failed, for example for lack of a common version or cipher. */                              \
    X(failed_handshakes, sockets->failed_handshakes)                                                                   \

#define DEFINE_COUNTER(name, number)                                                                                   \
    static VALUE sockets_##name(VALUE self)                                                                            \
    {                                                                                                                  \
        const heddle_sockets *sockets = heddle_sockets_of(self);                                                       \
        return ULL2NUM(number);                                                                                        \
    }
COUNTERS(DEFINE_COUNTER)

void Init_heddle_sockets_statistics(VALUE class)
{
#define REGISTER_COUNTER(name, number) rb_define_method(class, #name, sockets_##name, 0);
    COUNTERS(REGISTER_COUNTER)
}
