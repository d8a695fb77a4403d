#ifndef HEDDLE_CONNECTION_H
#define HEDDLE_CONNECTION_H

/*
 * A connection: a transport, what was read and not used, what is to be sent, and its protocol with its session. A
 * record from malloc that holds no Ruby object.
 */

#include "net/address.h"
#include "net/due.h"
#include "net/link.h"
#include "net/output_queue.h"
#include "net/transport.h"
#include "scheduler/loop.h"

typedef struct heddle_connection heddle_connection;
typedef struct heddle_handle heddle_handle;
typedef struct heddle_protocol heddle_protocol;
typedef struct heddle_sockets heddle_sockets;
typedef struct heddle_wait heddle_wait;

typedef enum {
    HEDDLE_READING,
    HEDDLE_WRITING,
} heddle_direction;

struct heddle_connection {
    heddle_transport transport;
    uint32_t slot;        /* in the table of its Sockets */
    uint32_t running;     /* work items of it that runners serve */
    bool flush_scheduled; /* its output leaves at the beginning of the next tick */
    bool shared;          /* another process has a copy of its descriptor */
    bool event_pending;   /* a set without epoll: an event that is delivered in the next tick */
    uint8_t watch_events; /* events noted by the watch thread: HEDDLE_HAS_INPUT and so on */
    bool secure;          /* its client speaks TLS, with us or with the proxy that says so */
    uint8_t stage;        /* heddle_handshake_stage, before its protocol */
    uint8_t further;      /* work items that wait in its session for the ready list, at most UINT8_MAX */
    uint8_t turn_left;    /* items that may still follow in its turn */
    _Atomic uint32_t label; /* protocol->label, cached by the watch thread; 0: not asked yet, or unknown */
    uint32_t round;       /* in which a work item of it was last taken */
    heddle_sockets *sockets;
    const heddle_protocol *protocol; /* NULL in the handshake stage */
    void *session;
    heddle_link turn_link;      /* in the queue of handshakes that can go on, or of input_turns.h */
    heddle_link watch_link;     /* of those with watch_events, or that the watch thread has handed off */
    heddle_link unsent_link;    /* of those with output */
    heddle_due due;             /* the protocol's time limit for its next step */
    heddle_handle *handle;      /* the Heddle::Net::Connection, if there is one */
    heddle_wait *waits[2];      /* by heddle_direction: the fiber that waits */
    char *input;                /* from malloc: unused input, from input_start on */
    uint32_t input_start, input_end, input_room;
    int error;               /* errno of what broke it, as the kernel reports it only once */
    heddle_output output;    /* bytes to send */
    heddle_address remote, local;
    heddle_waiter waiters[]; /* a set without epoll: reading, writing */
};

/* A fiber that waits for its connection, on that fiber's stack. */
struct heddle_wait {
    heddle_park park;
    heddle_connection *connection; /* NULL: it was closed or given away meanwhile */
    heddle_direction direction;
    int64_t deadline;
};

/* The C part of a Heddle::Net::Connection. */
struct heddle_handle {
    heddle_connection *connection; /* NULL: idle again, closed or detached */
};

/* The data type of Heddle::Net::Connection. */
extern const rb_data_type_t heddle_handle_type;

/* The one that the client has connected to. */
const heddle_address *heddle_connection_local(heddle_connection *connection);

static inline size_t heddle_connection_buffered(const heddle_connection *connection)
{
    return connection->input_end - connection->input_start;
}

/* The same as a piece of what was read so far; how many pieces that is, 0 or 1. */
static inline int heddle_connection_input_piece(const heddle_connection *connection, struct iovec *piece)
{
    size_t size = heddle_connection_buffered(connection);
    if (!size)
        return 0;
    *piece = (struct iovec){.iov_base = connection->input + connection->input_start, .iov_len = size};
    return 1;
}

/* Room before what is buffered, filled by the caller; raises NoMemoryError. */
char *heddle_connection_push_back(heddle_connection *connection, size_t size);
/* Room for so many bytes behind what is buffered, which may move; NULL without memory. */
char *heddle_connection_room(heddle_connection *connection, size_t size);
void heddle_connection_drop_input(heddle_connection *connection);
/* These many bytes are used up. */
void heddle_connection_use_input(heddle_connection *connection, size_t size);
/*
 * Reads what is there: bytes, 0 at the end of input, -EAGAIN, or what has broken the connection.
 */
ssize_t heddle_connection_receive(heddle_connection *connection, char *memory, size_t size);

typedef enum {
    HEDDLE_WAIT_READY,
    HEDDLE_WAIT_TIMED_OUT,
    HEDDLE_WAIT_GONE, /* the connection was closed or given away; the record may be gone */
} heddle_wait_result;

/*
 * Waits until there may be input, or room for output; `deadline` as for heddle_park_until. Raises interrupts, and
 * IOError when another fiber waits for the same.
 */
heddle_wait_result heddle_connection_wait_for(heddle_connection *connection, heddle_direction direction,
                                              int64_t deadline) __attribute__((warn_unused_result));
/*
 * The same, but raises IO::TimeoutError with these words when the time is up, and IOError when the connection is gone.
 */
void heddle_connection_await(heddle_connection *connection, heddle_direction direction, int64_t deadline,
                             const char *timed_out);
/* Wakes the fibers that have to look again. */
void heddle_connection_wake(heddle_connection *connection, uint8_t ready);
/* Nobody uses the connection through an object any more: fibers that wait get IOError. */
void heddle_connection_part(heddle_connection *connection);

/*
 * Steps of reading and writing that wait, for a fiber that serves the connection. `*place` is the connection, and NULL
 * once that is gone: then they raise IOError. They raise IO::TimeoutError, and what the system says of a broken
 * connection. A `timeout` < 0: none.
 */
VALUE heddle_connection_read_partial(heddle_connection *const *place, long max, int64_t timeout);
/* As an ordinary Ruby socket, which gives what was read and not used first. The record is gone. */
VALUE heddle_connection_detach(heddle_connection *connection);

/* The same as a String, always the same one, or nil. */
VALUE heddle_address_string(const heddle_address *address);

/* Heddle::Net::Connection. */
void Init_heddle_connection(VALUE net);
VALUE heddle_connection_object(heddle_connection *connection);
/* NULL when it is served no more. */
heddle_connection *heddle_connection_of(VALUE object);
/* Raises ThreadError on another thread than its loop's. */
void heddle_connection_check_thread(const heddle_connection *connection);

#endif
