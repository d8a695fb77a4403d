#pragma once

/* The state that all WebSockets of an engine share: limits, counters, and an Array that keeps their objects alive. */

#include "http/websocket/permessage_deflate.h"
#include "http/websocket/frame_reader.h"

#include <ruby.h>

enum {
    HEDDLE_WEBSOCKET_CODES = 18, /* slots: one for each code from 1000 to 1015, one for 3000 to 3999, one for 4000 on */
};

typedef struct {
    heddle_websocket_limits limits;
    uint64_t output_limit; /* bytes of output that may wait for a client */
    int64_t ping;          /* ns without input before a ping is sent; <= 0: no pings are sent */
    uint64_t messages_limit; /* the maximum of `unfinished`, and of `waiting` */
    uint64_t unfinished;   /* bytes of memory of all unfinished messages */
    uint64_t waiting;      /* bytes of all clients' messages that wait for their handlers */
    int64_t timeout;       /* ns for the client to answer a ping or a close frame */
    heddle_deflater *deflater; /* shared by all sockets that have negotiated permessage-deflate; NULL: none yet */
    VALUE loader;          /* makes the handlers of handed-off sockets, see handoff.c; 0: there is none */
    VALUE clients;         /* an Array with the WebSocket::Session of each socket at its slot; 0: none yet */
    uint32_t free_slot, slot_count; /* the first free slot, which contains the index of the next; the number of slots */
    uint16_t retire_code;  /* the close code when the server stops (chosen by server/drain.rb) … */
    int64_t retire_time;   /* … and the time over which the close frames are spread, ns */
    int64_t retire_end;    /* when sockets stop waiting for on_shutdown to return: CLOCK_MONOTONIC, ns */
    uint32_t retired;      /* the number of sockets for which on_shutdown was queued */
    uint64_t open, opened; /* the number of open sockets; the number of sockets that were opened so far */
    uint64_t received, received_bytes, sent, sent_bytes; /* numbers of messages, and of their bytes */
    uint64_t failures;     /* sockets whose client has violated the protocol or a limit */
    uint64_t closes[HEDDLE_WEBSOCKET_CODES]; /* sockets that have ended, by heddle_websocket_code_slot */
    uint64_t too_slow, vanished; /* sockets whose client read too slowly, or did not answer a ping */
} heddle_websockets;

static inline unsigned heddle_websocket_code_slot(unsigned code)
{
    return code >= 4000 ? 17 : code >= 3000 ? 16 : code - 1000;
}
