#pragma once

/*
 * A carrier transports the bytes of a push session (a WebSocket or an event stream). It is the connection of an
 * HTTP/1.1 request, after the head of the response (h1_carrier.c), or a stream of HTTP/2 (h2_carrier.c). The
 * session calls these operations with the GVL. Only is_free and wait_for_room raise. The carrier calls the framing's
 * `feed`, heddle_push_handle_drained and heddle_push_stop_carrier while the session is held (heddle_push_hold), and
 * heddle_push_handle_deadline.
 */

#include "http/exchange_ruby.h"

typedef struct heddle_push_session heddle_push_session;

typedef struct {
    const heddle_exchange_operations *exchanges; /* the operations of the exchanges that this carrier continues */
    /*
     * Was the request read completely, and is no fiber writing? Over HTTP/2, raises ClientGoneError if the stream has
     * ended. The caller has checked the connection (heddle_exchange_writable_connection).
     */
    bool (*is_free)(const heddle_exchange_handle *exchange);
    /*
     * Allocates the carrier's own record of the session. Returns false when out of memory. NULL if the carrier has no
     * record.
     */
    bool (*prepare)(heddle_push_session *session);
    /*
     * Ends the exchange and begins the session. `status`: the response's status; `early`: frames that the client has
     * sent with the request over HTTP/2, a String or nil.
     */
    void (*begin)(heddle_push_session *session, heddle_exchange_handle *exchange, int status, VALUE early);
    /*
     * Queues `bytes`, and then `string` unless it is 0. A String longer than HEDDLE_OUTPUT_COPIED is not copied, so it
     * must be frozen. The loop sends the output in its next tick at the latest. Returns false when out of memory; then
     * the output ends within a frame. May be called on any thread.
     */
    bool (*write)(heddle_push_session *session, const char *bytes, size_t size, VALUE string);
    /*
     * Sends as much of a frame as possible at once, and queues the rest; over HTTP/2 only queues the frame. Returns
     * false if the carrier is broken, or when out of memory. Called in the loop.
     */
    bool (*send)(heddle_push_session *session, VALUE frame);
    /* The number of queued bytes. May be called on any thread. */
    size_t (*pending)(const heddle_push_session *session);
    /* Are more bytes queued than `limit`, or than the carrier allows? May be called on any thread. */
    bool (*is_full)(const heddle_push_session *session, uint64_t limit);
    /*
     * Sends as much as possible now. Returns 0 if nothing is left, -EAGAIN if output is left, or another -errno if the
     * carrier is broken.
     */
    int (*flush)(heddle_push_session *session);
    /*
     * Reads until there is no more input, the session has ended, or the connection's turn is over. Pauses the session
     * if heddle_push_must_pause returns true.
     */
    void (*read)(heddle_push_session *session);
    /*
     * Called when the last frame is queued. Sends the rest, and ends the output. Then discards input until the client
     * has ended its side, has sent too much, or linger_timeout has passed. An event stream over HTTP/1.1 is closed as
     * soon as the rest is sent.
     */
    void (*end)(heddle_push_session *session);
    /* Stops sending and reading. With `abrupt`, the client sees that frames are missing. */
    void (*stop)(heddle_push_session *session, bool abrupt);
    /* Closes the connection or the stream. This calls heddle_push_drop_carrier. */
    void (*close)(heddle_push_session *session);
    /* Sets the time (coarse clock, ns) at which heddle_push_handle_deadline is called; < 0: never. */
    void (*set_deadline)(heddle_push_session *session, int64_t at);
    /*
     * Blocks the calling fiber until some output was sent. Returns false if the carrier has ended. May raise, for
     * example when the fiber is cancelled.
     */
    bool (*wait_for_room)(heddle_push_session *session);
    /* Wakes the fiber that waits in wait_for_room. */
    void (*wake_writer)(heddle_push_session *session);
} heddle_push_carrier;

extern const heddle_push_carrier heddle_push_h1_carrier, heddle_push_h2_carrier;

/* Returns the carrier that can continue this open exchange. */
const heddle_push_carrier *heddle_push_carrier_of(const heddle_exchange_handle *exchange);
