#ifndef HEDDLE_TRANSPORT_H
#define HEDDLE_TRANSPORT_H

/*
 * Where a connection's bytes come from and go to. The kinds differ in their table of operations; a plain one is a
 * stream socket. Nothing here waits: an operation that would block returns -EAGAIN. No Ruby here.
 */

#include "net/owner.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct heddle_transport heddle_transport;
typedef struct heddle_tls heddle_tls;

typedef struct {
    const char *name;
    /* Bytes, 0 at the end of input, or -errno. */
    ssize_t (*recv)(heddle_transport *transport, void *memory, size_t size);
    /* Bytes taken, maybe fewer than offered, or -errno; never a signal. */
    ssize_t (*send)(heddle_transport *transport, const struct iovec *pieces, int count);
    /* Bytes that were taken from the socket and not handed out by recv. */
    size_t (*pending)(heddle_transport *transport);
    /* Ends the output; the input goes on. 0 or -errno. */
    int (*shutdown)(heddle_transport *transport);
    /* Gives up the descriptor without closing it; the transport is over. */
    int (*detach)(heddle_transport *transport);
} heddle_transport_operations;

/* Pending events: reported by the kernel, not yet used up. */
enum {
    HEDDLE_HAS_INPUT = 1,  /* cleared by a recv that took less than it could */
    HEDDLE_HAS_ROOM = 2,   /* cleared before each send */
    HEDDLE_INPUT_ENDS = 4, /* the peer has sent FIN */
    HEDDLE_HUNG_UP = 8,    /* both directions are over */
    HEDDLE_BROKEN = 16,    /* a reset or another error */
};

/*
 * The lock for writing to a connection whose protocol has a farewell (net/protocol.h): the watch thread sends it while
 * the loop is held up. Each send holds whole frames of the protocol, so the wire is open whenever all of it is sent.
 * The loop takes it before it touches the transport.
 */
typedef enum {
    HEDDLE_WIRE_PRIVATE, /* there is no farewell, or it would not stand at a boundary; the loop's alone */
    HEDDLE_WIRE_OPEN,    /* the thread that swaps it first holds it */
    HEDDLE_WIRE_WATCHED, /* the watch thread writes to it, or has: a few microseconds */
} heddle_wire;

struct heddle_transport {
    const heddle_transport_operations *operations;
    int fd;
    _Atomic uint8_t owner; /* heddle_owner */
    _Atomic uint8_t ready; /* HEDDLE_HAS_INPUT … */
    _Atomic uint8_t wire;  /* heddle_wire */
    bool has_farewell;
    _Atomic bool farewell_sent;
    heddle_tls *tls;       /* NULL where nothing is encrypted */
};

extern const heddle_transport_operations heddle_plain_transport;

/* When it is closed, the peer gets a reset, and what the kernel still has for it is thrown away. */
void heddle_transport_will_reset(heddle_transport *transport);

/* Compare-and-swap: false when the owner is another one than `from`. */
static inline bool heddle_transport_change_owner(heddle_transport *transport, uint8_t from, uint8_t to)
{
    heddle_owner_check(from, to);
    return atomic_compare_exchange_strong(&transport->owner, &from, to);
}

static inline uint8_t heddle_transport_owner(const heddle_transport *transport)
{
    return atomic_load_explicit(&transport->owner, memory_order_acquire);
}

/* The slow way of heddle_transport_acquire_wire. */
bool heddle_transport_swap_wire(heddle_transport *transport);

/*
 * The loop is about to use the transport. Was the wire open? Then the caller opens it again when nothing is half sent.
 */
static inline bool heddle_transport_acquire_wire(heddle_transport *transport)
{
    return transport->has_farewell && heddle_transport_swap_wire(transport);
}

static inline void heddle_transport_open_wire(heddle_transport *transport)
{
    if (transport->has_farewell)
        atomic_store_explicit(&transport->wire, HEDDLE_WIRE_OPEN, memory_order_release);
}

static inline void heddle_transport_note(heddle_transport *transport, uint8_t ready)
{
    atomic_fetch_or(&transport->ready, ready);
}

static inline void heddle_transport_forget(heddle_transport *transport, uint8_t ready)
{
    atomic_fetch_and(&transport->ready, (uint8_t)~ready);
}

static inline bool heddle_transport_has(const heddle_transport *transport, uint8_t ready)
{
    return atomic_load_explicit(&transport->ready, memory_order_acquire) & ready;
}

#endif
