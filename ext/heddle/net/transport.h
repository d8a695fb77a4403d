#pragma once

/*
 * Receives and sends a connection's bytes. The two kinds, plain and TLS, differ in their table of operations. Nothing
 * here waits: an operation that would block returns -EAGAIN. Uses no Ruby.
 */

#include "net/owner.h"

#include <sys/types.h>
#include <sys/uio.h>

typedef struct heddle_transport heddle_transport;
typedef struct heddle_tls heddle_tls;

typedef struct {
    /* Returns the number of bytes, 0 at the end of input, or -errno. */
    ssize_t (*recv)(heddle_transport *transport, void *memory, size_t size);
    /* Returns how many bytes were taken, maybe fewer than offered, or -errno. Never causes a signal. */
    ssize_t (*send)(heddle_transport *transport, const struct iovec *pieces, int count);
    /* Bytes that were read from the socket and not yet returned by recv. */
    size_t (*pending)(heddle_transport *transport);
} heddle_transport_operations;

/* Pending events: reported by the kernel, not yet handled. */
enum {
    HEDDLE_HAS_INPUT = 1,  /* cleared when recv returns less than was asked for */
    HEDDLE_HAS_ROOM = 2,   /* cleared before each send */
    HEDDLE_INPUT_ENDS = 4, /* the peer has sent FIN */
    HEDDLE_HUNG_UP = 8,    /* both directions have ended */
    HEDDLE_BROKEN = 16,    /* a reset or another error */

    HEDDLE_HANG_UP = HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP | HEDDLE_BROKEN, /* at least one direction has ended */
};

/*
 * The wire is the lock for sending on a connection whose protocol has a farewell (net/protocol.h). The watch thread
 * sends the farewell while the loop is blocked. Each send holds whole frames of the protocol, so the wire is OPEN
 * whenever all of it was sent. The loop takes the wire before it uses the transport.
 */
typedef enum {
    /* there is no farewell, or it can't be sent at this point of the output; used by the loop alone */
    HEDDLE_WIRE_PRIVATE,
    HEDDLE_WIRE_OPEN,    /* the thread whose swap succeeds holds it */
    HEDDLE_WIRE_WATCHED, /* the watch thread is sending the farewell, which takes a few microseconds */
} heddle_wire;

struct heddle_transport {
    const heddle_transport_operations *operations;
    int fd;
    _Atomic uint8_t owner; /* heddle_owner */
    _Atomic uint8_t ready; /* HEDDLE_HAS_INPUT … */
    _Atomic uint8_t wire;  /* heddle_wire */
    bool has_farewell;
    _Atomic bool farewell_sent; /* or a part of it */
    heddle_tls *tls;       /* NULL without TLS */
};

extern const heddle_transport_operations heddle_plain_transport;

/* Makes the coming close reset the connection and discard what the kernel still has to send. */
void heddle_transport_will_reset(heddle_transport *transport);

/* A compare-and-swap. Returns false if the owner is not `from`. */
static inline bool heddle_transport_change_owner(heddle_transport *transport, uint8_t from, uint8_t to)
{
    heddle_owner_check(from, to);
    return atomic_compare_exchange_strong(&transport->owner, &from, to);
}

static inline uint8_t heddle_transport_owner(const heddle_transport *transport)
{
    return atomic_load_explicit(&transport->owner, memory_order_acquire);
}

/* The slow path of heddle_transport_lock_wire. */
bool heddle_transport_swap_wire(heddle_transport *transport);

/*
 * Takes the wire for the loop. Returns true if the wire was OPEN: then the caller must open it again, unless a frame is
 * half sent.
 */
static inline bool heddle_transport_lock_wire(heddle_transport *transport)
{
    return transport->has_farewell && heddle_transport_swap_wire(transport);
}

static inline void heddle_transport_unlock_wire(heddle_transport *transport)
{
    if (transport->has_farewell)
        atomic_store_explicit(&transport->wire, HEDDLE_WIRE_OPEN, memory_order_release);
}

static inline void heddle_transport_note(heddle_transport *transport, uint8_t ready)
{
    atomic_fetch_or(&transport->ready, ready);
}

static inline bool heddle_transport_has(const heddle_transport *transport, uint8_t ready)
{
    return atomic_load_explicit(&transport->ready, memory_order_acquire) & ready;
}

/* Usually there is nothing to forget. So this loads first, because a load does not write to the cache line. */
static inline void heddle_transport_forget(heddle_transport *transport, uint8_t ready)
{
    if (heddle_transport_has(transport, ready))
        atomic_fetch_and(&transport->ready, (uint8_t)~ready);
}
