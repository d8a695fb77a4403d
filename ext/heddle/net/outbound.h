#ifndef HEDDLE_OUTBOUND_H
#define HEDDLE_OUTBOUND_H

/*
 * A connection that this process has opened. It has the transport of the server's connections, but belongs to no loop
 * and no thread: a wait uses the caller's environment: a Heddle loop, another scheduler, or a thread.
 */

#include "net/address.h"
#include "net/fork_guard.h"
#include "net/tls.h"
#include "net/transport.h"

#include <ruby.h>

typedef struct {
    heddle_transport transport;
    heddle_tls *tls_list;     /* the record of its TLS, which holds the SSLSocket; NULL: plain */
    heddle_fork_guard guard;  /* a child's copy of the descriptor is replaced by one of /dev/null */
    VALUE io;                 /* the Socket, which owns the descriptor; nil once closed */
    bool abandoned;           /* this is a child process, the connection is its parent's */
    char *input;              /* from malloc: received and not used, from input_start on */
    size_t input_start, input_end, input_room;
    uint64_t sent, received;  /* bytes of the application */
    int64_t deadline;         /* CLOCK_MONOTONIC ns, for all waits together; < 0: none */
    heddle_address remote;
} heddle_outbound;

static inline size_t heddle_outbound_buffered(const heddle_outbound *connection)
{
    return connection->input_end - connection->input_start;
}

static inline char *heddle_outbound_input(const heddle_outbound *connection)
{
    return connection->input + connection->input_start;
}

/* Of a Heddle::Net::OutboundConnection; raises IOError once it is closed. */
heddle_outbound *heddle_outbound_of(VALUE object);
void heddle_outbound_use_input(heddle_outbound *connection, size_t size);

/*
 * Receives without a wait: bytes, 0 at the end of input, -EAGAIN or -errno. The first into `memory`, the second behind
 * what is buffered, with room for `size` bytes.
 */
ssize_t heddle_outbound_receive(heddle_outbound *connection, void *memory, size_t size);
ssize_t heddle_outbound_fill(heddle_outbound *connection, size_t size);

/* Did the peer say that its output ends, where TLS lets it? Without, an end of input may be anybody's cut. */
bool heddle_outbound_ended_properly(const heddle_outbound *connection);

/* Whether the next receive would return at once. An idle connection must have nothing to read: false. */
bool heddle_outbound_is_stale(heddle_outbound *connection);

/*
 * Waits for input; `timeout` in ns, < 0: none, and the connection's deadline. Raises IO::TimeoutError with these words,
 * IOError when the connection is closed meanwhile, and what any wait of this fiber or thread raises.
 */
void heddle_outbound_await_input(VALUE object, int64_t timeout, const char *timed_out);

/*
 * Waits until one of these events has come: which. `phase`: the deadline of this step, CLOCK_MONOTONIC ns, < 0: none.
 * Raises as heddle_outbound_await_input does.
 */
int heddle_outbound_await(VALUE object, int events, int64_t phase, const char *timed_out);

/*
 * Sends a String or an Array of Strings; `timeout` in ns, < 0: none, in which the peer must take some of it. How much
 * was sent: less than all only where `stop_at_input` says so, when the peer has sent something and takes no more.
 */
size_t heddle_outbound_send_all(VALUE object, VALUE data, int64_t timeout, bool stop_at_input);

/* Raises the SystemCallError of a receive that has failed. */
NORETURN(void heddle_outbound_fail(heddle_outbound *connection, ssize_t error, const char *doing));

void Init_heddle_outbound(VALUE net);

#endif
