#pragma once

/*
 * A connection consists of a transport (plain or TLS), unused input, queued output, and its protocol with its session.
 * The record is allocated without Ruby, and has no VALUE among its members.
 */

#include "net/address.h"
#include "net/deadlines.h"
#include "net/link.h"
#include "net/output_queue.h"
#include "net/prefetch.h"
#include "net/transport.h"
#include "scheduler/slot_wait.h"
#include "selector/bytes.h"

typedef struct heddle_connection heddle_connection;
typedef struct heddle_protocol heddle_protocol;
typedef struct heddle_sockets heddle_sockets;

typedef enum {
    HEDDLE_READING,
    HEDDLE_WRITING,
} heddle_direction;

struct heddle_connection {
    /* The members that a pub/sub broadcast reads come first, so that they are in few cache lines. */
    heddle_transport transport;
    heddle_sockets *sockets;
    const heddle_protocol *protocol; /* NULL in the handshake stage */
    void *session;
    heddle_output output; /* bytes to send */
    uint32_t slot;        /* its index in the table of heddle_sockets */
    uint32_t running;     /* the number of its work items that runners (pooled fibers) serve now */
    bool flush_scheduled; /* its queued output will be sent at the beginning of the next tick */
    bool shared;          /* another process may have a copy of its descriptor */
    bool event_pending;   /* without epoll: an event will be delivered in the next tick */
    uint8_t watch_events; /* events noted by the watch thread: HEDDLE_HAS_INPUT and so on */
    uint8_t late_events;  /* events that will be delivered in its turn, together with all later events (io_turns.h) */
    bool secure;          /* its client uses TLS: to this server, or to a proxy, according to the PROXY header */
    uint8_t stage;        /* heddle_handshake_stage; used before its protocol begins */
    uint8_t further;      /* how many work items its session has besides the ready one (work_turn_length.h) */
    uint8_t turn_left;    /* how many more items its current turn may serve (work_rounds.h) */
    uint8_t turn;         /* the queue of io_turns.h in which it waits: a heddle_turn */
    uint16_t address_bucket; /* the index of its address's record + 1 (heddle_address_count); 0: it is not counted */
    _Atomic uint32_t label; /* its protocol's `label`, cached by the watch thread; 0: not read yet, or unknown */
    uint32_t round;       /* the round in which one of its items was last served (work_rounds.h) */
    heddle_link turn_link;      /* in its address's list of handshakes, or in a queue of io_turns.h */
    heddle_link watch_link;     /* in `notified` of heddle_handoff */
    heddle_link unsent_link;    /* in the list of connections with unsent output */
    heddle_due due;             /* the time limit of its protocol's current step */
    heddle_wait *waits[2];      /* the fibers that wait for it; the index is a heddle_direction */
    heddle_bytes input;         /* unused input */
    int64_t watched_since;   /* when the current measurement of slow_readers.c began, CLOCK_MONOTONIC in ns */
    int64_t watched_taken;   /* how many bytes the client had acknowledged when the measurement began */
    uint32_t watched_check;  /* the number of the last check that has measured the connection; 0: none */
    int error;               /* the errno of the first failure; the kernel reports it only once */
    heddle_address remote, local;
    heddle_waiter waiters[]; /* without epoll: one for reading and one for writing */
};

/* Returns the address to which the client has connected. */
const heddle_address *heddle_connection_local(heddle_connection *connection);

/* Prefetches the members that are read when output is sent. */
static inline void heddle_connection_prefetch(const heddle_connection *connection)
{
    heddle_prefetch(connection, offsetof(heddle_connection, slot));
}

/* Sets `piece` to the unused input. Returns the number of pieces, 0 or 1. */
static inline int heddle_connection_input_piece(const heddle_connection *connection, struct iovec *piece)
{
    size_t size = heddle_bytes_left(&connection->input);
    if (!size)
        return 0;
    *piece = (struct iovec){.iov_base = heddle_bytes_first(&connection->input), .iov_len = size};
    return 1;
}

/*
 * Receives without waiting. Returns the number of bytes, 0 at the end of the input, -EAGAIN if there is no input yet,
 * or the -errno of a broken connection.
 */
ssize_t heddle_connection_receive(heddle_connection *connection, char *memory, size_t size);

/* -- linger.c ------------------------------------------------------------------------------------------------------ */

/*
 * Begins to linger: ends the output, discards the buffered input, and sets the time limit to `timeout` ns. The server
 * then continues to read for a moment, so that the client can receive the last response; closing at once could reset
 * the connection. Returns false if the connection can't linger, or if `timeout` is 0.
 */
bool heddle_linger_begin(heddle_connection *connection, int64_t timeout);
/*
 * Receives and discards input, at most `reads` times, and adds the number of bytes to `*discarded`. Returns -EAGAIN if
 * the connection waits for more input, or > 0 if more may have arrived already. Returns another value if the connection
 * can be closed: the client has ended its side or has sent `limit` bytes, or the connection is broken.
 */
ssize_t heddle_linger_read(heddle_connection *connection, uint64_t *discarded, uint64_t limit, unsigned reads);

/*
 * Lets the calling fiber wait until there may be input (HEDDLE_READING) or room for output (HEDDLE_WRITING). `deadline`
 * is as for heddle_park_set_deadline. Raises interrupts of the fiber, and IOError if another fiber already waits for
 * the same direction.
 */
heddle_wait_result heddle_connection_wait_for(heddle_connection *connection, heddle_direction direction,
                                              int64_t deadline) __attribute__((warn_unused_result));
/*
 * Waits like heddle_connection_wait_for. Raises IO::TimeoutError with this message after the deadline, and IOError if
 * the connection was closed.
 */
void heddle_connection_wait_or_raise(heddle_connection *connection, heddle_direction direction, int64_t deadline,
                                     const char *timeout_message);
/* Wakes the fibers that wait for one of these events. */
void heddle_connection_wake(heddle_connection *connection, uint8_t ready);
/* Ends all waits for the connection: heddle_connection_wait_for returns HEDDLE_WAIT_CLOSED in the waiting fibers. */
void heddle_connection_drop_waits(heddle_connection *connection);

/* Returns the address as a String, or nil if it is unknown. Returns the same object for equal addresses. */
VALUE heddle_address_string(const heddle_address *address);

/* Raises ThreadError unless the calling thread is the thread of the connection's loop. */
void heddle_connection_check_thread(const heddle_connection *connection);
