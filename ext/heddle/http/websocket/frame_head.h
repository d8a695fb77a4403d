#pragma once

/* Frames of the WebSocket protocol (RFC 6455, section 5): heads, masks and close codes. Uses no Ruby. */

#include "system.h"

typedef enum {
    HEDDLE_WEBSOCKET_CONTINUATION = 0,
    HEDDLE_WEBSOCKET_TEXT = 1,
    HEDDLE_WEBSOCKET_BINARY = 2,
    HEDDLE_WEBSOCKET_CLOSE = 8,
    HEDDLE_WEBSOCKET_PING = 9,
    HEDDLE_WEBSOCKET_PONG = 10,
} heddle_websocket_opcode;

enum {
    HEDDLE_WEBSOCKET_HEAD = 14,    /* bytes of the longest head */
    HEDDLE_WEBSOCKET_CONTROL = 125, /* bytes of payload that a control frame may have */
    HEDDLE_WEBSOCKET_REASON = 123,  /* bytes that a close frame's reason may have */
};

/* Close codes (RFC 6455, section 7.4.1, and IANA's registry). */
enum {
    HEDDLE_WEBSOCKET_NORMAL = 1000,
    HEDDLE_WEBSOCKET_GOING_AWAY = 1001,
    HEDDLE_WEBSOCKET_PROTOCOL_ERROR = 1002,
    HEDDLE_WEBSOCKET_NO_STATUS = 1005, /* never sent: the received close frame had no code */
    HEDDLE_WEBSOCKET_ABNORMAL = 1006,  /* never sent: no close frame was received */
    HEDDLE_WEBSOCKET_INVALID_DATA = 1007,
    HEDDLE_WEBSOCKET_POLICY = 1008,
    HEDDLE_WEBSOCKET_TOO_BIG = 1009,
    HEDDLE_WEBSOCKET_INTERNAL_ERROR = 1011,
    HEDDLE_WEBSOCKET_RESTART = 1012,
    HEDDLE_WEBSOCKET_TRY_AGAIN = 1013,
};

/* May a close frame have this code? */
bool heddle_websocket_code_is_valid(unsigned code);

/*
 * Writes the head of a frame that contains a whole message or a control payload of `size` bytes. `mask`: four bytes for
 * a client's frame, or NULL for a server's frame. `bytes` has room for HEDDLE_WEBSOCKET_HEAD. Returns the head's
 * length.
 */
size_t heddle_websocket_write_head(char *bytes, heddle_websocket_opcode opcode, bool compressed, uint64_t size,
                                   const uint8_t *mask);

/* Masks or unmasks bytes in place. `offset`: the position of these bytes in the frame's payload. */
void heddle_websocket_mask(char *bytes, size_t size, const uint8_t *mask, uint64_t offset);

/*
 * Writes the payload of a close frame, at most HEDDLE_WEBSOCKET_CONTROL bytes. Cuts a long reason between two
 * characters. Returns the number of bytes.
 */
size_t heddle_websocket_write_close(char *bytes, unsigned code, const char *reason, size_t reason_size);
