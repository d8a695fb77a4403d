/* sources: http/websocket/frame_reader.c http/websocket/frame_head.c http/websocket/utf8.c http/websocket/permessage_deflate.c -DHEDDLE_ZLIB=1 -lz */

/*
 * Frames of a WebSocket's client: any bytes give the same messages and the same end however they are cut, within the
 * limits, and text is UTF-8. The first byte of an input says where it is cut, and with its top bit that messages may be compressed.
 */

#include "http/websocket/permessage_deflate.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST = 300, /* bytes of a message */
};

/* What came of it, hashed (FNV-1a). */
static uint64_t add(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* As in a loop: what one message leaves in it must not count for the next one. */
static heddle_deflater *deflater;

static uint64_t read_all(const char *bytes, size_t size, size_t step, bool deflates)
{
    const heddle_websocket_limits limits = {.message = MOST, .fragments = 5};
    heddle_websocket_reader reader;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    bool ended = false;
    heddle_websocket_reader_start(&reader, true);
    reader.allows_deflate = deflates;
    for (size_t at = 0; at < size && !ended; at += step) {
        size_t count = size - at < step ? size - at : step, offset = 0;
        char *piece = fuzz_copy(bytes + at, count);
        heddle_websocket_event event;
        do {
            size_t used;
            event = heddle_websocket_read(&reader, &limits, piece + offset, count - offset, &used);
            offset += used;
            if (event == HEDDLE_WEBSOCKET_HAS_MESSAGE && reader.message->compressed)
                event = heddle_websocket_inflate(&deflater, &reader, &limits);
            PROMISE(offset <= count && event != HEDDLE_WEBSOCKET_NO_MEMORY);
            if (event != HEDDLE_WEBSOCKET_NO_EVENT)
                hash = add(hash, &event, sizeof(event));
            if (event == HEDDLE_WEBSOCKET_HAS_MESSAGE) {
                heddle_websocket_message *message = heddle_websocket_take_message(&reader);
                PROMISE(message->size <= MOST);
                PROMISE(!message->text || heddle_utf8_is_valid(message->bytes, message->size));
                hash = add(hash, message->bytes, message->size);
                free(message);
            } else if (event == HEDDLE_WEBSOCKET_HAS_PING || event == HEDDLE_WEBSOCKET_HAS_PONG) {
                PROMISE(reader.control_size <= HEDDLE_WEBSOCKET_CONTROL);
                hash = add(hash, reader.control, reader.control_size);
            } else if (event != HEDDLE_WEBSOCKET_NO_EVENT) {
                PROMISE(event == HEDDLE_WEBSOCKET_HAS_CLOSE || reader.failure);
                hash = add(hash, &reader.code, sizeof(reader.code));
                ended = true;
            }
        } while (event != HEDDLE_WEBSOCKET_NO_EVENT && !ended);
        PROMISE(ended || offset == count);
        free(piece);
    }
    heddle_websocket_reader_end(&reader);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *bytes = (const char *)data + 1;
    bool deflates = data[0] & 0x80;
    size--;
    uint64_t whole = read_all(bytes, size, size, deflates);
    PROMISE(read_all(bytes, size, 1, deflates) == whole);
    PROMISE(read_all(bytes, size, data[0] % 16 + 2, deflates) == whole);
    return 0;
}
