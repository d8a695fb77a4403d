#pragma once

/*
 * A connection that this process has opened to a server. It has the same kind of transport as the connections of
 * clients, but belongs to no loop and no thread. Its callers may run in a Heddle loop, under another fiber scheduler or
 * in a plain thread.
 */

#include "net/address.h"
#include "net/owned_socket.h"
#include "net/tls.h"
#include "net/transport.h"
#include "selector/bytes.h"

typedef struct {
    heddle_transport transport;
    heddle_tls *tls_list;     /* its TLS record, which refers to the SSLSocket; NULL: no TLS */
    heddle_owned_socket owned;
    heddle_bytes input;       /* input that was received and not used yet */
    uint64_t sent, received;  /* bytes of the application's data, without the overhead of TLS */
    int64_t deadline;         /* the deadline of all waits, CLOCK_MONOTONIC in ns; < 0: no deadline */
    heddle_address remote;
} heddle_outbound;

/* Returns the record of a Heddle::Net::OutboundConnection. Raises IOError if it is closed. */
heddle_outbound *heddle_outbound_of(VALUE object);

/*
 * Both functions receive without waiting. They return the number of bytes, 0 at the end of the input, -EAGAIN or
 * another -errno. The first one receives into `memory`. The second one appends up to `size` bytes to the unused input.
 */
ssize_t heddle_outbound_receive(heddle_outbound *connection, void *memory, size_t size);
ssize_t heddle_outbound_fill(heddle_outbound *connection, size_t size);

/*
 * Returns whether the peer itself has ended its output. With TLS this requires close_notify, because an attacker can
 * forge a FIN.
 */
bool heddle_outbound_ended_properly(const heddle_outbound *connection);

/*
 * Returns whether this idle connection is unusable: the peer has closed it, or has sent something unexpected. A usable
 * connection is one whose next receive would return -EAGAIN.
 */
bool heddle_outbound_is_stale(heddle_outbound *connection);

/*
 * Waits for input, but not beyond the connection's deadline, and for at most `timeout` ns (< 0: no limit). Raises
 * IO::TimeoutError with this message when either limit is reached, IOError if the connection is closed meanwhile, and
 * any interrupt of this fiber or thread.
 */
void heddle_outbound_await_input(VALUE object, int64_t timeout, const char *timeout_message);

/*
 * Waits for one of these events, and returns the events that have come. `call_deadline` is an additional deadline for
 * this call, CLOCK_MONOTONIC in ns (< 0: none). Raises the same errors as heddle_outbound_await_input.
 */
int heddle_outbound_await(VALUE object, int events, int64_t call_deadline, const char *timeout_message);

/*
 * Sends a String or an Array of Strings. Raises IO::TimeoutError if the peer reads nothing for `timeout` ns (< 0: no
 * limit), or at the connection's deadline. With `stop_at_input`, stops early if the kernel accepts no more output and
 * the peer has sent something or has ended its output. Returns the number of bytes that were sent.
 */
size_t heddle_outbound_send_all(VALUE object, VALUE data, int64_t timeout, bool stop_at_input);

/* Raises the error of a failed receive or send. `doing` describes the operation in the message. */
NORETURN(void heddle_outbound_fail(heddle_outbound *connection, ssize_t error, const char *doing));

void Init_heddle_outbound(VALUE net);
