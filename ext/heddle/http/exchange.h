#ifndef HEDDLE_HTTP_EXCHANGE_H
#define HEDDLE_HTTP_EXCHANGE_H

/*
 * One request as it came over a connection: its head, and as much of its body as was read before anybody served it.
 * Records are used again and again. A body that may stay in memory is read into a String, where the application finds it
 * without a copy; a larger one goes into a file.
 */

#include "http/body_spool.h"
#include "http/message.h"

#include <ruby.h>

typedef struct heddle_exchange heddle_exchange;
typedef struct heddle_engine heddle_engine;

enum {
    HEDDLE_EXCHANGE_FIELDS = 24, /* a head with more of them, or with more bytes, costs a malloc */
    HEDDLE_EXCHANGE_BYTES = 2048,
    HEDDLE_EXCHANGES_SPARE = 256,
};

struct heddle_exchange {
    heddle_exchange *next; /* of those that are spare */
    heddle_request_head head;
    char *bytes;     /* what the head's slices are of */
    VALUE body;      /* 0: none; marked and pinned by the engine */
    size_t body_size, body_room;
    size_t reserved; /* bytes of a body above body_buffer, counted by heddle_body_memory_take until the exchange ends */
    heddle_body_spool *spool; /* where a larger body is; NULL: none */
    heddle_exchange *next_body, *previous_body; /* of those that have one */
    int64_t arrived; /* when its head was complete, CLOCK_MONOTONIC ns */
    heddle_field own_fields[HEDDLE_EXCHANGE_FIELDS];
    char own_bytes[HEDDLE_EXCHANGE_BYTES];
};

/* With a copy of the head; NULL without memory. */
heddle_exchange *heddle_exchange_take(heddle_engine *engine, const heddle_request_head *head, const char *bytes);
void heddle_exchange_give_back(heddle_engine *engine, heddle_exchange *exchange);
/* Room for so many more bytes of the body; NULL without memory. */
char *heddle_exchange_body_room(heddle_engine *engine, heddle_exchange *exchange, size_t size);
/* Makes `reserved` so many bytes, more or fewer. False: the bodies of this process have too many. */
bool heddle_exchange_reserve(heddle_exchange *exchange, size_t bytes);
/* What memory has of the body, or nil; it is the caller's from here on. */
VALUE heddle_exchange_take_body(heddle_engine *engine, heddle_exchange *exchange);
/* Nothing of it is needed in memory any more. */
void heddle_exchange_drop_body(heddle_engine *engine, heddle_exchange *exchange);

#endif
