#pragma once

/*
 * The receiving side of a WebSocket: parses bytes into messages and control frames (RFC 6455, section 5). It is as
 * strict as the RFC allows, enforces limits, and fails at the first invalid byte. Does no I/O and uses no Ruby.
 */

#include "http/websocket/frame_head.h"
#include "http/websocket/utf8.h"

/* A message. Allocated with malloc. */
typedef struct heddle_websocket_message heddle_websocket_message;
struct heddle_websocket_message {
    heddle_websocket_message *next; /* the next message in its owner's list */
    size_t size;
    bool text;       /* a text message; checked to be UTF-8, unless it is still compressed */
    bool compressed; /* the payload is deflated (RFC 7692) */
    /*
     * true: a message of a topic (subscriptions.c), whose bytes begin with the topic's name; false: the peer has sent
     * it
     */
    bool published;
    uint32_t topic_size; /* bytes of the topic's name, which `size` includes */
    char bytes[];
};

typedef struct {
    uint64_t message;   /* bytes, after inflating */
    uint32_t fragments; /* frames of one message */
} heddle_websocket_limits;

typedef enum {
    HEDDLE_WEBSOCKET_NO_EVENT, /* all bytes were used; more are needed */
    HEDDLE_WEBSOCKET_HAS_MESSAGE, /* heddle_websocket_take_message returns it */
    HEDDLE_WEBSOCKET_HAS_PING,   /* the reader's `control` has the payload, of `control_size` bytes */
    HEDDLE_WEBSOCKET_HAS_PONG,   /* like a ping */
    /* `code` is set. If `control_size` exceeds 2, `control` has the reason after 2 bytes. No frame may follow. */
    HEDDLE_WEBSOCKET_HAS_CLOSE,
    /* The peer has violated the protocol: see `code` and `failure`. The reader reads no more. */
    HEDDLE_WEBSOCKET_FAILED,
    HEDDLE_WEBSOCKET_NO_MEMORY,  /* the caller must end the reader */
} heddle_websocket_event;

typedef struct {
    uint8_t stage;        /* a stage, see frame_reader.c */
    uint8_t opcode;       /* the opcode of the current frame */
    bool final;           /* the frame is the last one of its message */
    bool from_client;     /* the peer is a client, whose frames must be masked; a server's frames must not be masked */
    bool allows_deflate;  /* permessage-deflate was negotiated */
    uint8_t head_size;    /* bytes that `head` has so far */
    uint8_t head_needed;  /* bytes of the whole head, as far as they are known */
    uint8_t control_size;
    uint8_t mask[4];
    heddle_utf8 utf8;
    uint16_t code;
    uint8_t head[HEDDLE_WEBSOCKET_HEAD];
    uint32_t fragments;   /* frames of the message so far */
    uint64_t size, left;  /* bytes of the frame's payload; how many of them are still to come */
    size_t room;          /* bytes that `message` has memory for */
    heddle_websocket_message *message; /* the message that is being received */
    bool in_message;      /* true from the head of a message's first frame to the end of its last frame */
    char control[HEDDLE_WEBSOCKET_CONTROL];
    const char *failure;
} heddle_websocket_reader;

void heddle_websocket_reader_start(heddle_websocket_reader *reader, bool from_client);
/*
 * Reads up to the next event, and sets `*used` to the number of bytes it has read. Unmasks payloads in `bytes` itself.
 * The data of an event is valid until the next call.
 */
heddle_websocket_event heddle_websocket_read(heddle_websocket_reader *reader, const heddle_websocket_limits *limits,
                                             char *bytes, size_t size, size_t *used);
/* Call this once after HEDDLE_WEBSOCKET_HAS_MESSAGE. The caller owns the message. */
heddle_websocket_message *heddle_websocket_take_message(heddle_websocket_reader *reader);
/*
 * Fails the reader: nothing more is read, and the close frame gets this code and this reason, which must be a literal.
 * Returns FAILED.
 */
heddle_websocket_event heddle_websocket_reader_fail(heddle_websocket_reader *reader, unsigned code,
                                                    const char *failure);
/* Ends the reader: frees an incomplete message. A later read returns FAILED; `failure` may be NULL then. */
void heddle_websocket_reader_end(heddle_websocket_reader *reader);
