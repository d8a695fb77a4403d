#ifndef HEDDLE_PROTOCOL_H
#define HEDDLE_PROTOCOL_H

/*
 * What is spoken over the connections of a Sockets: what happens with input while nobody serves a connection, when a
 * runner is worth its while, and what that gets to see. The sockets of a worker speak one protocol.
 */

#include "net/admission.h"
#include "net/connection.h"

enum {
    HEDDLE_PIECES_READ = 3,
};

typedef struct {
    const char *name;
    size_t state_size; /* of what each connection carries for it, all zero at first */

    /* All of these but `read_so_far` run in the loop, with the GVL, and never raise. The connection may be gone after the first four, and
     * after `misplaced`. */

    /* Nobody serves the connection, and it may have input, room for output, or have come to its end. */
    void (*event)(heddle_connection *connection);
    /* Nobody serves it, and its deadline has passed. */
    void (*expired)(heddle_connection *connection);
    /* Nobody is going to serve what it has asked for. */
    void (*overloaded)(heddle_connection *connection, heddle_overload why);
    /* Nobody served it before, or a runner has given it back. */
    void (*rest)(heddle_connection *connection);
    /* The sockets stop: may it be closed as it is? */
    bool (*at_rest)(heddle_connection *connection);
    /* What came is not what its listener expects before anything else: says so, and closes it. */
    void (*misplaced)(heddle_connection *connection, const char *reason);
    /*
     * What was read of a request that nobody serves yet, as it came over the wire, so that another process can go on:
     * how many pieces, HEDDLE_PIECES_READ at most, or -1: it is not whole any more. On any thread that owns it, without
     * the GVL.
     */
    int (*read_so_far)(const heddle_connection *connection, struct iovec *pieces);
    /*
     * Hashed, the label of the request that it has asked for, or is about to: what is still the kernel's is looked at,
     * too. 0: not known (yet). NULL: there are no labels. On any thread that owns it, without the GVL.
     */
    uint32_t (*label)(heddle_connection *connection);
    /* It is closed or detached: frees what its state holds. */
    void (*release)(heddle_connection *connection);

    /* In the runner that has taken it: what the block is called with. May raise. */
    VALUE (*object)(heddle_connection *connection);
    /* The block has returned, or raised; never raises. */
    void (*served)(VALUE object);
    /* For a person, an Array or nil; NULL: nothing can be said of it. On any thread. */
    VALUE (*describe)(VALUE object);
} heddle_protocol_operations;

/* The C part of the Ruby object that a Sockets was given as its protocol; it may outlive that object. */
typedef struct heddle_protocol heddle_protocol;
struct heddle_protocol {
    const heddle_protocol_operations *operations;
    void (*free)(heddle_protocol *protocol); /* NULL: static */
    size_t holders;                          /* its Ruby object, and each Sockets */
};

static inline void heddle_protocol_hold(heddle_protocol *protocol)
{
    protocol->holders++;
}

static inline void heddle_protocol_let_go(heddle_protocol *protocol)
{
    if (--protocol->holders == 0 && protocol->free)
        protocol->free(protocol);
}

/* The parent of its data type. */
extern const rb_data_type_t heddle_protocol_type;

/* Bytes as they come: whatever is readable is worth a runner. */
extern heddle_protocol heddle_raw_protocol;

/* What the protocol keeps for this connection. */
static inline void *heddle_connection_state(heddle_connection *connection)
{
    return connection->state;
}

#endif
