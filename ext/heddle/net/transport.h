#pragma once

/*
 * A transport receives and sends a connection's bytes. The two kinds, plain and TLS, differ in their tables of
 * operations. None of the functions waits: an operation that would block returns -EAGAIN. Uses no Ruby.
 */

#include "net/owner.h"

#include <sys/types.h>
#include <sys/uio.h>

typedef struct heddle_transport heddle_transport;
typedef struct heddle_tls heddle_tls;

typedef struct {
    /* Receives bytes. Returns their number, 0 at the end of the input, or -errno. */
    ssize_t (*recv)(heddle_transport *transport, void *memory, size_t size);
    /* Sends bytes. Returns how many the kernel has accepted, perhaps not all, or -errno. Never raises SIGPIPE. */
    ssize_t (*send)(heddle_transport *transport, const struct iovec *pieces, int count);
    /* Returns how many bytes were read from the socket and not yet returned by recv. */
    size_t (*pending)(heddle_transport *transport);
} heddle_transport_operations;

/* Events that the kernel has reported and that are not handled yet. */
enum {
    HEDDLE_HAS_INPUT = 1,  /* cleared before each recv, and set again if recv fills the whole memory */
    HEDDLE_HAS_ROOM = 2,   /* cleared before each send */
    HEDDLE_INPUT_ENDS = 4, /* the peer has sent FIN */
    HEDDLE_HUNG_UP = 8,    /* both directions have ended */
    HEDDLE_BROKEN = 16,    /* a reset or another error */

    HEDDLE_HANG_UP = HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP | HEDDLE_BROKEN, /* at least one direction has ended */
};

/*
 * The wire is the lock for sending on a connection whose protocol has a farewell (net/protocol.h). While the loop is
 * blocked, the watch thread sends the farewell, which must come between two frames of the protocol. So the wire is OPEN
 * only while no frame is partly sent. The loop locks the wire before it uses the transport. After the loop has begun to
 * send, it opens the wire again only when all of its output, which consists of whole frames, is sent.
 */
typedef enum {
    /*
     * The loop is using the transport, a frame is partly sent, or there is no farewell. Only the loop may use the
     * transport.
     */
    HEDDLE_WIRE_PRIVATE,
    HEDDLE_WIRE_OPEN,    /* the thread whose compare-and-swap succeeds locks the wire */
    HEDDLE_WIRE_WATCHED, /* the watch thread is sending the farewell, for a few microseconds */
} heddle_wire;

struct heddle_transport {
    const heddle_transport_operations *operations;
    int fd;
    _Atomic uint8_t owner; /* a heddle_owner */
    _Atomic uint8_t ready; /* HEDDLE_HAS_INPUT … */
    _Atomic uint8_t wire;  /* a heddle_wire */
    bool has_farewell;
    _Atomic bool farewell_sent; /* the farewell, or a part of it, was sent */
    heddle_tls *tls;       /* NULL without TLS */
};

extern const heddle_transport_operations heddle_plain_transport;

/* Makes the next close reset the connection and discard the output that the kernel has not sent. */
void heddle_transport_will_reset(heddle_transport *transport);

/* Changes the owner by compare-and-swap. Returns false if the owner is not `from`. */
static inline bool heddle_transport_change_owner(heddle_transport *transport, uint8_t from, uint8_t to)
{
    HEDDLE_ASSERT(heddle_owner_may_change(from, to));
    return atomic_compare_exchange_strong(&transport->owner, &from, to);
}

static inline uint8_t heddle_transport_owner(const heddle_transport *transport)
{
    return atomic_load_explicit(&transport->owner, memory_order_acquire);
}

/* The slow path of heddle_transport_lock_wire. */
bool heddle_transport_swap_wire(heddle_transport *transport);

/*
 * Locks the wire for the loop. Returns true if the wire was OPEN. Then the caller must unlock it again, unless a frame
 * is partly sent.
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

/*
 * Clears pending events. Usually none is pending. So this function first loads the word: unlike the atomic change, a
 * load does not write to the cache line.
 */
static inline void heddle_transport_forget(heddle_transport *transport, uint8_t ready)
{
    if (heddle_transport_has(transport, ready))
        atomic_fetch_and(&transport->ready, (uint8_t)~ready);
}
