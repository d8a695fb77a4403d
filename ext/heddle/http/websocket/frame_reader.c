#include "http/websocket/frame_reader.h"

typedef enum {
    HEAD,    /* within a frame's head */
    PAYLOAD, /* within a frame's payload */
    ENDED,  /* nothing more is read: the caller has ended the reader, or the peer has violated the protocol */
} stage;

enum {
    FIRST_ROOM = 512, /* bytes: the initial room for a message that is not complete */
    DEFLATE_MARGIN = 64,
};

void heddle_websocket_reader_start(heddle_websocket_reader *reader, bool from_client)
{
    *reader = (heddle_websocket_reader){.from_client = from_client, .head_needed = 2};
}

void heddle_websocket_reader_end(heddle_websocket_reader *reader)
{
    free(reader->message);
    reader->message = NULL;
    reader->stage = ENDED;
}

heddle_websocket_message *heddle_websocket_take_message(heddle_websocket_reader *reader)
{
    heddle_websocket_message *message = reader->message;
    reader->message = NULL;
    reader->room = 0;
    return message;
}

heddle_websocket_event heddle_websocket_reader_fail(heddle_websocket_reader *reader, unsigned code,
                                                    const char *failure)
{
    heddle_websocket_reader_end(reader);
    reader->code = (uint16_t)code;
    reader->failure = failure;
    return HEDDLE_WEBSOCKET_FAILED;
}

static heddle_websocket_event fail_protocol(heddle_websocket_reader *reader, const char *failure)
{
    return heddle_websocket_reader_fail(reader, HEDDLE_WEBSOCKET_PROTOCOL_ERROR, failure);
}

static bool is_control(const heddle_websocket_reader *reader)
{
    return reader->opcode & 8;
}

/* -- heads --------------------------------------------------------------------------------------------------------- */

/* Returns the length of the whole head. */
static uint8_t find_head_length(const uint8_t *head)
{
    uint8_t length = head[1] & 0x7f;
    return (uint8_t)(2 + (length == 126 ? 2 : length == 127 ? 8 : 0) + (head[1] & 0x80 ? 4 : 0));
}

static uint64_t read_payload_size(const uint8_t *head)
{
    unsigned length = head[1] & 0x7f, bytes = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (!bytes)
        return length;
    uint64_t size = 0;
    for (unsigned i = 0; i < bytes; i++)
        size = size << 8 | head[2 + i];
    return size;
}

/*
 * Returns the smallest payload size that may use this form of length: senders must use the shortest form (section 5.2).
 */
static uint64_t find_least_size(const uint8_t *head)
{
    uint8_t length = head[1] & 0x7f;
    return length == 127 ? 65536 : length == 126 ? 126 : 0;
}

/* Checks the first two bytes. Returns NO_EVENT if they are valid. */
static heddle_websocket_event judge_first_bytes(heddle_websocket_reader *reader)
{
    const uint8_t *head = reader->head;
    bool masked = head[1] & 0x80, compressed = head[0] & 0x40;
    reader->final = head[0] & 0x80;
    reader->opcode = head[0] & 0x0f;
    if (head[0] & 0x30)
        return fail_protocol(reader, "a reserved bit is set");
    if (compressed &&
        (!reader->allows_deflate || is_control(reader) || reader->opcode == HEDDLE_WEBSOCKET_CONTINUATION))
        return fail_protocol(reader, "the reserved bit 1 is set");
    if ((reader->opcode > HEDDLE_WEBSOCKET_BINARY && reader->opcode < HEDDLE_WEBSOCKET_CLOSE) ||
        reader->opcode > HEDDLE_WEBSOCKET_PONG)
        return fail_protocol(reader, "the opcode is reserved");
    if (reader->from_client && !masked)
        return fail_protocol(reader, "a client's frame is not masked");
    if (!reader->from_client && masked)
        return fail_protocol(reader, "a server's frame is masked");
    if (is_control(reader)) {
        if (!reader->final)
            return fail_protocol(reader, "a control frame is fragmented");
        if ((head[1] & 0x7f) > HEDDLE_WEBSOCKET_CONTROL)
            return fail_protocol(reader, "a control frame is longer than 125 bytes");
    } else if (reader->opcode == HEDDLE_WEBSOCKET_CONTINUATION && !reader->in_message) {
        return fail_protocol(reader, "a continuation frame has no message to continue");
    } else if (reader->opcode != HEDDLE_WEBSOCKET_CONTINUATION && reader->in_message) {
        return fail_protocol(reader, "a message begins within another one");
    }
    return HEDDLE_WEBSOCKET_NO_EVENT;
}

static heddle_websocket_event begin_message(heddle_websocket_reader *reader)
{
    reader->message = malloc(sizeof(*reader->message));
    if (!reader->message)
        return HEDDLE_WEBSOCKET_NO_MEMORY;
    *reader->message = (heddle_websocket_message){
        .text = reader->opcode == HEDDLE_WEBSOCKET_TEXT,
        .compressed = reader->head[0] & 0x40,
    };
    reader->room = 0;
    reader->fragments = 0;
    reader->utf8 = (heddle_utf8){0};
    reader->in_message = true;
    return HEDDLE_WEBSOCKET_NO_EVENT;
}

/*
 * Returns how many payload bytes all frames of the message may have together. This is the limit of a message, and a
 * little more if it is compressed, because incompressible data grows (RFC 1951, section 3.2.4).
 */
static uint64_t limit_wire_bytes(const heddle_websocket_reader *reader, const heddle_websocket_limits *limits)
{
    return reader->message->compressed ? limits->message + (limits->message >> 10) + DEFLATE_MARGIN : limits->message;
}

/* Begins a frame when its head is complete. Returns NO_EVENT if the head is valid. */
static heddle_websocket_event begin_frame(heddle_websocket_reader *reader, const heddle_websocket_limits *limits)
{
    uint64_t size = read_payload_size(reader->head);
    if (size >> 63)
        return fail_protocol(reader, "a frame's length has its top bit set");
    if (size < find_least_size(reader->head))
        return fail_protocol(reader, "a frame's length is not in its shortest form");
    reader->size = reader->left = size;
    if (reader->from_client)
        memcpy(reader->mask, reader->head + reader->head_needed - 4, 4);
    reader->stage = PAYLOAD;
    reader->head_size = 0;
    reader->head_needed = 2;
    reader->control_size = is_control(reader) ? 0 : reader->control_size;
    if (is_control(reader))
        return HEDDLE_WEBSOCKET_NO_EVENT;
    if (reader->opcode != HEDDLE_WEBSOCKET_CONTINUATION && begin_message(reader) == HEDDLE_WEBSOCKET_NO_MEMORY)
        return HEDDLE_WEBSOCKET_NO_MEMORY;
    if (++reader->fragments > limits->fragments)
        return heddle_websocket_reader_fail(reader, HEDDLE_WEBSOCKET_TOO_BIG, "the message has too many fragments");
    if (size > limit_wire_bytes(reader, limits) - reader->message->size)
        return heddle_websocket_reader_fail(reader, HEDDLE_WEBSOCKET_TOO_BIG, "the message is too big");
    return HEDDLE_WEBSOCKET_NO_EVENT;
}

/* Reads bytes of a head. Returns the number of bytes it has used. Sets *event, to NO_EVENT if there is none. */
static size_t take_head(heddle_websocket_reader *reader, const heddle_websocket_limits *limits, const char *bytes,
                        size_t size, heddle_websocket_event *event)
{
    size_t used = 0;
    *event = HEDDLE_WEBSOCKET_NO_EVENT;
    while (used < size && *event == HEDDLE_WEBSOCKET_NO_EVENT && reader->stage == HEAD) {
        reader->head[reader->head_size++] = (uint8_t)bytes[used++];
        if (reader->head_size == 2) {
            *event = judge_first_bytes(reader);
            reader->head_needed = find_head_length(reader->head);
        }
        if (reader->head_size >= 2 && reader->head_size == reader->head_needed &&
            *event == HEDDLE_WEBSOCKET_NO_EVENT)
            *event = begin_frame(reader, limits);
    }
    return used;
}

/* -- payloads ------------------------------------------------------------------------------------------------------ */

static bool make_room(heddle_websocket_reader *reader, size_t size)
{
    heddle_websocket_message *message = reader->message;
    if (reader->room - message->size >= size)
        return true;
    /* Allocates memory for received bytes only: a client must not occupy memory by announcing a large frame. */
    size_t room = message->size + size;
    if (size < reader->left || !reader->final) {
        size_t doubled = reader->room ? reader->room * 2 : FIRST_ROOM;
        if (room < doubled)
            room = doubled;
    }
    message = realloc(message, sizeof(*message) + room);
    if (!message)
        return false;
    reader->message = message;
    reader->room = room;
    return true;
}

static heddle_websocket_event take_data(heddle_websocket_reader *reader, const char *bytes, size_t size)
{
    if (!make_room(reader, size))
        return HEDDLE_WEBSOCKET_NO_MEMORY;
    heddle_websocket_message *message = reader->message;
    /* A compressed text is checked when it is inflated (permessage_deflate.c). */
    if (message->text && !message->compressed && !heddle_utf8_check(&reader->utf8, bytes, size))
        return heddle_websocket_reader_fail(reader, HEDDLE_WEBSOCKET_INVALID_DATA, "a text message is not UTF-8");
    memcpy(message->bytes + message->size, bytes, size);
    message->size += size;
    return HEDDLE_WEBSOCKET_NO_EVENT;
}

static heddle_websocket_event end_close(heddle_websocket_reader *reader)
{
    if (reader->control_size == 1)
        return fail_protocol(reader, "the payload of a close frame has only one byte");
    if (reader->control_size == 0) {
        reader->code = HEDDLE_WEBSOCKET_NO_STATUS;
        return HEDDLE_WEBSOCKET_HAS_CLOSE;
    }
    unsigned code = (unsigned)(uint8_t)reader->control[0] << 8 | (uint8_t)reader->control[1];
    if (!heddle_websocket_code_is_valid(code))
        return fail_protocol(reader, "a close frame has an invalid code");
    if (!heddle_utf8_is_valid(reader->control + 2, reader->control_size - 2u))
        return heddle_websocket_reader_fail(reader, HEDDLE_WEBSOCKET_INVALID_DATA,
                                            "a close frame's reason is not UTF-8");
    reader->code = (uint16_t)code;
    return HEDDLE_WEBSOCKET_HAS_CLOSE;
}

static heddle_websocket_event end_message(heddle_websocket_reader *reader)
{
    heddle_websocket_message *message = reader->message;
    if (!reader->final)
        return HEDDLE_WEBSOCKET_NO_EVENT;
    reader->in_message = false;
    if (message->text && !message->compressed && !heddle_utf8_is_complete(&reader->utf8))
        return heddle_websocket_reader_fail(reader, HEDDLE_WEBSOCKET_INVALID_DATA,
                                            "a text message ends within a character");
    return HEDDLE_WEBSOCKET_HAS_MESSAGE;
}

static heddle_websocket_event end_frame(heddle_websocket_reader *reader)
{
    reader->stage = HEAD;
    switch (reader->opcode) {
    case HEDDLE_WEBSOCKET_PING:
        return HEDDLE_WEBSOCKET_HAS_PING;
    case HEDDLE_WEBSOCKET_PONG:
        return HEDDLE_WEBSOCKET_HAS_PONG;
    case HEDDLE_WEBSOCKET_CLOSE:
        return end_close(reader);
    default:
        return end_message(reader);
    }
}

/* Reads bytes of a payload. Returns the number of bytes it has used. Sets *event, to NO_EVENT if there is none. */
static size_t take_payload(heddle_websocket_reader *reader, char *bytes, size_t size, heddle_websocket_event *event)
{
    size_t used = reader->left < size ? (size_t)reader->left : size;
    *event = HEDDLE_WEBSOCKET_NO_EVENT;
    if (used) {
        if (reader->from_client)
            heddle_websocket_mask(bytes, used, reader->mask, reader->size - reader->left);
        if (is_control(reader)) {
            memcpy(reader->control + reader->control_size, bytes, used);
            reader->control_size += (uint8_t)used;
        } else {
            *event = take_data(reader, bytes, used);
        }
        reader->left -= used;
    }
    if (*event == HEDDLE_WEBSOCKET_NO_EVENT && reader->left == 0)
        *event = end_frame(reader);
    return used;
}

heddle_websocket_event heddle_websocket_read(heddle_websocket_reader *reader, const heddle_websocket_limits *limits,
                                             char *bytes, size_t size, size_t *used)
{
    heddle_websocket_event event = HEDDLE_WEBSOCKET_NO_EVENT;
    *used = 0;
    while (event == HEDDLE_WEBSOCKET_NO_EVENT) {
        if (reader->stage == ENDED)
            return HEDDLE_WEBSOCKET_FAILED;
        if (reader->stage == HEAD && *used == size)
            break;
        if (reader->stage == PAYLOAD && *used == size && reader->left)
            break;
        if (reader->stage == HEAD)
            *used += take_head(reader, limits, bytes + *used, size - *used, &event);
        else
            *used += take_payload(reader, bytes + *used, size - *used, &event);
    }
    return event;
}
