#pragma once

/*
 * A connection that this process has opened. It has the same transport as the server's connections, but belongs to no
 * loop and no thread: it waits in the way of its caller, which may run in a Heddle loop, under another scheduler or in
 * a plain thread.
 */

#include "net/address.h"
#include "net/owned_socket.h"
#include "net/tls.h"
#include "net/transport.h"
#include "selector/bytes.h"

typedef struct {
    heddle_transport transport;
    heddle_tls *tls_list;     /* its TLS record, which holds the SSLSocket; NULL: plain */
    heddle_owned_socket owned;
    heddle_bytes input;       /* received and not used yet */
    uint64_t sent, received;  /* bytes of the application, without TLS's */
    int64_t deadline;         /* CLOCK_MONOTONIC ns, over all waits; < 0: none */
    heddle_address remote;
} heddle_outbound;

static inline size_t heddle_outbound_buffered(const heddle_outbound *connection)
{
    return heddle_bytes_left(&connection->input);
}

static inline char *heddle_outbound_input(const heddle_outbound *connection)
{
    return connection->input.bytes + connection->input.start;
}

/* The record of a Heddle::Net::OutboundConnection; raises IOError once it is closed. */
heddle_outbound *heddle_outbound_of(VALUE object);
void heddle_outbound_use_input(heddle_outbound *connection, size_t size);

/*
 * Both functions receive without waiting, and return the number of bytes, 0 at the end of input, -EAGAIN or another
 * -errno. The first one receives into `memory`; the second one makes room for `size` bytes behind the unused input.
 */
ssize_t heddle_outbound_receive(heddle_outbound *connection, void *memory, size_t size);
ssize_t heddle_outbound_fill(heddle_outbound *connection, size_t size);

/*
 * Did the peer end its output properly, over TLS by close_notify? Without close_notify an attacker may have ended it.
 */
bool heddle_outbound_ended_properly(const heddle_outbound *connection);

/*
 * Would the next receive return at once? For an idle connection that means that the peer has closed it or sent
 * something unexpected.
 */
bool heddle_outbound_is_stale(heddle_outbound *connection);

/*
 * Waits for input, until the connection's deadline and at most for `timeout` ns (< 0: no limit). Raises
 * IO::TimeoutError with this message, IOError when the connection is closed meanwhile, and the interrupts of any wait
 * of this fiber or thread.
 */
void heddle_outbound_await_input(VALUE object, int64_t timeout, const char *timeout_message);

/*
 * Waits for one of these events, and returns the events that have come. `phase`: the deadline of this step,
 * CLOCK_MONOTONIC ns, < 0: none. Raises as heddle_outbound_await_input does.
 */
int heddle_outbound_await(VALUE object, int events, int64_t phase, const char *timeout_message);

/*
 * Sends a String or an Array of Strings; `timeout` (ns, < 0: none) is the longest time in which the peer takes nothing.
 * Returns how many bytes were sent. With `stop_at_input`, that may be fewer than all: it stops when the peer has sent
 * something and takes no more.
 */
size_t heddle_outbound_send_all(VALUE object, VALUE data, int64_t timeout, bool stop_at_input);

/* Raises the SystemCallError of a failed receive. */
NORETURN(void heddle_outbound_fail(heddle_outbound *connection, ssize_t error, const char *doing));

void Init_heddle_outbound(VALUE net);
