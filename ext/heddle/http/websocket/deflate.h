#ifndef HEDDLE_HTTP_WEBSOCKET_DEFLATE_H
#define HEDDLE_HTTP_WEBSOCKET_DEFLATE_H

/*
 * permessage-deflate (RFC 7692) without context takeover in either direction: each message is compressed by itself, so
 * that all sockets of a loop share one state of zlib each way, and a broadcast is compressed once. No I/O and no Ruby
 * here. Without zlib at build time nothing is compressed, and the option websocket_deflate is rejected.
 */

#include "http/websocket/reader.h"

enum {
    HEDDLE_DEFLATE_LEAST = 256,    /* bytes: shorter messages are sent as they are … */
    HEDDLE_DEFLATE_MOST = 1 << 20, /* … and so are longer ones, which would hold the loop up */
    HEDDLE_INFLATE_RATIO = 25,     /* bytes of a message for each byte that was received … */
    HEDDLE_INFLATE_FREE = 4096,    /* … unless the message is no longer than that */
};

/* From malloc; its states of zlib are made when they are needed. */
typedef struct heddle_deflater heddle_deflater;

/* Was this built with zlib? */
bool heddle_deflate_is_available(void);
/* NULL is allowed. */
void heddle_deflater_free(heddle_deflater *deflater);
/*
 * Inflates the reader's message, which is compressed and whole. `*deflater`: NULL at first. HAS_MESSAGE: it is in its
 * place, within the limits, and UTF-8 if it is text. FAILED: the reader says why. NO_MEMORY.
 */
heddle_websocket_event heddle_websocket_inflate(heddle_deflater **deflater, heddle_websocket_reader *reader,
                                                const heddle_websocket_limits *limits);
/*
 * Deflates a payload into `to`, which has room for `size` bytes. Returns how many it has; 0: it is to be sent as it is,
 * for its size, because it would not be smaller, or for lack of memory.
 */
size_t heddle_websocket_deflate(heddle_deflater **deflater, const char *bytes, size_t size, char *to);

#endif
