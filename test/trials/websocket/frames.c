/*
 * Frames without end for the reader of WebSockets (http/websocket: frame_reader.c, permessage_deflate.c), in pieces of
 * any size. Half of the streams are sound: each message, ping and pong must come out as it went in. In the others some
 * bytes are changed: then no memory may be touched that is not the reader's (ASan), limits must hold, text must be
 * UTF-8, and a reader that has failed must stay failed.
 *
 *   frames COUNT SEED
 */

#include "http/websocket/permessage_deflate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROOM = 1 << 18,       /* bytes of a stream */
    BIGGEST = 40000,      /* bytes of a payload */
    FRAMES = 2000,        /* of a stream, at most */
    MESSAGE_LIMIT = 65536,
    FRAGMENT_LIMIT = 8,
};

static const heddle_websocket_limits limits = {.message = MESSAGE_LIMIT, .fragments = FRAGMENT_LIMIT};
static char stream[ROOM], payload[BIGGEST], deflated[BIGGEST];
static size_t stream_size;
static uint64_t state, sent_hash, found_hash, frames, failures, messages;
static heddle_deflater *deflater;

static void fail(const char *why)
{
    fprintf(stderr, "frames: %s\n", why);
    abort();
}

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static size_t draw_below(size_t bound)
{
    return (size_t)(draw() % bound);
}

/* FNV-1a over the kind and the bytes of what came. */
static uint64_t add_to_hash(uint64_t hash, char kind, const char *bytes, size_t size)
{
    hash = (hash ^ (uint8_t)kind) * UINT64_C(0x100000001b3) ^ size;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* -- what is sent -------------------------------------------------------------------------------------------------- */

static size_t draw_size(void)
{
    uint64_t kind = draw() % 1000;
    return kind < 990 ? draw_below(24) : kind < 998 ? draw_below(1000) : draw_below(BIGGEST);
}

static void fill_payload(size_t size, bool text)
{
    static const char *const letters[] = {"a", "b", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    size_t used = 0;
    while (text && used + 4 <= size) {
        const char *letter = letters[draw_below(5)];
        size_t length = strlen(letter);
        memcpy(payload + used, letter, length);
        used += length;
    }
    while (used < size)
        payload[used++] = text ? 'x' : (char)draw();
}

static void add_frame(unsigned first, const char *bytes, size_t size)
{
    uint8_t mask[4];
    uint64_t drawn = draw();
    memcpy(mask, &drawn, sizeof(mask));
    char *head = stream + stream_size;
    size_t used = heddle_websocket_write_head(head, (heddle_websocket_opcode)(first & 15), first & 0x40, size, mask);
    head[0] = (char)first;
    memcpy(head + used, bytes, size);
    heddle_websocket_mask(head + used, size, mask, 0);
    stream_size += used + size;
    frames++;
}

static void add_control(void)
{
    char bytes[HEDDLE_WEBSOCKET_CONTROL];
    size_t size = draw_below(sizeof(bytes) + 1);
    bool ping = draw() & 1;
    memset(bytes, (int)draw(), sizeof(bytes));
    add_frame(0x80 | (ping ? HEDDLE_WEBSOCKET_PING : HEDDLE_WEBSOCKET_PONG), bytes, size);
    sent_hash = add_to_hash(sent_hash, ping ? 'p' : 'o', bytes, size);
}

/* Fragments are cut anywhere, also within a character, and control frames come between them. */
static void add_message(bool deflates)
{
    bool text = draw() & 1;
    size_t size = draw_size(), compressed = 0, at = 0;
    const char *bytes = payload;
    fill_payload(size, text);
    uint64_t hash = add_to_hash(0, text ? 't' : 'b', payload, size);
    if (deflates && size >= HEDDLE_DEFLATE_LEAST &&
        (compressed = heddle_websocket_deflate(&deflater, payload, size, deflated)))
        bytes = deflated;
    size_t total = compressed ? compressed : size;
    unsigned first = (text ? HEDDLE_WEBSOCKET_TEXT : HEDDLE_WEBSOCKET_BINARY) | (compressed ? 0x40 : 0);
    for (size_t left = draw() % 8 ? 1 : 1 + draw_below(FRAGMENT_LIMIT); left > 0; left--) {
        size_t piece = left == 1 ? total - at : draw_below(total - at + 1);
        add_frame(first | (left == 1 ? 0x80 : 0), bytes + at, piece);
        at += piece;
        first = HEDDLE_WEBSOCKET_CONTINUATION;
        if (left > 1 && draw() % 4 == 0)
            add_control();
    }
    sent_hash = (sent_hash ^ hash) * UINT64_C(0x100000001b3);
    messages++;
}

/* Returns how many bytes were changed. */
static size_t break_stream(void)
{
    size_t count = 1 + draw_below(4);
    for (size_t i = 0; i < count; i++)
        stream[draw_below(stream_size)] ^= (char)(1 << draw_below(8));
    return count;
}

static void make_stream(bool deflates)
{
    uint64_t most = frames + 1 + draw_below(FRAMES);
    stream_size = 0;
    sent_hash = found_hash = 0;
    while (frames < most && stream_size + BIGGEST + 1024 * (FRAGMENT_LIMIT + 1) < ROOM) {
        if (draw() % 8)
            add_message(deflates);
        else
            add_control();
    }
}

/* -- what is read -------------------------------------------------------------------------------------------------- */

static void take_message(heddle_websocket_reader *reader)
{
    heddle_websocket_message *message = heddle_websocket_take_message(reader);
    if (message->size > MESSAGE_LIMIT)
        fail("a message is larger than the limit");
    if (message->text && !heddle_utf8_is_valid(message->bytes, message->size))
        fail("a text message is not UTF-8");
    uint64_t hash = add_to_hash(0, message->text ? 't' : 'b', message->bytes, message->size);
    found_hash = (found_hash ^ hash) * UINT64_C(0x100000001b3);
    free(message);
}

/* false: nothing more is read. */
static bool handle_event(heddle_websocket_reader *reader, heddle_websocket_event event)
{
    if (event == HEDDLE_WEBSOCKET_HAS_MESSAGE && reader->message->compressed)
        event = heddle_websocket_inflate(&deflater, reader, &limits);
    switch (event) {
    case HEDDLE_WEBSOCKET_HAS_MESSAGE:
        take_message(reader);
        return true;
    case HEDDLE_WEBSOCKET_HAS_PING:
    case HEDDLE_WEBSOCKET_HAS_PONG:
        found_hash = add_to_hash(found_hash, event == HEDDLE_WEBSOCKET_HAS_PING ? 'p' : 'o', reader->control,
                                 reader->control_size);
        return true;
    case HEDDLE_WEBSOCKET_NO_MEMORY:
        fail("there is no memory");
        return false;
    case HEDDLE_WEBSOCKET_FAILED:
        failures++;
        return false;
    default:
        return event == HEDDLE_WEBSOCKET_NO_EVENT;
    }
}

/* Returns whether the whole stream was read. The pieces are copies, so that ASan sees a byte too many. */
static bool read_stream(heddle_websocket_reader *reader)
{
    for (size_t at = 0; at < stream_size;) {
        size_t size = draw() % 4 ? 1 + draw_below(4096) : 1 + draw_below(16), done = 0;
        if (size > stream_size - at)
            size = stream_size - at;
        char *piece = malloc(size);
        memcpy(piece, stream + at, size);
        bool goes_on = true;
        while (goes_on && done < size) {
            size_t used;
            heddle_websocket_event event = heddle_websocket_read(reader, &limits, piece + done, size - done, &used);
            if (used > size - done)
                fail("more was used than there was");
            done += used;
            goes_on = handle_event(reader, event);
        }
        if (!goes_on && reader->failure) {
            size_t used;
            if (heddle_websocket_read(reader, &limits, piece, size, &used) != HEDDLE_WEBSOCKET_FAILED || used)
                fail("a reader that has failed reads on");
        }
        free(piece);
        at += size;
        if (!goes_on)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (bool sound = true; frames < count; sound = !sound) {
        heddle_websocket_reader reader = {0};
        bool deflates = draw() & 1;
        heddle_websocket_reader_start(&reader, true);
        reader.allows_deflate = deflates;
        make_stream(deflates);
        if (!sound)
            break_stream();
        bool whole = read_stream(&reader);
        if (sound && (!whole || found_hash != sent_hash || reader.in_message))
            fail("what came out is not what went in");
        heddle_websocket_reader_end(&reader);
    }
    heddle_deflater_free(deflater);
    printf("%" PRIu64 " frames of %" PRIu64 " messages, seed %" PRIu64 ": %" PRIu64 " changed streams were refused\n",
           frames, messages, seed, failures);
    return 0;
}
