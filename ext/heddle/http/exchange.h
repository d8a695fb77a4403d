#pragma once

/*
 * An exchange is a request and its response, in any version of HTTP. It is the work item that a runner (a pooled fiber)
 * serves. The record contains the request's head, and the part of the body that was received before a runner took the
 * exchange. A small body is received into a String, which the application gets without a copy. A larger body goes into
 * a file. Records are reused.
 *
 * While the exchange waits, the session (the protocol's record of the connection) owns it. From the moment a runner
 * calls the application until the application returns, the runner owns it. `work.connection` becomes NULL when the
 * session no longer refers to the exchange.
 */

#include "http/body/spool.h"
#include "http/exchange_states.h"
#include "http/message.h"
#include "http/rejection.h"
#include "http/response_head_writer.h"
#include "net/fate.h"
#include "net/work_item.h"
#include "scheduler/account.h"

typedef struct heddle_exchange heddle_exchange;
typedef struct heddle_engine heddle_engine;
typedef struct heddle_exchange_handle heddle_exchange_handle;

/*
 * The operations of an exchange, which its protocol implements. All run in the loop, with the GVL. Operations that take
 * a handle raise ClientGoneError when the exchange is complete or the client has gone, unless their result reports it.
 */
typedef struct {
    const char *version; /* the value of SERVER_PROTOCOL; NULL: HTTP/1.0 or HTTP/1.1, as in the head */
    bool takes_over;     /* the application may take over the connection (full hijack) */
    bool waits;          /* `send` can wait until the kernel has accepted the whole response */
    /*
     * The class of the exchange's Ruby object: a subclass of Heddle::HTTP::Exchange, with the protocol's own methods.
     */
    const VALUE *object_class;

    /* Was the request's body received completely? */
    bool (*is_received)(heddle_exchange_handle *handle);
    /* Returns the address of the flag "the client waits for 100 Continue". */
    bool *(*expectation)(heddle_exchange_handle *handle);
    /* Are there received bytes that the application has not read? */
    bool (*is_buffered)(heddle_exchange_handle *handle);
    /*
     * Returns the part of the body that was received before a runner took the exchange, see
     * heddle_exchange_body_object.
     */
    VALUE (*take_body)(heddle_exchange *exchange);
    /*
     * Returns further bytes of the body that were received already, or nil if there are none. Raises BadRequestError if
     * the body is invalid.
     */
    VALUE (*decode)(heddle_exchange_handle *handle);
    /*
     * Waits for more of the body. Returns the number of received bytes. Over HTTP/1.1, returns nil if the client has
     * ended its side of the connection; over HTTP/2, returns 0 if the body is complete. Raises IO::TimeoutError after
     * `timeout` ns; a negative `timeout` means no limit.
     */
    VALUE (*fill)(heddle_exchange_handle *handle, int64_t timeout);

    /* Checks that a response can be sent, and sets the members of `head` that depend on the version of HTTP. */
    void (*begin_head)(heddle_exchange_handle *handle, heddle_head_writer *head);
    /*
     * Sends a complete response. Its head begins at `start` in `out`, and is removed from there. `body` is an Array of
     * Strings with `size` bytes of content. With `wait`, returns only when the kernel has accepted the whole response.
     * Returns false if nothing was sent because the client has left.
     */
    bool (*send)(heddle_exchange_handle *handle, const heddle_head_writer *head, heddle_buffer *out, size_t start,
                 VALUE body, size_t size, bool wait);
    /*
     * Sends content: a String, or over HTTP/1.1 also an Array of Strings. Waits while the client is slower than the
     * application.
     */
    void (*write)(heddle_exchange_handle *handle, VALUE data);
    /*
     * Sends a piece of a response whose length is unknown, without waiting. If it returns false, it has sent nothing,
     * and the caller must call `write`. NULL in protocols whose exchanges never have `chunking` set in the handle.
     */
    bool (*write_piece)(heddle_exchange_handle *handle, VALUE string);
    /* Ends the response; the loop sends the queued rest. `reusable`: the connection may serve another request. */
    void (*finish)(heddle_exchange_handle *handle, bool reusable, int status);

    /*
     * From now on, heddle_exchange_disconnected is called when the client leaves. Returns true if the client has
     * already left.
     */
    bool (*watch_disconnect)(heddle_exchange *exchange);
    /* Called when a runner has taken the exchange. The call may free the connection. May be NULL. */
    void (*taken)(heddle_exchange *exchange);
    /* Sends this rejection instead of serving a waiting exchange. `retry_after`: the value of Retry-After, or NULL. */
    HEDDLE_LAST_USE void (*reject)(heddle_exchange *exchange, const heddle_rejection *rejection,
                                   const char *retry_after);
    /*
     * Sends a rejection that the application has requested. `content`: whether the response contains the rejection's
     * text; false for HEAD. Returns false if the client has left. The call may free the connection.
     */
    bool (*reject_running)(heddle_exchange_handle *handle, const heddle_rejection *rejection, bool content);
    /*
     * Called when the application aborts the exchange, or returns without finishing it. Ends the exchange so that the
     * client sees an incomplete response. The call may free the connection.
     */
    void (*abandon)(heddle_exchange *exchange);
} heddle_exchange_operations;

enum {
    /* The record has room for a head with this many fields and bytes; more need a malloc. */
    HEDDLE_EXCHANGE_FIELDS = 24,
    HEDDLE_EXCHANGE_BYTES = 1024, /* small, because thousands of requests may wait */
    HEDDLE_EXCHANGES_SPARE = 256, /* the maximum number of records that are kept for reuse */
};

struct heddle_exchange {
    heddle_work work;
    const heddle_exchange_operations *operations;
    heddle_engine *engine;
    void *carrier;                  /* the protocol's own record of the exchange */
    heddle_exchange_handle *handle; /* the C part of its Ruby object; NULL: none */
    uint8_t state;                  /* a heddle_exchange_state, changed only by heddle_exchange_enter */
    heddle_exchange *next, *previous; /* in the engine's list of exchanges with a `body`, or of spare records */
    heddle_request_head head;
    char *bytes;     /* the bytes that the slices of the head refer to */
    VALUE body;      /* 0: no body in memory; marked and pinned by the engine */
    size_t body_size, body_capacity;
    /* bytes that heddle_body_memory_acquire has counted, for a body in memory that is larger than body_buffer */
    size_t reserved_memory;
    heddle_body_spool *spool; /* the body, if it is in a file; or NULL */
    int64_t arrived; /* when its head was complete, CLOCK_MONOTONIC ns */
    int64_t queued;  /* since when it waits, or has waited, for a runner; CLOCK_MONOTONIC ns */
    int64_t began;   /* when its first byte was received; 0: at the time `arrived` */
    heddle_account *account; /* the time account, while a runner owns the exchange; or NULL */
    heddle_field own_fields[HEDDLE_EXCHANGE_FIELDS];
    char own_bytes[HEDDLE_EXCHANGE_BYTES];
};

/* Changes the state. Debug builds check that the transition is allowed. */
static inline void heddle_exchange_enter(heddle_exchange *exchange, heddle_exchange_state state)
{
    HEDDLE_ASSERT(heddle_exchange_may_enter(exchange->state, state));
    exchange->state = state;
}

/* Does a runner own the exchange? Also true after the session has released the exchange. */
static inline bool heddle_exchange_is_running(const heddle_exchange *exchange)
{
    return exchange->state == HEDDLE_EXCHANGE_RUNNING || exchange->state == HEDDLE_EXCHANGE_WITHOUT_SESSION;
}

/* Makes an exchange of this connection, with a copy of the head. Returns NULL when out of memory. */
heddle_exchange *heddle_exchange_new(heddle_engine *engine, const heddle_exchange_operations *operations,
                                     heddle_connection *connection, const heddle_request_head *head, const char *bytes);
void heddle_exchange_free(heddle_exchange *exchange);
/*
 * Called when the client has left, or its stream has ended early. Calls `cancel` of the object that was registered with
 * cancel_on_disconnect, if any. Never raises.
 */
void heddle_exchange_disconnected(heddle_exchange *exchange);
/*
 * Separates the exchange from its session, and frees the exchange: at once or, if a runner owns it, when the
 * application has returned.
 */
void heddle_exchange_leave_session(heddle_exchange *exchange);

static inline heddle_exchange *heddle_exchange_of_work(heddle_work *work)
{
    return HEDDLE_CONTAINER_OF(work, heddle_exchange, work);
}

/* Makes room for `size` more bytes of the body. Returns where to store them, or NULL when out of memory. */
char *heddle_exchange_make_body_room(heddle_exchange *exchange, size_t size);
/*
 * Sets `reserved_memory`. Returns false, and changes nothing, if all bodies of this process together would need too
 * much memory.
 */
bool heddle_exchange_reserve_memory(heddle_exchange *exchange, size_t bytes);
/* Returns the part of the body that is in memory, or nil. Removes it from the exchange. */
VALUE heddle_exchange_take_body(heddle_exchange *exchange);
/* Removes the body from memory. */
void heddle_exchange_drop_body(heddle_exchange *exchange);

extern const heddle_work_operations heddle_exchange_work;
