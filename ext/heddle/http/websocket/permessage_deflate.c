#include "http/websocket/permessage_deflate.h"

#ifdef HEDDLE_ZLIB

#include <zlib.h>

enum {
    WINDOW = -15,   /* 32 KiB, without header and checksum (RFC 7692, section 7.2) */
    MEMORY = 8,     /* zlib's own default */
    MAX_SIZE = 1 << 30, /* zlib counts in unsigned int */
    FIRST_ROOM = 512,
    /* A bit of data_type after inflate, see zlib.h. */
    BETWEEN_BLOCKS = 128,
};

/* These bytes end each compressed message, and are not sent (RFC 7692, section 7.2.1). */
static const unsigned char TAIL[] = {0x00, 0x00, 0xff, 0xff};

struct heddle_deflater {
    bool deflates, inflates; /* which of the following states are initialized */
    z_stream deflate, inflate;
};

/* The result of inflating a message. */
typedef struct {
    heddle_websocket_message *message;
    size_t room;
    uint64_t most; /* the maximum size of the message in bytes */
} inflated;

bool heddle_deflate_is_available(void)
{
    return true;
}

void heddle_deflater_free(heddle_deflater *deflater)
{
    if (!deflater)
        return;
    if (deflater->deflates)
        deflateEnd(&deflater->deflate);
    if (deflater->inflates)
        inflateEnd(&deflater->inflate);
    free(deflater);
}

/* Resets the state for another message. Returns NULL when out of memory. */
static z_stream *reset_inflate(heddle_deflater **shared)
{
    if (!*shared && !(*shared = calloc(1, sizeof(**shared))))
        return NULL;
    heddle_deflater *deflater = *shared;
    if (!deflater->inflates)
        deflater->inflates = inflateInit2(&deflater->inflate, WINDOW) == Z_OK;
    else
        inflateReset(&deflater->inflate);
    return deflater->inflates ? &deflater->inflate : NULL;
}

/* Uses the fastest level, because compression blocks the loop. Returns NULL when out of memory. */
static z_stream *reset_deflate(heddle_deflater **shared)
{
    if (!*shared && !(*shared = calloc(1, sizeof(**shared))))
        return NULL;
    heddle_deflater *deflater = *shared;
    if (!deflater->deflates)
        deflater->deflates =
            deflateInit2(&deflater->deflate, Z_BEST_SPEED, Z_DEFLATED, WINDOW, MEMORY, Z_DEFAULT_STRATEGY) == Z_OK;
    else
        deflateReset(&deflater->deflate);
    return deflater->deflates ? &deflater->deflate : NULL;
}

static unsigned step_of(size_t size)
{
    return size < MAX_SIZE ? (unsigned)size : MAX_SIZE;
}

/* Doubles the room, up to one byte more than the limit: the extra byte shows that a message is too long. */
static bool make_room(inflated *to)
{
    uint64_t room = to->room ? to->room * 2 : FIRST_ROOM;
    if (room > to->most + 1)
        room = to->most + 1;
    size_t size = to->message ? to->message->size : 0;
    heddle_websocket_message *message = realloc(to->message, sizeof(*message) + room);
    if (!message)
        return false;
    message->size = size;
    to->message = message;
    to->room = room;
    return true;
}

/*
 * Inflates these bytes. Returns Z_OK if all were used, Z_STREAM_END if they also end with a final block, Z_BUF_ERROR if
 * the result is too long, or another error of zlib.
 */
static int inflate_bytes(z_stream *stream, inflated *to, const char *bytes, size_t size)
{
    bool ended = false;
    stream->next_in = (unsigned char *)bytes;
    stream->avail_in = 0;
    for (size_t left = size;;) {
        if (stream->avail_in == 0) {
            stream->avail_in = step_of(left);
            left -= stream->avail_in;
        }
        if (to->message->size == to->room && !make_room(to))
            return Z_MEM_ERROR;
        unsigned room = step_of(to->room - to->message->size);
        stream->next_out = (unsigned char *)to->message->bytes + to->message->size;
        stream->avail_out = room;
        int result = inflate(stream, Z_SYNC_FLUSH);
        to->message->size += room - stream->avail_out;
        if (to->message->size > to->most)
            return Z_BUF_ERROR;
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return result == Z_MEM_ERROR ? Z_MEM_ERROR : Z_DATA_ERROR;
        ended = result == Z_STREAM_END;
        if (ended && inflateReset(stream) != Z_OK)
            return Z_DATA_ERROR;
        if (stream->avail_in == 0 && left == 0 && (ended || stream->avail_out))
            return ended ? Z_STREAM_END : Z_OK;
    }
}

/* A compressed message must end where a block ends (RFC 7692, section 7.2.1). */
static int inflate_message(z_stream *stream, inflated *to, const heddle_websocket_message *from)
{
    int result = inflate_bytes(stream, to, from->bytes, from->size);
    if (result != Z_OK && result != Z_STREAM_END)
        return result;
    result = inflate_bytes(stream, to, (const char *)TAIL, sizeof(TAIL));
    if (result == Z_OK && !(stream->data_type & BETWEEN_BLOCKS))
        return Z_DATA_ERROR;
    return result == Z_STREAM_END ? Z_OK : result;
}

static heddle_websocket_event judge_inflated(heddle_websocket_reader *reader, const inflated *to, int result,
                                             bool by_ratio)
{
    if (result == Z_MEM_ERROR)
        return HEDDLE_WEBSOCKET_NO_MEMORY;
    if (result == Z_BUF_ERROR)
        return heddle_websocket_reader_fail(reader, HEDDLE_WEBSOCKET_TOO_BIG,
                                            by_ratio ? "the compression ratio of the message is too high"
                                                     : "the message is too big");
    if (result != Z_OK)
        return heddle_websocket_reader_fail(reader, HEDDLE_WEBSOCKET_INVALID_DATA, "a compressed message is malformed");
    if (to->message->text && !heddle_utf8_is_valid(to->message->bytes, to->message->size))
        return heddle_websocket_reader_fail(reader, HEDDLE_WEBSOCKET_INVALID_DATA, "a text message is not UTF-8");
    return HEDDLE_WEBSOCKET_HAS_MESSAGE;
}

heddle_websocket_event heddle_websocket_inflate(heddle_deflater **deflater, heddle_websocket_reader *reader,
                                                const heddle_websocket_limits *limits)
{
    const heddle_websocket_message *from = reader->message;
    if (from->size == 0) { /* some libraries send no block at all for an empty message */
        reader->message->compressed = false;
        return HEDDLE_WEBSOCKET_HAS_MESSAGE;
    }
    z_stream *stream = reset_inflate(deflater);
    inflated to = {.most = (uint64_t)from->size * HEDDLE_INFLATE_RATIO};
    if (to.most < HEDDLE_INFLATE_FREE)
        to.most = HEDDLE_INFLATE_FREE;
    bool by_ratio = to.most < limits->message;
    if (!by_ratio)
        to.most = limits->message;
    if (!stream || !make_room(&to))
        return HEDDLE_WEBSOCKET_NO_MEMORY;
    *to.message = (heddle_websocket_message){.text = from->text};
    heddle_websocket_event event = judge_inflated(reader, &to, inflate_message(stream, &to, from), by_ratio);
    if (event == HEDDLE_WEBSOCKET_HAS_MESSAGE) {
        free(heddle_websocket_take_message(reader));
        reader->message = to.message;
    } else {
        free(to.message);
    }
    return event;
}

size_t heddle_websocket_deflate(heddle_deflater **deflater, const char *bytes, size_t size, char *to)
{
    z_stream *stream;
    if (!heddle_deflate_is_worthwhile(size) || !(stream = reset_deflate(deflater)))
        return 0;
    stream->next_in = (unsigned char *)bytes;
    stream->avail_in = (unsigned)size;
    stream->next_out = (unsigned char *)to;
    stream->avail_out = (unsigned)size;
    /* zlib has written everything only if some room is left. */
    if (deflate(stream, Z_SYNC_FLUSH) != Z_OK || stream->avail_out == 0)
        return 0;
    return size - stream->avail_out - sizeof(TAIL);
}

#else

bool heddle_deflate_is_available(void)
{
    return false;
}

void heddle_deflater_free(heddle_deflater *deflater)
{
}

/*
 * Not called: without zlib, no connection negotiates compression, and a WebSocket with compression that is handed off
 * to this process is closed.
 */
heddle_websocket_event heddle_websocket_inflate(heddle_deflater **deflater, heddle_websocket_reader *reader,
                                                const heddle_websocket_limits *limits)
{
    return heddle_websocket_reader_fail(reader, HEDDLE_WEBSOCKET_INTERNAL_ERROR, "this server was built without zlib");
}

size_t heddle_websocket_deflate(heddle_deflater **deflater, const char *bytes, size_t size, char *to)
{
    return 0;
}

#endif
