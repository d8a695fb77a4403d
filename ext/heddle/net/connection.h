#ifndef HEDDLE_CONNECTION_H
#define HEDDLE_CONNECTION_H

/*
 * A connection: a transport, what was read and not used, and where it stands. A record from malloc that holds no
 * Ruby object; while a runner serves it, it points to the handle (the C part of a Heddle::Net::Connection), which
 * exists only as long.
 */

#include "net/address.h"
#include "net/idle_wheel.h"
#include "net/output_queue.h"
#include "net/transport.h"
#include "scheduler/loop.h"

typedef struct heddle_connection heddle_connection;
typedef struct heddle_handle heddle_handle;
typedef struct heddle_sockets heddle_sockets;

struct heddle_connection {
    heddle_transport transport;
    uint32_t slot; /* its place in the table of its Sockets */
    bool queued;   /* on the ready list */
    bool held;     /* … of those that a reserve does not start */
    bool put_off;  /* its output goes out at the beginning of the next turn */
    bool shared;   /* somebody else has its descriptor, too */
    bool untold;   /* what the set has to say of it comes in the next turn */
    bool told;     /* the watch has put it on the list of those */
    uint8_t news;  /* HEDDLE_HAS_INPUT …: what it has heard of it */
    bool secure;   /* its client speaks TLS, to us or to the proxy that says so */
    uint8_t prelude; /* heddle_prelude_stage: what comes before its protocol does */
    _Atomic uint32_t label; /* of the request that whoever takes it finds; 0: nobody has looked. See heddle_handoff */
    heddle_sockets *sockets;
    heddle_connection *next, *previous; /* on the ready list */
    heddle_connection *next_told, *previous_told; /* of those that the watch has news of, or has handed over */
    heddle_idle_entry timed; /* its place in the wheel */
    int64_t deadline;        /* while nobody serves it; < 0: none */
    heddle_handle *handle;   /* NULL while idle */
    char *input;             /* from malloc: what was read and not used, from input_start on */
    uint32_t input_start, input_end, input_room;
    int error; /* what broke it, once the kernel has told; it does so only once */
    heddle_output output;    /* what is to be sent, and could not be yet or was put off */
    heddle_connection *next_unsent, *previous_unsent; /* of those that have some */
    heddle_address remote, local;
    void *state;             /* of the protocol, behind the waiters */
    heddle_waiter waiters[]; /* a set without epoll: reading, writing */
};

typedef enum {
    HEDDLE_READING,
    HEDDLE_WRITING,
} heddle_direction;

/* One fiber that waits for its connection, on that fiber's stack. */
typedef struct {
    heddle_park park;
    heddle_handle *handle;
    heddle_direction direction;
    int64_t deadline;
    bool closed; /* the connection was closed, or given away, while it waited */
} heddle_connection_wait;

struct heddle_handle {
    heddle_connection *connection; /* NULL: idle again, closed or detached */
    heddle_connection_wait *waits[2];
};

/* Of Heddle::Net::Connection; a protocol's own kind of handle begins with this one. */
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

/*
 * Waits until there may be input, or room for output; `deadline` as for heddle_park_until. False: the time is up.
 * Raises interrupts, and IOError when the connection is closed meanwhile; then the record is gone.
 */
bool heddle_connection_wait_for(heddle_handle *handle, heddle_direction direction, int64_t deadline);
/* The parked fibers that have to look again. */
void heddle_connection_wake(heddle_connection *connection, uint8_t ready);
/* Takes handle and record apart; fibers that wait get IOError. */
void heddle_connection_part(heddle_connection *connection);

/* The same as a String, always the same one, or nil. */
VALUE heddle_address_string(const heddle_address *address);

/* Heddle::Net::Connection. */
void Init_heddle_connection(VALUE net);
extern VALUE heddle_connection_class;
VALUE heddle_connection_handle(heddle_connection *connection);
/* The connection; raises when it is served no more, or belongs to another thread. */
heddle_connection *heddle_connection_open(heddle_handle *handle);
/* NULL when it is served no more. */
heddle_connection *heddle_connection_of(VALUE handle);

#endif
