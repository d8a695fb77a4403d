#pragma once

/*
 * The carrier of a push session: the connection of an HTTP/1.1 request after its response's head (h1_carrier.c), or a
 * stream of HTTP/2 (RFC 8441; h2_carrier.c). The session calls these operations with the GVL, while the session is held
 * (heddle_push_hold). Only is_free and wait_for_room raise. The carrier calls the framing's `feed`, and
 * heddle_push_handle_drained, _handle_deadline and _stop_carrier.
 */

#include "http/exchange_ruby.h"

typedef struct heddle_push_session heddle_push_session;

typedef struct {
    const heddle_exchange_operations *exchanges; /* the operations of the exchanges that this carrier continues */
    /* Was the whole request read, and is no fiber writing? Raises ClientGoneError when the client has left. */
    bool (*is_free)(const heddle_exchange_handle *exchange);
    /*
     * Allocates what the carrier needs in the session. Returns false without memory. NULL if the carrier needs nothing.
     */
    bool (*prepare)(heddle_push_session *session);
    /*
     * Ends the exchange and begins the session. `status` is the response's; `early`: frames that came with the request
     * over HTTP/2, a String or nil.
     */
    void (*begin)(heddle_push_session *session, heddle_exchange_handle *exchange, int status, VALUE early);
    /*
     * Queues bytes, and then the String unless it is 0. A long String must be frozen. They are sent in the loop's next
     * tick at the latest. Returns false without memory: then the output ends within a frame. May be called on any
     * thread.
     */
    bool (*write)(heddle_push_session *session, const char *bytes, size_t size, VALUE string);
    /*
     * Sends as much of a frame as possible at once, and queues the rest. Returns false if the carrier is broken, or
     * without memory. Called in the loop.
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
     * Reads until there is no input, or the session is no longer open. If heddle_push_must_pause returns true, pauses
     * the session.
     */
    void (*read)(heddle_push_session *session);
    /*
     * Called when the last frame is queued: sends the rest, ends the output, and discards input until the client has
     * ended.
     */
    void (*end)(heddle_push_session *session);
    /* Ends sending and reading. With `abrupt` the client sees that frames are missing. */
    void (*stop)(heddle_push_session *session, bool abrupt);
    /* Ends the carrier, which calls heddle_push_drop_carrier. */
    void (*close)(heddle_push_session *session);
    /* Sets the time, ns, at which heddle_push_handle_deadline is called; < 0: never. */
    void (*set_deadline)(heddle_push_session *session, int64_t at);
    /*
     * Lets the calling fiber wait until some output was sent. Returns false if the carrier is gone. Raises interrupts.
     */
    bool (*wait_for_room)(heddle_push_session *session);
    /* Wakes the fiber that waits in wait_for_room. */
    void (*wake_writer)(heddle_push_session *session);
} heddle_push_carrier;

extern const heddle_push_carrier heddle_push_h1_carrier, heddle_push_h2_carrier;

/* The carrier that continues this open exchange. */
const heddle_push_carrier *heddle_push_carrier_of(const heddle_exchange_handle *exchange);
