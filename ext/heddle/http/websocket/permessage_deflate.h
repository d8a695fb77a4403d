#pragma once

/*
 * permessage-deflate (RFC 7692) without context takeover in either direction: each message is compressed on its own. So
 * all sockets of a loop share one zlib state for each direction, and a message for many sockets is compressed once.
 * Does no I/O and uses no Ruby. If Heddle was built without zlib, nothing is compressed, and the option
 * websocket_deflate is rejected.
 */

#include "http/websocket/frame_reader.h"

enum {
    HEDDLE_DEFLATE_LEAST = 256,    /* in bytes; shorter messages are not compressed */
    HEDDLE_DEFLATE_MOST = 1 << 20, /* in bytes; longer messages are not compressed: that would block the loop */
    /* the highest allowed ratio of a message's size to its compressed size, for messages above HEDDLE_INFLATE_FREE */
    HEDDLE_INFLATE_RATIO = 25,
    /* in bytes; smaller messages may have any ratio, as repetition alone can give a short message a ratio of 100 */
    HEDDLE_INFLATE_FREE = 1 << 18,
};

/* Is a message of this size compressed? */
static inline bool heddle_deflate_is_worthwhile(size_t size)
{
    return size >= HEDDLE_DEFLATE_LEAST && size <= HEDDLE_DEFLATE_MOST;
}

/* Allocated with malloc. Its zlib states are created when they are first needed. */
typedef struct heddle_deflater heddle_deflater;

/* Was Heddle built with zlib? */
bool heddle_deflate_is_available(void);
/* NULL is allowed. */
void heddle_deflater_free(heddle_deflater *deflater);
/*
 * Inflates and checks the reader's complete, compressed message. `*deflater` is NULL at first. Returns HAS_MESSAGE if
 * the inflated message has replaced the compressed one, FAILED with the reason in the reader, or NO_MEMORY.
 */
heddle_websocket_event heddle_websocket_inflate(heddle_deflater **deflater, heddle_websocket_reader *reader,
                                                const heddle_websocket_limits *limits);
/*
 * Deflates a payload into `to`, which has room for `size` bytes. Returns the compressed size, or 0 if the payload must
 * be sent uncompressed: it is too short or too long, would not become smaller, or memory is exhausted.
 */
size_t heddle_websocket_deflate(heddle_deflater **deflater, const char *bytes, size_t size, char *to);
