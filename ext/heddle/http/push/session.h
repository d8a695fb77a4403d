#pragma once

/*
 * A push session: a WebSocket of the server (RFC 6455), or a stream of server-sent events (HTML standard, section 9.2).
 * While nothing happens it is only this record, without a fiber. Its framing says whether it is a WebSocket or an event
 * stream; its carrier is the connection or stream below it. A session with a handler becomes a work item when a message
 * is complete: a runner calls the handler, one callback of a session at a time and in order. An event stream that only
 * sends the messages of a topic has no handler.
 *
 *   shared_state.c       what the sessions of an engine share
 *   session.c            its states, and its end
 *   websocket_framing.c  the framing of WebSockets
 *   event_framing.c      the framing of event streams, and event streams without a handler
 *   time_limits.c        the next thing to do, and the end when the server stops
 *   sending.c            writes messages into the carrier's output
 *   keepalive.c          pings to the client, and comments of event streams
 *   pongs.c              the answers to pings of the client
 *   callbacks.c          the callbacks that are due, and the runner that calls them
 *   session_ruby.c       Heddle::HTTP::WebSocket::Session, which the handler sees
 *   session_methods.c    its methods that the handler calls
 *   carrier.h            the operations of its carrier
 *
 * All of it runs with the GVL. A function that may be called on another thread than the loop's says so.
 */

#include "http/engine.h"
#include "http/protocols.h"
#include "http/push/carrier.h"
#include "http/websocket/frame_reader.h"
#include "net/fate.h"
#include "selector/transitions.h"

typedef struct heddle_push_subscription heddle_push_subscription;
typedef struct heddle_push_handle heddle_push_handle;
typedef struct heddle_push_stream heddle_push_stream;
typedef struct heddle_push_pong heddle_push_pong;

typedef enum {
    HEDDLE_PUSH_OPEN,
    HEDDLE_PUSH_CLOSING, /* our close frame is queued or sent, and the peer's has not come */
    /* no frames are queued or read any more; the output is sent, then FIN; input is discarded */
    HEDDLE_PUSH_FINISHING,
    HEDDLE_PUSH_OVER, /* the carrier can't be used any more: it is closed after the last callback */
} heddle_push_state;

/* One row for each state, one bit for each that may follow. */
HEDDLE_TRANSITIONS(heddle_push_may_enter,
    [HEDDLE_PUSH_OPEN] = 1 << HEDDLE_PUSH_CLOSING | 1 << HEDDLE_PUSH_FINISHING | 1 << HEDDLE_PUSH_OVER,
    [HEDDLE_PUSH_CLOSING] = 1 << HEDDLE_PUSH_FINISHING | 1 << HEDDLE_PUSH_OVER,
    [HEDDLE_PUSH_FINISHING] = 1 << HEDDLE_PUSH_OVER,
    [HEDDLE_PUSH_OVER] = 0)

/* The callbacks of a handler. Bits of `wanted` and `due_callbacks`; on_message is due while there are messages. */
enum {
    HEDDLE_PUSH_ON_OPEN = 1,
    HEDDLE_PUSH_ON_MESSAGE = 2,
    HEDDLE_PUSH_ON_DRAINED = 4,
    HEDDLE_PUSH_ON_SHUTDOWN = 8,
    HEDDLE_PUSH_ON_CLOSE = 16,
    HEDDLE_PUSH_ON_RESET = 32,
    HEDDLE_PUSH_ON_PUBLICATION = 64, /* a topic's message, queued among the client's */
    HEDDLE_PUSH_ON_WAKE = 128,       /* called because the handler asked for it */
    HEDDLE_PUSH_CALLBACKS = 8,
};

/*
 * Frames the messages of a session, and reads its client's bytes. All operations are called while the session is held
 * (heddle_push_hold). Operations that send may be called on any thread.
 */
typedef struct {
    /* Does the client send frames, and answer our close frame? Otherwise its bytes are discarded. */
    bool reads_frames;
    /* Reads the client's bytes, which it may overwrite. Returns how many bytes it has used. */
    size_t (*feed)(heddle_push_session *session, char *bytes, size_t size);
    /* Turns a String that a handler writes into the value for `send`. May raise. Not held. */
    VALUE (*prepare)(VALUE data);
    /* Queues a message. Returns false without memory, or if the carrier is broken. */
    bool (*send)(heddle_push_session *session, heddle_websocket_opcode opcode, VALUE message);
    /* Queues the last bytes before the session ends. Returns false in the same cases as `send`. */
    bool (*send_close)(heddle_push_session *session, unsigned code, const char *reason, size_t size);
    /* When an open session has something to send or to check; < 0: never. */
    int64_t (*next_check)(const heddle_push_session *session);
    /* Called when that time has come, or another time limit has passed. */
    void (*check)(heddle_push_session *session, int64_t now);
    /* Called when the session is about to be freed. May be NULL. */
    void (*release)(heddle_push_session *session);
    /* Ends a session whose client reads too slowly. */
    void (*end_slow)(heddle_push_session *session);
} heddle_push_framing;

extern const heddle_push_framing heddle_push_frames, heddle_push_events;

/* The number of messages, and the bytes of their payloads. */
typedef struct {
    uint64_t sent, sent_bytes, received, received_bytes;
    int64_t since; /* CLOCK_MONOTONIC, ns */
} heddle_push_traffic;

struct heddle_push_session {
    /* the members that a broadcast uses come first: together they fill few cache lines */
    heddle_work work;
    heddle_engine *engine;
    const heddle_push_carrier *carrier;
    const heddle_push_framing *framing;
    uint8_t state;              /* a heddle_push_state */
    uint8_t wanted;             /* the callbacks that the handler defines */
    uint8_t due_callbacks;                /* the callbacks that must be called */
    uint8_t calling;            /* the callback that runs */
    uint8_t depth;              /* nested calls that use the record: it is freed after the last one */
    bool chunked;               /* events are sent as chunks of HTTP/1.1 */
    bool stays;                 /* an event stream that is never handed off */
    bool running;               /* a runner serves it */
    bool paused;                /* enough messages wait for the handler: nothing is read */
    bool defers_reading;        /* it was paused when it began to close, and reads again at its deadline */
    bool pinged;                /* a ping was due at `keepalive_sent_at`, and no input came since; see `stalls` */
    bool overflowed;            /* another thread has found too much output: the loop checks it */
    bool overrun;               /* another thread has dropped a message: the loop closes the socket */
    bool retires;               /* the server stops: the socket is closed at `retires_at` */
    /*
     * a ping was due while the output was full: it was not sent, and progress of the output counts as the answer.
     * CLOSING: output waits for the client
     */
    bool stalls;
    bool lingers;               /* FINISHING: all output was sent, including FIN */
    uint16_t code;              /* the close code; 0: not closed yet */
    heddle_push_subscription *subscriptions;
    heddle_push_pong *pong; /* a pong that waits behind much output, from malloc; else NULL */
    uint64_t written;           /* bytes that were ever queued … */
    heddle_push_traffic traffic;
    uint64_t sent_at_check;     /* … and how many of them had been sent at the last check */
    heddle_push_stream *stream; /* of the HTTP/2 carrier; otherwise NULL */
    heddle_push_handle *handle; /* the C part of its WebSocket::Session; NULL: there is none any more */
    uint32_t slot;            /* the slot of its WebSocket::Session in the engine's list; HEDDLE_PUSH_NO_CLIENT: none */
    uint32_t waiting_count;     /* messages that wait for the handler … */
    size_t waiting_size;        /* … and their bytes */
    heddle_websocket_message *first, **last;
    heddle_wait *wait; /* the fiber that waits for a message */
    /* when input came last; for an event stream, when output was last taken or none was queued. Coarse clock, ns */
    int64_t heard;
    int64_t keepalive_sent_at, retires_at; /* a keepalive is a ping, or a comment of an event stream */
    uint64_t lingered;          /* discarded bytes */
    heddle_link receiving_link; /* in the list of sockets with an unfinished message */
    int64_t message_deadline;   /* when the unfinished message must continue: see heddle_body_next_deadline; 0: none */
    size_t message_size;        /* bytes of the unfinished message that came … */
    size_t unfinished;          /* … and the memory that is counted for that message */
    heddle_websocket_reader reader[]; /* one element if the client sends frames */
};

enum {
    HEDDLE_PUSH_NO_CLIENT = UINT32_MAX,
};

extern const heddle_protocol heddle_push_protocol;
extern const heddle_work_operations heddle_push_work;

static inline heddle_push_session *heddle_push_session_of(const heddle_connection *connection)
{
    return connection->session;
}

static inline heddle_push_session *heddle_push_session_of_work(const heddle_work *work)
{
    return HEDDLE_CONTAINER_OF(work, heddle_push_session, work);
}

/* Does the session have a handler, and so a WebSocket::Session? */
static inline bool heddle_push_has_client(const heddle_push_session *session)
{
    return session->slot != HEDDLE_PUSH_NO_CLIENT;
}

/* Has its client negotiated permessage-deflate? */
static inline bool heddle_push_deflates(const heddle_push_session *session)
{
    return session->framing->reads_frames && session->reader->allows_deflate;
}

/* -- session.c ----------------------------------------------------------------------------------------------------- */

/* Makes a session without a WebSocket::Session. NULL without memory. */
heddle_push_session *heddle_push_session_new(heddle_engine *engine, const heddle_push_carrier *carrier,
                                             const heddle_push_framing *framing);
/*
 * While a session is held, its record is not freed, and no call closes its connection. heddle_push_release_hold then
 * queues its work, sets its time limit, or closes its connection. A function whose comment says "Held" must be called
 * on a held session.
 */
static inline void heddle_push_hold(heddle_push_session *session)
{
    session->depth++;
}
HEDDLE_LAST_USE void heddle_push_release_hold(heddle_push_session *session);
/* Continues reading after a pause. Held. */
void heddle_push_resume_reading(heddle_push_session *session);
/* Begins the close handshake if the socket is open. Held. On any thread. */
void heddle_push_begin_close(heddle_push_session *session, unsigned code, const char *reason, size_t size);
/* Ends the output as soon as the queued bytes are sent. Held, in the loop. */
void heddle_push_finish_output(heddle_push_session *session, unsigned code);
/* Ends the socket with a close frame, without waiting for an answer. Held. */
void heddle_push_fail_session(heddle_push_session *session, unsigned code, const char *reason);
/* Called when a flush has emptied the output: calls the handler and the subscriptions, and answers a ping. Held. */
void heddle_push_handle_drained(heddle_push_session *session);
/*
 * Called when another process has got the socket, before the connection is detached. From then on no callback is
 * called.
 */
void heddle_push_finish_handoff(heddle_push_session *session);
/* Ends a socket whose carrier can't be used any more. Held. */
void heddle_push_stop_carrier(heddle_push_session *session);
/* Like heddle_push_stop_carrier, but lets the client see that frames are missing. */
void heddle_push_reset_carrier(heddle_push_session *session);
/* Begins the session on its carrier. */
HEDDLE_LAST_USE void heddle_push_begin_session(heddle_push_session *session, heddle_connection *connection);
/* Called when the carrier has ended: frees the session, unless it is held or served. */
HEDDLE_LAST_USE void heddle_push_drop_carrier(heddle_push_session *session);
/* Called in a forked child, where the session's fibers do not exist. */
void heddle_push_abandon(heddle_push_session *session);
/* Must reading pause until the handler has caught up? */
bool heddle_push_must_pause(const heddle_push_session *session);

/* Does the calling thread run the session's loop? */
static inline bool heddle_push_is_in_loop(const heddle_push_session *session)
{
    return session->work.connection->sockets->loop->thread == rb_thread_current();
}
/* Counts a sent message. */
void heddle_push_count_sent(heddle_push_session *session, uint64_t bytes);

/* -- time_limits.c ------------------------------------------------------------------------------------------------- */

/* Sets the time at which an open socket must do something next. Held. */
void heddle_push_set_deadline(heddle_push_session *session);
void heddle_push_set_time_limit(heddle_push_session *session, int64_t duration);
/* How long the client may take to close its side; the time is shorter when the server stops. */
int64_t heddle_push_closing_time(const heddle_push_session *session);
/* Handles the deadline's passing. Held. */
void heddle_push_handle_deadline(heddle_push_session *session);
/* Has the kernel taken output since the last check? If so while the send buffer is full, the client has read. */
bool heddle_push_has_output_moved(heddle_push_session *session, size_t pending);
/*
 * Does the server stop, and is on_shutdown not due yet? For a session without a handler, returns whether it is open.
 * Such a session can be ended at any time, because its client reconnects with the position of the last event.
 */
bool heddle_push_has_to_retire(const heddle_push_session *session);
/* Schedules the end of the session; a session without a handler ends at once. */
HEDDLE_LAST_USE void heddle_push_retire(heddle_push_session *session);

/* -- sending.c ----------------------------------------------------------------------------------------------------- */

/* The bytes that were not sent yet; 0 when the carrier has ended. */
size_t heddle_push_pending(const heddle_push_session *session);
/* Are more bytes queued than the limits allow? */
bool heddle_push_exceeds_output(const heddle_push_session *session);
/* Queues a short frame. Returns false without memory. Held. On any thread. */
bool heddle_push_send_control(heddle_push_session *session, heddle_websocket_opcode opcode, const char *payload,
                              size_t size);
/*
 * Closes the socket if too much output waits; returns false then. On another thread than the loop's, leaves this check
 * to heddle_push_check_overflow, and returns false only if the message must be dropped. Held.
 */
bool heddle_push_check_pace(heddle_push_session *session);
/*
 * Queues a message that the framing has prepared. Returns false if the socket is not open, or was just closed because
 * its client is too slow. Held. On any thread.
 */
bool heddle_push_send(heddle_push_session *session, heddle_websocket_opcode opcode, VALUE string);

/* Called in the loop: checks the output that another thread has found too large, after a flush. Held. */
void heddle_push_check_overflow(heddle_push_session *session);
/*
 * Sends a frame that is encoded already. With `at_once`, which is allowed only in the loop, sends it now because no
 * other frame follows soon. Returns false without memory, or if the carrier is broken.
 */
bool heddle_push_send_frame(heddle_push_session *session, VALUE frame, bool at_once);
/* Ends an open session whose client reads too slowly. Held. */
void heddle_push_end_slow(heddle_push_session *session);

/* -- websocket_framing.c ------------------------------------------------------------------------------------------- */

/* The String in UTF-8; raises ArgumentError if it is not valid text. */
VALUE heddle_push_text_of(VALUE string);

/* -- event_framing.c ----------------------------------------------------------------------------------------------- */

/* Sends a comment, which the client does not see as an event. Returns false in the same cases as `send`. Held. */
bool heddle_push_send_comment(heddle_push_session *session);

/* -- keepalive.c --------------------------------------------------------------------------------------------------- */

/* When a ping is to be sent, or its answer must have come; -1: never. */
int64_t heddle_push_next_ping(const heddle_push_session *session);
/* Sends a ping if it is due. Ends the socket if the client did not answer in time. Held. */
void heddle_push_check_pings(heddle_push_session *session, int64_t now);
/* The following two are operations of the framing. */
int64_t heddle_push_next_comment(const heddle_push_session *session);
/* Sends a comment if it is due. Resets a stream whose client has taken no output for too long. */
void heddle_push_check_comments(heddle_push_session *session, int64_t now);

/* -- pongs.c ------------------------------------------------------------------------------------------------------- */

/*
 * Answers a ping. While a pong already waits behind much output, only keeps the payload of the latest ping (RFC 6455,
 * section 5.5.3). Returns false without memory, or if the carrier is broken. Held, in the loop.
 */
bool heddle_push_answer_ping(heddle_push_session *session, const char *payload, size_t size);
/*
 * Called when some output was sent. If the waiting pong was sent, answers the ping that came after it. Held, in the
 * loop.
 */
void heddle_push_update_pong(heddle_push_session *session);

/* -- subscriptions.c ----------------------------------------------------------------------------------------------- */

/* Ends the delivery of topics. Held. */
void heddle_push_end_subscriptions(heddle_push_session *session);
/* Ends the delivery of topics, and frees the subscriptions. */
void heddle_push_free_subscriptions(heddle_push_session *session);
/* Called in a forked child. */
void heddle_push_abandon_subscriptions(heddle_push_session *session);
/* Called when the output is empty: delivers the messages that were held back because the client was too slow. Held. */
void heddle_push_catch_up(heddle_push_session *session);
/* The number of topics with lost messages for which on_reset was not called yet. */
unsigned heddle_push_count_resets(const heddle_push_session *session);
/* Removes and returns a topic that lost messages, a String; nil if there is none. */
VALUE heddle_push_take_reset(heddle_push_session *session);
/* Marks the envelopes of the subscriptions. */
void heddle_push_mark_subscriptions(const heddle_push_session *session);

/* -- callbacks.c --------------------------------------------------------------------------------------------------- */

/* Makes a callback due. Held. */
void heddle_push_queue_callback(heddle_push_session *session, uint8_t callback);
/* Queues a complete message for the handler. Held. */
void heddle_push_deliver(heddle_push_session *session, heddle_websocket_message *message);
/* Do enough messages wait for the handler? */
bool heddle_push_is_full(const heddle_push_session *session);
/* Is a callback due? */
bool heddle_push_has_work(const heddle_push_session *session);
/* Removes and returns the next message, which the caller then owns, or NULL. Held. */
heddle_websocket_message *heddle_push_pop_message(heddle_push_session *session);
void heddle_push_drop_messages(heddle_push_session *session);

/* -- session_ruby.c ------------------------------------------------------------------------------------------------ */

struct heddle_push_handle {
    heddle_push_session *session; /* NULL: it is closed */
    VALUE handler, caller;
    VALUE reason; /* the close frame's reason, a String, or nil */
    VALUE label;  /* for the log: a String, see label_of in session_ruby.c; nil: nothing is logged */
    VALUE farewell; /* a frame that is sent before the close frame when the server stops; nil: none */
    uint16_t code;
};

heddle_push_handle *heddle_push_handle_of(VALUE client);
/* Copies the close code and reason to the WebSocket::Session. */
void heddle_push_keep_end(heddle_push_session *session, VALUE client);
/*
 * Makes a session and its WebSocket::Session. Without memory returns nil, and the session is NULL. `label`: see
 * WebSocket::Session#label.
 */
VALUE heddle_push_new_client(heddle_engine *engine, const heddle_push_carrier *carrier,
                             const heddle_push_framing *framing, VALUE handler, VALUE caller, VALUE label,
                             heddle_push_session **session);
/* The WebSocket::Session of this session. */
VALUE heddle_push_client(const heddle_push_session *session);
/* Separates the session from its WebSocket::Session, which continues to exist. Uses no Ruby memory when `abandoned`. */
void heddle_push_drop_client(heddle_push_session *session, bool abandoned);
/* Calls one callback of the handler. */
VALUE heddle_push_call(heddle_push_session *session, VALUE client, uint8_t callback,
                            heddle_websocket_message *message);

/* -- shared_state.c ------------------------------------------------------------------------------------------------ */

extern const heddle_http_protocol heddle_push_http_protocol;

void Init_heddle_push(VALUE http);
void Init_heddle_push_methods(VALUE module, VALUE session_class);

/* -- handoff.c ----------------------------------------------------------------------------------------------------- */

/* See heddle_http_protocol. */
VALUE heddle_push_load(heddle_engine *engine, VALUE description, int *state);
HEDDLE_LAST_USE void heddle_push_resume(heddle_connection *connection, VALUE loaded);
/* The protocol's operation `describe`, for event streams without a handler. */
ssize_t heddle_events_describe(heddle_connection *connection, char *bytes);
void Init_heddle_push_handoff(VALUE session_class);
