#pragma once

/*
 * A connection that this process has opened. It has the same transport as the server's connections, but belongs to no
 * loop and no thread. Its callers may run in a Heddle loop, under another scheduler or in a plain thread.
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

/* Did the peer itself end its output? Over TLS this requires close_notify, because an attacker can forge a FIN. */
bool heddle_outbound_ended_properly(const heddle_outbound *connection);

/*
 * Has the peer of this idle connection closed it, or sent something unexpected? True if the next receive would return
 * at once.
 */
bool heddle_outbound_is_stale(heddle_outbound *connection);

/*
 * Waits for input, until the connection's deadline and at most for `timeout` ns (< 0: no limit). Raises
 * IO::TimeoutError with this message, IOError when the connection is closed meanwhile, and any interrupt of this fiber
 * or thread.
 */
void heddle_outbound_await_input(VALUE object, int64_t timeout, const char *timeout_message);

/*
 * Waits for one of these events, and returns the events that have come. `call_deadline`: a deadline for this call
 * alone, CLOCK_MONOTONIC ns, < 0: none. Raises as heddle_outbound_await_input does.
 */
int heddle_outbound_await(VALUE object, int events, int64_t call_deadline, const char *timeout_message);

/*
 * Sends a String or an Array of Strings; `timeout` (ns, < 0: none) limits the time in which the peer takes nothing.
 * With `stop_at_input`, stops early when the peer takes no more and has sent something. Returns how many bytes were
 * sent.
 */
size_t heddle_outbound_send_all(VALUE object, VALUE data, int64_t timeout, bool stop_at_input);

/* Raises the SystemCallError of a failed receive. */
NORETURN(void heddle_outbound_fail(heddle_outbound *connection, ssize_t error, const char *doing));

void Init_heddle_outbound(VALUE net);
