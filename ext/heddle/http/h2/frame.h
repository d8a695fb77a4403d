#pragma once

/* Frames of HTTP/2 (RFC 9113, 4 and 6; RFC 9218, 7.1), for servers and clients. Uses no Ruby. */

#include "selector/bytes.h"

enum {
    HEDDLE_H2_HEADER_SIZE = 9,
    HEDDLE_H2_FRAME_SIZE = 16384,             /* bytes of the largest payload, unless SETTINGS allow more */
    HEDDLE_H2_LARGEST_FRAME_SIZE = (1 << 24) - 1,
    HEDDLE_H2_DEFAULT_WINDOW = 65535,
    HEDDLE_H2_LARGEST_WINDOW = INT32_MAX,
    HEDDLE_H2_LARGEST_STREAM = INT32_MAX,
    HEDDLE_H2_PREFACE_SIZE = 24,
    HEDDLE_H2_PING_SIZE = 8,
    HEDDLE_H2_SETTING_SIZE = 6,
};

#define HEDDLE_H2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

typedef enum {
    HEDDLE_H2_DATA,
    HEDDLE_H2_HEADERS,
    HEDDLE_H2_PRIORITY,
    HEDDLE_H2_RST_STREAM,
    HEDDLE_H2_SETTINGS,
    HEDDLE_H2_PUSH_PROMISE,
    HEDDLE_H2_PING,
    HEDDLE_H2_GOAWAY,
    HEDDLE_H2_WINDOW_UPDATE,
    HEDDLE_H2_CONTINUATION,
    HEDDLE_H2_PRIORITY_UPDATE = 0x10,
} heddle_h2_type;

enum {
    HEDDLE_H2_ACK = 0x1,
    HEDDLE_H2_END_STREAM = 0x1,
    HEDDLE_H2_END_HEADERS = 0x4,
    HEDDLE_H2_PADDED = 0x8,
    HEDDLE_H2_HAS_PRIORITY = 0x20,
};

typedef enum {
    HEDDLE_H2_NO_ERROR,
    HEDDLE_H2_PROTOCOL_ERROR,
    HEDDLE_H2_INTERNAL_ERROR,
    HEDDLE_H2_FLOW_CONTROL_ERROR,
    HEDDLE_H2_SETTINGS_TIMEOUT,
    HEDDLE_H2_STREAM_CLOSED,
    HEDDLE_H2_FRAME_SIZE_ERROR,
    HEDDLE_H2_REFUSED_STREAM,
    HEDDLE_H2_CANCEL,
    HEDDLE_H2_COMPRESSION_ERROR,
    HEDDLE_H2_CONNECT_ERROR,
    HEDDLE_H2_ENHANCE_YOUR_CALM,
    HEDDLE_H2_INADEQUATE_SECURITY,
    HEDDLE_H2_HTTP_1_1_REQUIRED,
} heddle_h2_error;

typedef enum {
    HEDDLE_H2_SET_HEADER_TABLE_SIZE = 1,
    HEDDLE_H2_SET_ENABLE_PUSH,
    HEDDLE_H2_SET_MAX_CONCURRENT_STREAMS,
    HEDDLE_H2_SET_INITIAL_WINDOW_SIZE,
    HEDDLE_H2_SET_MAX_FRAME_SIZE,
    HEDDLE_H2_SET_MAX_HEADER_LIST_SIZE,
    HEDDLE_H2_SET_ENABLE_CONNECT_PROTOCOL = 8, /* RFC 8441 */
    HEDDLE_H2_SET_NO_RFC7540_PRIORITIES = 9,   /* RFC 9218 */
} heddle_h2_setting;

typedef struct {
    uint32_t length; /* bytes of the payload */
    uint8_t type, flags;
    uint32_t stream;
} heddle_h2_frame;

/* -- reading ------------------------------------------------------------------------------------------------------- */

/*
 * Reads frames from bytes that arrive in pieces of any size. The record must be all zero before the first frame. It
 * does not keep payloads.
 */
typedef struct {
    heddle_h2_frame frame;
    uint32_t left;                         /* bytes of the payload that are still to come */
    uint8_t header[HEDDLE_H2_HEADER_SIZE];
    /* received bytes of the frame's header; HEDDLE_H2_HEADER_SIZE while the payload is read */
    uint8_t header_size;
} heddle_h2_reader;

typedef enum {
    HEDDLE_H2_INCOMPLETE, /* all bytes were used, but the frame is incomplete */
    HEDDLE_H2_BEGIN,      /* reader->frame is a new frame's header */
    HEDDLE_H2_PIECE,      /* `*piece` is a part of the frame's payload */
    HEDDLE_H2_LAST_PIECE, /* `*piece` is the rest of the frame's payload, and may be empty */
} heddle_h2_reading;

typedef struct {
    const uint8_t *bytes;
    uint32_t size;
} heddle_h2_piece;

/*
 * Reads bytes from `*at` on, and advances `*at` by the bytes that it uses. For each frame it returns BEGIN once, PIECE
 * any number of times, and LAST_PIECE once.
 */
heddle_h2_reading heddle_h2_read(heddle_h2_reader *reader, const uint8_t **at, const uint8_t *end,
                                 heddle_h2_piece *piece);

static inline uint32_t heddle_h2_get_32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Reads 31 bits, without the reserved bit. */
static inline uint32_t heddle_h2_get_31(const uint8_t *at)
{
    return heddle_h2_get_32(at) & INT32_MAX;
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

/* Writes a frame's header. Returns the address after it. */
uint8_t *heddle_h2_put_header(uint8_t *to, uint32_t length, heddle_h2_type type, uint8_t flags, uint32_t stream);

/* Each of these functions adds one frame to `to`. When out of memory, it returns false and adds nothing. */
bool heddle_h2_write_goaway(heddle_bytes *to, uint32_t last_stream, heddle_h2_error error, const char *reason);
bool heddle_h2_write_rst_stream(heddle_bytes *to, uint32_t stream, heddle_h2_error error);
bool heddle_h2_write_window_update(heddle_bytes *to, uint32_t stream, uint32_t increment);
bool heddle_h2_write_ping(heddle_bytes *to, uint8_t flags, const uint8_t payload[HEDDLE_H2_PING_SIZE]);

typedef struct {
    uint16_t id; /* heddle_h2_setting */
    uint32_t value;
} heddle_h2_setting_value;

bool heddle_h2_write_settings(heddle_bytes *to, uint8_t flags, const heddle_h2_setting_value *settings,
                              unsigned count);
/*
 * Adds a header block: a HEADERS frame, and CONTINUATION frames if the block is larger than `frame_size`, the size of
 * the largest payload.
 */
bool heddle_h2_write_headers(heddle_bytes *to, uint32_t stream, bool end_stream, const char *block, size_t size,
                             uint32_t frame_size);
