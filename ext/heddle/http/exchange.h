#ifndef HEDDLE_HTTP_EXCHANGE_H
#define HEDDLE_HTTP_EXCHANGE_H

/*
 * A request and its response, whatever protocol carries them: the work item of HTTP. The record has the request's head,
 * and as much of its body as was received before a runner took it. A body that may stay in memory is read into a String,
 * where the application finds it without a copy; a larger one goes into a file. Records are used again and again.
 *
 * While it waits, the protocol's session owns it. From the moment a runner calls the application until that returns, the
 * runner does; `work.connection` is NULL as soon as the session is done with it.
 */

#include "http/body_spool.h"
#include "http/exchange_states.h"
#include "http/message.h"
#include "http/rejection.h"
#include "net/fate.h"
#include "net/work.h"

#include <ruby.h>

typedef struct heddle_exchange heddle_exchange;
typedef struct heddle_engine heddle_engine;
typedef struct heddle_exchange_handle heddle_exchange_handle;

/* The operations that the protocol implements for an exchange. All in the loop, with the GVL. */
typedef struct {
    const char *version; /* for SERVER_PROTOCOL; NULL: as the head says */
    bool takes_over;     /* the application may take the connection over */
    /* The class of its Ruby object, a Heddle::HTTP::Exchange with the methods of this protocol. */
    VALUE (*object_class)(void);
    /*
     * A complete response: a Hash of headers and an Array of Strings, `size` bytes. false: nothing was sent, and it needs
     * the methods of the Ruby object. With `wait`, returns when the client has taken all of it. Raises InvalidResponse
     * and ClientGone.
     */
    bool (*respond)(heddle_exchange_handle *handle, VALUE status, VALUE headers, VALUE body, int64_t size, bool wait);
    /*
     * A piece of content of unknown length, without a wait. false: nothing was sent; it needs the methods of the Ruby
     * object.
     */
    bool (*write_piece)(heddle_exchange_handle *handle, VALUE string);
    /* It is open. From now on an event tells when the client leaves; true: it has left already. */
    bool (*watch_disconnect)(heddle_exchange *exchange);
    /* A runner has taken it. Its connection may be gone afterwards. NULL: nothing is to be done. */
    void (*taken)(heddle_exchange *exchange);
    /* Nobody has taken it, and nobody will: the client gets this answer. */
    HEDDLE_LAST_USE void (*reject)(heddle_exchange *exchange, const heddle_rejection *rejection, const char *retry_after);
    /* The application has left it unfinished: the client must see that. Its connection may be gone afterwards. */
    void (*abandon)(heddle_exchange *exchange);
} heddle_exchange_operations;

enum {
    HEDDLE_EXCHANGE_FIELDS = 24, /* a head with more of them, or with more bytes, costs a malloc */
    HEDDLE_EXCHANGE_BYTES = 1024, /* and thousands of requests may wait */
    HEDDLE_EXCHANGES_SPARE = 256,
};

struct heddle_exchange {
    heddle_work work;
    const heddle_exchange_operations *operations;
    heddle_engine *engine;
    void *carrier;                  /* what its protocol has of it */
    heddle_exchange_handle *handle; /* the C part of its Ruby object; NULL: there is none */
    uint8_t state;                  /* heddle_exchange_state, changed by heddle_exchange_enter alone */
    heddle_exchange *next;          /* of those that are spare */
    heddle_request_head head;
    char *bytes;     /* what the head's slices are of */
    VALUE body;      /* 0: none; marked and pinned by the engine */
    size_t body_size, body_room;
    size_t reserved; /* bytes of a body above body_buffer, counted by heddle_body_memory_acquire until the exchange ends */
    heddle_body_spool *spool; /* where a larger body is; NULL: none */
    heddle_exchange *next_body, *previous_body; /* of those that have one */
    int64_t arrived; /* when its head was complete, CLOCK_MONOTONIC ns */
    heddle_field own_fields[HEDDLE_EXCHANGE_FIELDS];
    char own_bytes[HEDDLE_EXCHANGE_BYTES];
};

/* Aborts in debug builds when the table of states does not allow it. */
static inline void heddle_exchange_enter(heddle_exchange *exchange, heddle_exchange_state state)
{
    HEDDLE_ASSERT(heddle_exchange_may_enter(exchange->state, state));
    exchange->state = state;
}

/* Does a runner have it, whether the session still knows it or not? */
static inline bool heddle_exchange_is_running(const heddle_exchange *exchange)
{
    return exchange->state == HEDDLE_EXCHANGE_RUNNING || exchange->state == HEDDLE_EXCHANGE_DETACHED;
}

/* A new one of this connection, with a copy of the head; NULL without memory. */
heddle_exchange *heddle_exchange_new(heddle_engine *engine, const heddle_exchange_operations *operations,
                                     heddle_connection *connection, const heddle_request_head *head, const char *bytes);
void heddle_exchange_free(heddle_exchange *exchange);
/*
 * The client has left, or its stream has ended early, as far as anybody can tell: what the application has asked to be
 * cancelled is. Also for one that no runner has taken. Never raises.
 */
void heddle_exchange_disconnected(heddle_exchange *exchange);
/*
 * The session is done with it: takes it out of the queue, and frees it unless a runner has it, which does so when the
 * application has returned.
 */
void heddle_exchange_detach(heddle_exchange *exchange);

static inline heddle_exchange *heddle_exchange_of_work(heddle_work *work)
{
    return HEDDLE_CONTAINER_OF(work, heddle_exchange, work);
}

/* Room for so many more bytes of the body; NULL without memory. */
char *heddle_exchange_body_room(heddle_exchange *exchange, size_t size);
/* Makes `reserved` so many bytes, more or fewer. False: the bodies of this process have too many. */
bool heddle_exchange_reserve(heddle_exchange *exchange, size_t bytes);
/* The part of the body that is in memory, or nil; the caller owns it from here on. */
VALUE heddle_exchange_take_body(heddle_exchange *exchange);
/* Nothing of it is needed in memory any more. */
void heddle_exchange_drop_body(heddle_exchange *exchange);

extern const heddle_work_operations heddle_exchange_work;

#endif
