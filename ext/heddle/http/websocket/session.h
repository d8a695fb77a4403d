#ifndef HEDDLE_HTTP_WEBSOCKET_SESSION_H
#define HEDDLE_HTTP_WEBSOCKET_SESSION_H

/*
 * A WebSocket of the server (RFC 6455). While nothing happens it is this
 * record, without a fiber. A complete message makes it a work item: a runner calls the handler, one callback of a
 * socket at a time and in order.
 *
 *   session.c         states, input, life
 *   time_limits.c     pings, and the end when the server stops
 *   sending.c         frames into the carrier's output
 *   work.c            what is due to the handler, and the runner that calls it
 *   client.c          Heddle::HTTP::WebSocket::Client, which the handler sees
 *   client_methods.c  what the handler calls of it
 *   carrier.h         what carries it
 *
 * All of it runs with the GVL. A function that may be called on another thread than the loop's says so.
 */

#include "http/engine.h"
#include "http/websocket/carrier.h"
#include "http/websocket/reader.h"
#include "net/fate.h"
#include "selector/assert.h"

typedef struct heddle_websocket_subscription heddle_websocket_subscription;
typedef struct heddle_websocket_handle heddle_websocket_handle;
typedef struct heddle_websocket_stream heddle_websocket_stream;

typedef enum {
    HEDDLE_WEBSOCKET_OPEN,
    HEDDLE_WEBSOCKET_CLOSING, /* our close frame is queued or sent, and the peer's is awaited */
    HEDDLE_WEBSOCKET_LEAVING, /* no more frames: the output leaves, then FIN; input is thrown away up to the peer's FIN */
    HEDDLE_WEBSOCKET_OVER,    /* the transport is of no use: the connection is closed after the last callback */
} heddle_websocket_state;

/* A row for each state, a bit for each state that may follow it. */
static inline bool heddle_websocket_may_enter(uint8_t from, uint8_t to)
{
    static const uint8_t allowed[] = {
        [HEDDLE_WEBSOCKET_OPEN] =
            1 << HEDDLE_WEBSOCKET_CLOSING | 1 << HEDDLE_WEBSOCKET_LEAVING | 1 << HEDDLE_WEBSOCKET_OVER,
        [HEDDLE_WEBSOCKET_CLOSING] = 1 << HEDDLE_WEBSOCKET_LEAVING | 1 << HEDDLE_WEBSOCKET_OVER,
        [HEDDLE_WEBSOCKET_LEAVING] = 1 << HEDDLE_WEBSOCKET_OVER,
        [HEDDLE_WEBSOCKET_OVER] = 0,
    };
    return allowed[from] >> to & 1;
}

/* The callbacks of a handler. Bits of `wanted` and `due`; messages are due where the list has some. */
enum {
    HEDDLE_WEBSOCKET_ON_OPEN = 1,
    HEDDLE_WEBSOCKET_ON_MESSAGE = 2,
    HEDDLE_WEBSOCKET_ON_DRAINED = 4,
    HEDDLE_WEBSOCKET_ON_SHUTDOWN = 8,
    HEDDLE_WEBSOCKET_ON_CLOSE = 16,
    HEDDLE_WEBSOCKET_ON_RESET = 32,
    HEDDLE_WEBSOCKET_ON_PUBLICATION = 64, /* a message of a topic, among those of the client */
    HEDDLE_WEBSOCKET_ON_WAKE = 128,       /* the handler has asked for it */
    HEDDLE_WEBSOCKET_CALLBACKS = 8,
};

/* A fiber that waits for a message, on that fiber's stack. */
typedef struct {
    heddle_park park;
    heddle_websocket *session; /* NULL: it is gone */
    int64_t deadline;
} heddle_websocket_wait;

/* Messages, and the bytes of their payloads. */
typedef struct {
    int64_t since; /* CLOCK_MONOTONIC, ns */
    uint64_t received, received_bytes, sent, sent_bytes;
} heddle_websocket_traffic;

struct heddle_websocket {
    heddle_work work;
    heddle_engine *engine;
    const heddle_websocket_carrier *carrier;
    heddle_websocket_stream *stream; /* of the HTTP/2 carrier; else NULL */
    heddle_websocket_handle *handle; /* the C part of its Client; NULL: that is gone */
    uint8_t state;              /* heddle_websocket_state */
    uint8_t wanted;             /* the callbacks that the handler has */
    uint8_t due;                /* those that it is to be called for */
    uint8_t calling;            /* the one that runs */
    uint8_t depth;              /* of calls that use the record: it lives until the last one leaves */
    bool running;               /* a runner has it */
    bool paused;                /* enough waits for the handler: nothing is read */
    bool breathes;              /* much has come at once: it reads on after others had their turn */
    bool pinged;                /* `pinged_at` says when, and nothing has come since */
    bool overflowed;            /* another thread has found too much output: the loop looks */
    bool overrun;               /* … and was refused a message: the loop closes the socket */
    bool retires;               /* the server stops: it is closed at `retires_at` */
    bool stalls;                /* … and no ping was sent: the output is full, and has not moved */
    bool lingers;               /* LEAVING: everything is sent, FIN included */
    uint16_t code;              /* how it ended; 0: not yet */
    uint32_t slot;              /* of its Client in the engine's list */
    uint32_t waiting_count;     /* messages that wait for the handler … */
    size_t waiting_size;        /* … and their bytes */
    heddle_websocket_message *first, **last;
    heddle_websocket_wait *wait;
    heddle_websocket_subscription *subscriptions;
    int64_t heard;              /* when something came, coarsely: ns */
    int64_t pinged_at, retires_at;
    size_t unsent;              /* what would be pending if nothing had left since the last look */
    uint64_t lingered;          /* bytes that were thrown away */
    heddle_websocket_traffic traffic;
    heddle_websocket_reader reader;
};

extern const heddle_protocol heddle_websocket_protocol;
extern const heddle_work_operations heddle_websocket_work;

static inline heddle_websocket *heddle_websocket_of(const heddle_connection *connection)
{
    return heddle_connection_session(connection);
}

static inline heddle_websocket *heddle_websocket_of_work(const heddle_work *work)
{
    return HEDDLE_CONTAINER_OF(work, heddle_websocket, work);
}

/* -- session.c ----------------------------------------------------------------------------------------------------- */

/* NULL without memory. */
heddle_websocket *heddle_websocket_new(heddle_engine *engine, const heddle_websocket_carrier *carrier);
/* Frees one that no connection has had yet, or has any more. */
void heddle_websocket_free(heddle_websocket *socket);
/*
 * Between the two the record lives, and no connection is closed by what is called. Leaving does what is due then:
 * queues its work, sets its time limit, closes its connection.
 */
static inline void heddle_websocket_hold(heddle_websocket *socket)
{
    socket->depth++;
}
HEDDLE_LAST_USE void heddle_websocket_leave(heddle_websocket *socket);
/* Reads on after a pause. Held. */
void heddle_websocket_read_on(heddle_websocket *socket);
/* Begins the close handshake, where the socket is open. Held. On any thread. */
void heddle_websocket_begin_close(heddle_websocket *socket, unsigned code, const char *reason, size_t size);
/* Ends the socket with a close frame that no answer is awaited for. Held. */
void heddle_websocket_fail(heddle_websocket *socket, unsigned code, const char *reason);
/* The output is empty after a flush: tells the handler and the subscriptions. Held. */
void heddle_websocket_handle_drained(heddle_websocket *socket);
/* Another process has it from here on: the connection is about to be detached, and the handler is not called. */
void heddle_websocket_leave_process(heddle_websocket *socket);
/* Its carrier is of no use. Held. */
void heddle_websocket_break_off(heddle_websocket *socket);
/* The same, and the client is to see that it is cut off. */
void heddle_websocket_cut_off(heddle_websocket *socket);
/* The carrier has it from now on. */
HEDDLE_LAST_USE void heddle_websocket_begin(heddle_websocket *socket, heddle_connection *connection);
/* The carrier is gone, and with it the socket, unless it is held or runs. */
HEDDLE_LAST_USE void heddle_websocket_release(heddle_websocket *socket);
/* A child process: its fibers are gone. */
void heddle_websocket_abandon(heddle_websocket *socket);
/* Does the handler have to catch up before more is read? */
bool heddle_websocket_must_pause(const heddle_websocket *socket);
/* Returns how many bytes were used: all, unless it must pause, or no more frames are read. Held. */
size_t heddle_websocket_feed(heddle_websocket *socket, char *bytes, size_t size);

/* Is this the thread of its loop? */
static inline bool heddle_websocket_is_in_loop(const heddle_websocket *socket)
{
    return socket->work.connection->sockets->loop->thread == rb_thread_current();
}
/* A message was received or sent. */
void heddle_websocket_count_received(heddle_websocket *socket, uint64_t bytes);
void heddle_websocket_count_sent(heddle_websocket *socket, uint64_t bytes);

/* -- time_limits.c ------------------------------------------------------------------------------------------------- */

/* The next time at which an open socket has to do something. Held. */
void heddle_websocket_set_deadline(heddle_websocket *socket);
void heddle_websocket_due_in(heddle_websocket *socket, int64_t duration);
/* How long the client has for its side. A server that stops does not wait for one that is gone. */
int64_t heddle_websocket_closing_time(const heddle_websocket *socket);
/* The deadline has passed. Held. */
void heddle_websocket_handle_deadline(heddle_websocket *socket);
/* The server stops, and on_shutdown is not due yet. */
bool heddle_websocket_has_to_retire(const heddle_websocket *socket);
/* Begins its end, some time from now. */
HEDDLE_LAST_USE void heddle_websocket_retire(heddle_websocket *socket);

/* -- sending.c ----------------------------------------------------------------------------------------------------- */

/* Bytes that have not left; 0 where the carrier is gone. */
size_t heddle_websocket_pending(const heddle_websocket *socket);
/* Is that more than its limits allow? */
bool heddle_websocket_exceeds_output(const heddle_websocket *socket);
/* Queues a short frame. false: no memory. Held. On any thread. */
bool heddle_websocket_send_control(heddle_websocket *socket, heddle_websocket_opcode opcode, const char *payload,
                                   size_t size);
/* Closes the socket if more output waits than may. false: it does. Held. */
bool heddle_websocket_check_pace(heddle_websocket *socket);
/*
 * Queues a message; a long String must be frozen. false: the socket is not open, or was just closed because its reader
 * is too slow. Held. On any thread.
 */
bool heddle_websocket_send(heddle_websocket *socket, heddle_websocket_opcode opcode, VALUE string);

/* The loop judges what another thread has found, after a flush. Held. */
void heddle_websocket_check_overflow(heddle_websocket *socket);
/*
 * The same for a frame that is encoded already. `at_once`, in the loop: no other is about to follow. false: no memory, or
 * the carrier is broken.
 */
bool heddle_websocket_send_frame(heddle_websocket *socket, VALUE frame, bool at_once);
/* Closes a socket whose client reads too slowly. Held. */
void heddle_websocket_end_slow(heddle_websocket *socket);

/* -- subscriptions.c ----------------------------------------------------------------------------------------------- */

/* Nothing more is delivered. Held. */
void heddle_websocket_end_subscriptions(heddle_websocket *socket);
/* The same, and frees them. */
void heddle_websocket_free_subscriptions(heddle_websocket *socket);
/* In a child process. */
void heddle_websocket_abandon_subscriptions(heddle_websocket *socket);
/* The output is empty: what the client was too slow for comes. Held. */
void heddle_websocket_catch_up(heddle_websocket *socket);
/* The number of topics with lost messages for which on_reset has not been called yet. */
unsigned heddle_websocket_count_resets(const heddle_websocket *socket);
/* A topic that lost messages, a String, once; nil: none. */
VALUE heddle_websocket_take_reset(heddle_websocket *socket);
/* Marks what the subscriptions are encoded with. */
void heddle_websocket_mark_subscriptions(const heddle_websocket *socket);

/* -- work.c -------------------------------------------------------------------------------------------------------- */

/* The handler is to be called for this. Held. */
void heddle_websocket_note_due(heddle_websocket *socket, uint8_t callback);
/* A message is complete: it is the handler's. Held. */
void heddle_websocket_deliver(heddle_websocket *socket, heddle_websocket_message *message);
/* Enough waits for the handler. */
bool heddle_websocket_is_full(const heddle_websocket *socket);
/* Is there something to call the handler for? */
bool heddle_websocket_has_work(const heddle_websocket *socket);
/* The next message, which is the caller's; NULL: there is none. Held. */
heddle_websocket_message *heddle_websocket_take(heddle_websocket *socket);
void heddle_websocket_drop_messages(heddle_websocket *socket);
/* Wakes the fiber that waits for a message. */
void heddle_websocket_wake(heddle_websocket *socket);

/* -- client.c ------------------------------------------------------------------------------------------------------ */

struct heddle_websocket_handle {
    heddle_websocket *session; /* NULL: it is closed */
    VALUE handler, caller;
    VALUE reason; /* of the close frame: a String, or nil */
    VALUE label;  /* for the log: a String, see label_of in client.c; nil: nothing is logged */
    VALUE farewell; /* a frame that is sent before the close frame when the server stops; nil: none */
    uint16_t code;
};

heddle_websocket_handle *heddle_websocket_handle_of(VALUE client);
/* As a String, or [topic, payload]; the message is gone. */
VALUE heddle_websocket_message_string(heddle_websocket_message *message);
/* How the socket has ended is kept for the Client. */
void heddle_websocket_keep_end(heddle_websocket *socket, VALUE client);
/* A new session, and its Client; nil, and NULL: there is no memory. `label`: see Client#label. */
VALUE heddle_websocket_new_client(heddle_engine *engine, const heddle_websocket_carrier *carrier, VALUE handler,
                                  VALUE caller, VALUE label, heddle_websocket **session);
/* The Client of this one. */
VALUE heddle_websocket_client(const heddle_websocket *socket);
/* The session ends: its Client stays with whoever holds it. Without Ruby's memory when `abandoned`. */
void heddle_websocket_part(heddle_websocket *socket, bool abandoned);
/* Calls the handler for one thing that is due. */
VALUE heddle_websocket_call(heddle_websocket *socket, VALUE client, uint8_t callback, heddle_websocket_message *message);

/* -- h2_carrier.c -------------------------------------------------------------------------------------------------- */

/* Gives the socket what it needs for that. false: no memory. */
bool heddle_websocket_prepare_stream(heddle_websocket *socket);
/*
 * The exchange is over, and its stream carries the socket. `early`: frames that have come, a String or nil.
 */
HEDDLE_LAST_USE void heddle_websocket_begin_on_stream(heddle_websocket *socket, heddle_exchange *exchange, VALUE early);

void Init_heddle_websocket(VALUE http);
void Init_heddle_websocket_methods(VALUE module, VALUE client_class);
void Init_heddle_websocket_codec(VALUE module);

/* -- handoff.c ----------------------------------------------------------------------------------------------------- */

/* For heddle_service_operations. */
VALUE heddle_websocket_load(heddle_service *service, VALUE words, int *state);
HEDDLE_LAST_USE void heddle_websocket_resume(heddle_connection *connection, VALUE loaded);
void Init_heddle_websocket_handoff(VALUE client_class);

#endif
