#ifndef HEDDLE_HTTP_WEBSOCKET_SERVICE_H
#define HEDDLE_HTTP_WEBSOCKET_SERVICE_H

/* The state that the WebSockets of an engine share: limits, counters, and the list that keeps their Ruby objects. */

#include "http/websocket/deflate.h"
#include "http/websocket/reader.h"

#include <ruby.h>

enum {
    HEDDLE_WEBSOCKET_CODES = 18, /* 1000 to 1015, those from 3000 on, those from 4000 on */
};

typedef struct {
    heddle_websocket_limits limits;
    uint64_t output_limit; /* bytes that may wait for a client that reads slowly */
    int64_t ping;          /* ns without input until a ping; 0: none is sent */
    int64_t timeout;       /* ns that a client may take to answer a ping or a close frame */
    heddle_deflater *deflater; /* of all that have negotiated it; NULL: none yet */
    VALUE loader;          /* makes the handlers of sockets that another process had, see handoff.c; 0: nothing does */
    VALUE clients;         /* an Array: the Client of each socket, at its slot; 0: none yet */
    uint32_t free_slot, slot_count; /* the free ones are a list: each has the number of the next */
    uint16_t retire_code;  /* of the close frames when the server stops … */
    int64_t retire_time;   /* … which leave within so many ns */
    uint32_t retired;      /* the sockets that got on_shutdown */
    uint64_t open, opened; /* sockets */
    uint64_t received, received_bytes, sent, sent_bytes; /* messages */
    uint64_t failures;     /* sockets whose client broke the protocol or a limit */
    uint64_t closes[HEDDLE_WEBSOCKET_CODES]; /* sockets that have ended, by heddle_websocket_code_slot */
    uint64_t too_slow, vanished; /* those whose client read too slowly, and did not answer a ping */
} heddle_websockets;

static inline unsigned heddle_websocket_code_slot(unsigned code)
{
    return code >= 4000 ? 17 : code >= 3000 ? 16 : code - 1000;
}

#endif
