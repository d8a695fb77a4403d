#pragma once

/*
 * The receiving side of a WebSocket: makes messages and control frames of bytes (RFC 6455, section 5), as strictly as
 * the RFC allows, and within limits. It fails at the first invalid byte. Does no I/O and uses no Ruby.
 */

#include "http/websocket/frame_writer.h"
#include "http/websocket/utf8.h"

/* A message, from malloc. */
typedef struct heddle_websocket_message heddle_websocket_message;
struct heddle_websocket_message {
    heddle_websocket_message *next; /* its owner's */
    size_t size;
    bool text;       /* UTF-8, which was checked unless it is compressed */
    bool compressed; /* the payload is deflated (RFC 7692) */
    bool published;  /* not from the peer: a topic's message (subscriptions.c), with the topic's name before it … */
    uint32_t topic_size; /* … of so many bytes, which count in `size` */
    char bytes[];
};

typedef struct {
    uint64_t message;   /* bytes, inflated */
    uint32_t fragments; /* frames of one message */
} heddle_websocket_limits;

typedef enum {
    HEDDLE_WEBSOCKET_NO_EVENT, /* all bytes were used; more are needed */
    HEDDLE_WEBSOCKET_HAS_MESSAGE, /* heddle_websocket_take_message returns it */
    HEDDLE_WEBSOCKET_HAS_PING,   /* `control`, `control_size` */
    HEDDLE_WEBSOCKET_HAS_PONG,   /* the same */
    /* `code`; `control` has the reason, from its third byte on, if it has as many. The caller must read no more. */
    HEDDLE_WEBSOCKET_HAS_CLOSE,
    HEDDLE_WEBSOCKET_FAILED,     /* `code` and `failure`: the peer's violation. Nothing more is read */
    HEDDLE_WEBSOCKET_NO_MEMORY,  /* the reader must be ended */
} heddle_websocket_event;

typedef struct {
    uint8_t stage;        /* of frame_reader.c */
    uint8_t opcode;       /* of the frame */
    bool final;           /* the frame is the last one of its message */
    bool from_client;     /* frames must be masked; otherwise they must not be */
    bool allows_deflate;  /* permessage-deflate was negotiated */
    uint8_t head_size;    /* bytes of `head` that came … */
    uint8_t head_needed;  /* … of so many */
    uint8_t control_size;
    uint8_t mask[4];
    heddle_utf8 utf8;
    uint16_t code;
    uint8_t head[HEDDLE_WEBSOCKET_HEAD];
    uint32_t fragments;   /* of the message so far */
    uint64_t size, left;  /* bytes of the frame's payload, and of its rest that is still to come */
    size_t room;          /* of `message` */
    heddle_websocket_message *message; /* the message that is being received */
    bool in_message;      /* from the head of its first frame to the end of its last one */
    char control[HEDDLE_WEBSOCKET_CONTROL];
    const char *failure;
} heddle_websocket_reader;

void heddle_websocket_reader_start(heddle_websocket_reader *reader, bool from_client);
/*
 * Reads up to the next event, and says in `*used` how many bytes that took. The buffer is
 * changed: payloads are unmasked in place. An event's data is good until the next call.
 */
heddle_websocket_event heddle_websocket_read(heddle_websocket_reader *reader, const heddle_websocket_limits *limits,
                                             char *bytes, size_t size, size_t *used);
/* After HEDDLE_WEBSOCKET_HAS_MESSAGE, once: the caller owns the message. */
heddle_websocket_message *heddle_websocket_take_message(heddle_websocket_reader *reader);
/* Fails the reader: nothing more is read, and the close frame gets this code and reason, a literal. Returns FAILED. */
heddle_websocket_event heddle_websocket_reader_fail(heddle_websocket_reader *reader, unsigned code,
                                                    const char *failure);
/* Ends the reader: frees an incomplete message. A later read returns FAILED, perhaps with `failure` NULL. */
void heddle_websocket_reader_end(heddle_websocket_reader *reader);
