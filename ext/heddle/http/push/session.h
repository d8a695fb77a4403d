#pragma once

/*
 * A push session: a WebSocket of the server (RFC 6455), or a stream of server-sent events (HTML standard, section 9.2).
 * While nothing happens, a session is only this record and has no fiber. Its framing encodes and decodes the bytes of a
 * WebSocket or an event stream. Its carrier is the connection or HTTP/2 stream that transports these bytes. A session
 * with a handler becomes a work item when a callback is due, for example because a message is complete: a runner calls
 * the handler, one callback of a session at a time and in order. An event stream without a handler only sends the
 * messages of a topic.
 *
 *   shared_state.c       what the sessions of an engine share
 *   session.c            its states, and its end
 *   websocket_framing.c  the framing of WebSockets
 *   event_framing.c      the framing of event streams, and event streams without a handler
 *   time_limits.c        time limits, and the end when the server stops
 *   sending.c            writes messages into the carrier's output
 *   keepalive.c          pings to the client, and comments of event streams
 *   ping_answers.c       the answers to pings of the client
 *   subscriptions.c      the topics to which a session has subscribed, and their messages
 *   handoff.c            hands off WebSockets to another process
 *   callbacks.c          the callbacks that are due, and the runner that calls them
 *   session_ruby.c       Heddle::HTTP::WebSocket::Session, which the handler uses
 *   session_methods.c    the methods that the handler calls
 *   carrier.h            the operations of its carrier
 *
 * All functions need the GVL. They must be called on the loop's thread, unless their comments say "any thread".
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
    HEDDLE_PUSH_CLOSING, /* our close frame is queued or sent; the client's close frame was not received yet */
    /* no more frames are queued or read; the rest of the output and FIN are sent; input is discarded */
    HEDDLE_PUSH_FINISHING,
    HEDDLE_PUSH_OVER, /* the carrier can't be used any more, and is closed after the last callback */
} heddle_push_state;

/* One row for each state, with one bit for each state that may follow it. */
HEDDLE_TRANSITIONS(heddle_push_may_enter,
    [HEDDLE_PUSH_OPEN] = 1 << HEDDLE_PUSH_CLOSING | 1 << HEDDLE_PUSH_FINISHING | 1 << HEDDLE_PUSH_OVER,
    [HEDDLE_PUSH_CLOSING] = 1 << HEDDLE_PUSH_FINISHING | 1 << HEDDLE_PUSH_OVER,
    [HEDDLE_PUSH_FINISHING] = 1 << HEDDLE_PUSH_OVER,
    [HEDDLE_PUSH_OVER] = 0)

/*
 * The callbacks of a handler, as bits of `wanted` and `due_callbacks`. on_message and on_publication have no bit in
 * `due_callbacks`: they are due while messages wait.
 */
enum {
    HEDDLE_PUSH_ON_OPEN = 1,
    HEDDLE_PUSH_ON_MESSAGE = 2,
    HEDDLE_PUSH_ON_DRAINED = 4,
    HEDDLE_PUSH_ON_SHUTDOWN = 8,
    HEDDLE_PUSH_ON_CLOSE = 16,
    HEDDLE_PUSH_ON_RESET = 32,
    HEDDLE_PUSH_ON_PUBLICATION = 64, /* for a message of a topic, queued among the client's messages */
    HEDDLE_PUSH_ON_WAKE = 128,       /* called after #wake */
    HEDDLE_PUSH_CALLBACKS = 8,
};

/*
 * The framing of a session: encodes its messages, and reads its client's bytes. All operations except `prepare` and
 * `release` are called while the session is held (heddle_push_hold). Operations that send may be called on any thread.
 */
typedef struct {
    /* Does the client send frames, and answer our close frame? Otherwise its bytes are discarded. */
    bool reads_frames;
    /* Reads the client's bytes, which it may overwrite. Returns how many bytes it has used. */
    size_t (*feed)(heddle_push_session *session, char *bytes, size_t size);
    /* Converts a handler's String to a message for `send`. May raise, so the session must not be held. */
    VALUE (*prepare)(VALUE data);
    /* Queues a message. Returns false when out of memory, or if the carrier is broken. */
    bool (*send)(heddle_push_session *session, heddle_websocket_opcode opcode, VALUE message);
    /* Queues the last bytes before the session ends. Returns false in the same cases as `send`. */
    bool (*send_close)(heddle_push_session *session, unsigned code, const char *reason, size_t size);
    /* Returns the time (coarse clock, ns) at which `check` is due for an open session; < 0: never. */
    int64_t (*next_check)(const heddle_push_session *session);
    /* Called at the time that next_check has returned, and when another time limit of the session has passed. */
    void (*check)(heddle_push_session *session, int64_t now);
    /* Called when the session is about to be freed. May be NULL. */
    void (*release)(heddle_push_session *session);
    /* Ends a session whose client reads too slowly. */
    void (*end_slow)(heddle_push_session *session);
} heddle_push_framing;

extern const heddle_push_framing heddle_push_frames, heddle_push_events;

/* Statistics of one session: numbers of messages, and bytes of their payloads. */
typedef struct {
    uint64_t sent, sent_bytes, received, received_bytes;
    int64_t since; /* when the session began: CLOCK_MONOTONIC, ns */
} heddle_push_traffic;

struct heddle_push_session {
    /* the members that a broadcast uses come first, so that they are in few cache lines */
    heddle_work work;
    heddle_engine *engine;
    const heddle_push_carrier *carrier;
    const heddle_push_framing *framing;
    uint8_t state;              /* a heddle_push_state */
    uint8_t wanted;             /* the callbacks that the handler defines */
    uint8_t due_callbacks;                /* the callbacks that must be called */
    uint8_t calling;            /* the callback that runs */
    uint8_t depth;              /* nested holds (heddle_push_hold): the record is not freed before all are released */
    bool chunked;               /* events are sent as chunks of HTTP/1.1 */
    bool stays;                 /* an event stream that is never handed off */
    bool running;               /* a runner calls its callbacks */
    bool paused;                /* nothing is read, as enough messages wait for this handler or for all handlers */
    bool defers_reading;        /* the session was paused when it began to close, and reads again at its deadline */
    bool pinged;                /* a ping was due at `keepalive_sent_at`, and no input has come since; see `stalls` */
    bool overflowed;            /* another thread has found too much output: the loop must check it */
    bool overrun;               /* another thread has dropped a message: the loop must close the socket */
    /* the server stops, and closes the socket at `retires_at`; or the socket is closed to make room for clients */
    bool retires;
    /*
     * OPEN: a ping was due while the output was full. It was not sent; progress of the output counts as its answer.
     * CLOSING, FINISHING: output is queued that the client has not read yet
     */
    bool stalls;
    bool lingers;               /* FINISHING: all output was sent, including FIN */
    uint16_t code;              /* the close code; 0: not closed yet */
    heddle_push_subscription *subscriptions;
    heddle_push_pong *pong; /* a pong that waits behind much output, from malloc; else NULL */
    uint64_t written;           /* bytes that were queued since the session began */
    heddle_push_traffic traffic;
    uint64_t sent_at_check;     /* how many bytes of `written` had been sent at the last check */
    heddle_push_stream *stream; /* the record of the HTTP/2 carrier; NULL over HTTP/1.1 */
    heddle_push_handle *handle; /* the C part of its WebSocket::Session; NULL: it has none, or the object is freed */
    uint32_t slot;            /* the slot of its WebSocket::Session in the engine's list; HEDDLE_PUSH_NO_CLIENT: none */
    uint32_t waiting_count;     /* messages that wait for the handler … */
    size_t waiting_size;        /* … and their bytes */
    heddle_websocket_message *first, **last;
    heddle_wait *wait; /* the fiber that waits for a message */
    /*
     * when the client was last taken to be there (coarse clock, ns): input came, or a check in keepalive.c found that
     * output was sent, that an event stream had no output, or that a WebSocket was paused
     */
    int64_t heard;
    int64_t keepalive_sent_at, retires_at; /* a keepalive is a ping, or a comment of an event stream */
    uint64_t lingered;          /* discarded bytes of input */
    heddle_link receiving_link; /* in the list of sockets with an unfinished message */
    int64_t message_deadline;   /* when more of the unfinished message must have come (body_deadline.h); 0: none */
    size_t message_size;        /* received bytes of the unfinished message … */
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

/* Makes a session without a WebSocket::Session. Returns NULL when out of memory. */
heddle_push_session *heddle_push_session_new(heddle_engine *engine, const heddle_push_carrier *carrier,
                                             const heddle_push_framing *framing);
/*
 * While a session is held, its record is not freed, and no function closes its connection. heddle_push_release_hold
 * catches up: it queues the session's due callbacks, or closes the connection. A function whose comment says "Held" may
 * only be called on a held session.
 */
static inline void heddle_push_hold(heddle_push_session *session)
{
    session->depth++;
}
HEDDLE_LAST_USE void heddle_push_release_hold(heddle_push_session *session);
/* Continues reading after a pause. Held. */
void heddle_push_resume_reading(heddle_push_session *session);
/* Begins the close handshake if the socket is open. Held. May be called on any thread. */
void heddle_push_begin_close(heddle_push_session *session, unsigned code, const char *reason, size_t size);
/* Ends the output as soon as the queued bytes are sent. Held. */
void heddle_push_finish_output(heddle_push_session *session, unsigned code);
/* Ends the socket with a close frame, without waiting for the client's close frame. Held. */
void heddle_push_fail_session(heddle_push_session *session, unsigned code, const char *reason);
/*
 * Called when all output was sent. Makes on_drained due, sends further messages of topics, and may answer a ping. Held.
 */
void heddle_push_handle_drained(heddle_push_session *session);
/*
 * Called when the socket was sent to another process, before the connection is detached. No callback is called
 * afterwards.
 */
void heddle_push_finish_handoff(heddle_push_session *session);
/* Ends a session whose carrier can't be used any more. Held. */
void heddle_push_stop_carrier(heddle_push_session *session);
/* Like heddle_push_stop_carrier, but shows the client that frames are missing, by a reset. Held. */
void heddle_push_reset_carrier(heddle_push_session *session);
/* Begins the session on its carrier. */
HEDDLE_LAST_USE void heddle_push_begin_session(heddle_push_session *session, heddle_connection *connection);
/* Called when the carrier has ended. Frees the session, unless it is held or a callback runs. */
HEDDLE_LAST_USE void heddle_push_drop_carrier(heddle_push_session *session);
/* Called in a forked child, where the fibers of the session don't exist. */
void heddle_push_abandon(heddle_push_session *session);
/* Must reading pause until this handler, or others, have processed more messages? */
bool heddle_push_must_pause(const heddle_push_session *session);

/* Does the calling thread run the session's loop? */
static inline bool heddle_push_is_in_loop(const heddle_push_session *session)
{
    return session->work.connection->sockets->loop->thread == rb_thread_current();
}
/* Counts a sent message. */
void heddle_push_count_sent(heddle_push_session *session, uint64_t bytes);

/* -- time_limits.c ------------------------------------------------------------------------------------------------- */

/* Sets the time of the next check of an open session. Held. */
void heddle_push_set_deadline(heddle_push_session *session);
/* Sets a time limit for the current state, in ns from now. Held. */
void heddle_push_set_time_limit(heddle_push_session *session, int64_t duration);
/* Returns how long the client may take to close its side, in ns. It may be less when the server stops. */
int64_t heddle_push_closing_time(const heddle_push_session *session);
/* Called when the time limit has passed. */
HEDDLE_LAST_USE void heddle_push_handle_deadline(heddle_push_session *session);
/* Has the kernel accepted output since the last check? If the send buffer is full, this shows that the client reads. */
bool heddle_push_has_output_moved(heddle_push_session *session, size_t pending);
/*
 * May heddle_push_retire be called? Returns true for an open session that is not retired yet: with a handler only while
 * the server stops; without one at any time, because the client reconnects with the position of its last event.
 */
bool heddle_push_has_to_retire(const heddle_push_session *session);
/* Schedules the end of the session; a session without a handler ends at once. */
HEDDLE_LAST_USE void heddle_push_retire(heddle_push_session *session);

/* -- sending.c ----------------------------------------------------------------------------------------------------- */

/* Returns the number of bytes that were not sent yet; 0 when the carrier has ended. */
size_t heddle_push_pending(const heddle_push_session *session);
/* Are more bytes queued than the limits allow? */
bool heddle_push_exceeds_output(const heddle_push_session *session);
/* Queues a control frame. Returns false when out of memory. Held. May be called on any thread. */
bool heddle_push_send_control(heddle_push_session *session, heddle_websocket_opcode opcode, const char *payload,
                              size_t size);
/* Sends as much as possible now. Returns the same as the carrier's `flush`. Held. */
int heddle_push_flush(heddle_push_session *session);
/*
 * May a message be queued? On the loop's thread, flushes if too much output waits. If too much still waits, or the
 * carrier is broken, closes the socket and returns false. On another thread, only lets the loop check the output later
 * (heddle_push_check_overflow), and returns false only if the message must be dropped. Held.
 */
bool heddle_push_check_pace(heddle_push_session *session);
/*
 * Queues a message that the framing has prepared. Returns false if the message was not queued: the socket is not open,
 * heddle_push_check_pace has returned false, or memory is exhausted. Held. May be called on any thread.
 */
bool heddle_push_send(heddle_push_session *session, heddle_websocket_opcode opcode, VALUE string);

/* Called after a flush. If another thread has found too much output, checks the output again. Held. */
void heddle_push_check_overflow(heddle_push_session *session);
/*
 * Sends an encoded frame. `at_once`: sends it now instead of in the next tick, because no other frame follows soon;
 * allowed only on the loop's thread. Returns false when out of memory, or if the carrier is broken.
 */
bool heddle_push_send_frame(heddle_push_session *session, VALUE frame, bool at_once);
/* Ends an open session whose client reads too slowly. Held. */
void heddle_push_end_slow(heddle_push_session *session);

/* -- websocket_framing.c ------------------------------------------------------------------------------------------- */

/* Returns the String in UTF-8. Raises ArgumentError or EncodingError if it is not valid text. */
VALUE heddle_push_text_of(VALUE string);

/* -- event_framing.c ----------------------------------------------------------------------------------------------- */

/* Sends a comment, which the client does not see as an event. Returns false in the same cases as `send`. Held. */
bool heddle_push_send_comment(heddle_push_session *session);

/* -- keepalive.c --------------------------------------------------------------------------------------------------- */

/* Returns when a ping is due, or when the time for the answer to a ping ends (coarse clock, ns); -1: never. */
int64_t heddle_push_next_ping(const heddle_push_session *session);
/* Sends a ping if it is due. Ends the socket if the client did not answer in time. Held. */
void heddle_push_check_pings(heddle_push_session *session, int64_t now);
/* The following two functions are operations of the framing of event streams. */
int64_t heddle_push_next_comment(const heddle_push_session *session);
/* Sends a comment if it is due. Resets a stream whose client has read no output for too long. */
void heddle_push_check_comments(heddle_push_session *session, int64_t now);

/* -- ping_answers.c ------------------------------------------------------------------------------------------------ */

/*
 * Answers a ping. While another pong waits behind much output, only keeps the payload of the latest ping (RFC 6455,
 * section 5.5.3). Returns false when out of memory, or if the carrier is broken. Held.
 */
bool heddle_push_answer_ping(heddle_push_session *session, const char *payload, size_t size);
/* Called when some output was sent. If the waiting pong was sent, answers the latest ping that came after it. Held. */
void heddle_push_update_pong(heddle_push_session *session);

/* -- subscriptions.c ----------------------------------------------------------------------------------------------- */

/* Unsubscribes from all topics. Held. */
void heddle_push_end_subscriptions(heddle_push_session *session);
/* Unsubscribes from all topics, and frees the subscriptions. */
void heddle_push_free_subscriptions(heddle_push_session *session);
/* Called in a forked child. */
void heddle_push_abandon_subscriptions(heddle_push_session *session);
/*
 * Called when the output is empty, or when on_publication has returned. Delivers messages of topics that were not
 * delivered because the client or the handler was too slow. Held.
 */
void heddle_push_catch_up(heddle_push_session *session);
/* Returns the number of topics that have lost messages and for which on_reset was not called yet. */
unsigned heddle_push_count_resets(const heddle_push_session *session);
/* Returns the name of a topic for which on_reset is due, and clears `reset_due`; nil if there is none. */
VALUE heddle_push_take_reset(heddle_push_session *session);
/* Marks the envelopes of the subscriptions. */
void heddle_push_mark_subscriptions(const heddle_push_session *session);

/* -- callbacks.c --------------------------------------------------------------------------------------------------- */

/* Makes a callback due. Held. */
void heddle_push_queue_callback(heddle_push_session *session, uint8_t callback);
/* Queues a complete message for the handler. Held. */
void heddle_push_deliver(heddle_push_session *session, heddle_websocket_message *message);
/* Do so many messages wait for the handler that reading must pause? */
bool heddle_push_is_full(const heddle_push_session *session);
/* Is a callback due? */
bool heddle_push_has_work(const heddle_push_session *session);
/* Removes and returns the next message, which the caller then owns, or NULL. Held. */
heddle_websocket_message *heddle_push_pop_message(heddle_push_session *session);
void heddle_push_drop_messages(heddle_push_session *session);

/* -- session_ruby.c ------------------------------------------------------------------------------------------------ */

struct heddle_push_handle {
    heddle_push_session *session; /* NULL: the session was freed */
    VALUE handler, caller; /* `caller` calls the handler's callbacks, see open_websocket */
    VALUE reason; /* the close frame's reason, a String, or nil */
    VALUE label;  /* values for the log line at the end, see label_of in session_ruby.c; nil: nothing is logged */
    VALUE farewell; /* a frame that is sent before the close frame when the server stops; nil: none */
    uint16_t code;  /* the close code; 0 before heddle_push_keep_end */
};

heddle_push_handle *heddle_push_handle_of(VALUE client);
/* Copies the close code and the reason to the WebSocket::Session. */
void heddle_push_keep_end(heddle_push_session *session, VALUE client);
typedef struct {
    VALUE object, caller; /* the handler, and the object that calls it (heddle_push_handle) */
    VALUE socket_class;   /* the class of the WebSocket::Session */
    uint8_t wanted;       /* the callbacks that the handler has */
} heddle_push_handler;

/*
 * Asks the handler for its callbacks. A handler that defines respond_to? itself may wait in it, and other fibers may
 * run. So a connection, stream or session must be looked up afterwards.
 */
heddle_push_handler heddle_push_examine(VALUE object, VALUE caller);
/*
 * Makes a session and its WebSocket::Session. When out of memory, returns nil and sets the session to NULL. Runs no
 * code of the application. `label`: see heddle_push_handle.
 */
VALUE heddle_push_new_client(heddle_engine *engine, const heddle_push_carrier *carrier,
                             const heddle_push_framing *framing, const heddle_push_handler *handler, VALUE label,
                             heddle_push_session **session);
/* Returns the WebSocket::Session of this session. */
VALUE heddle_push_client(const heddle_push_session *session);
/*
 * Separates the session from its WebSocket::Session, which continues to exist. With `abandoned`, uses no Ruby object.
 */
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
