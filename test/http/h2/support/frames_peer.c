/*
 * A server's session for a differential test. Reads commands, one a line, and answers each with a line of what happened:
 *
 *   new CONSUMES       a new connection; 0: bodies are never consumed
 *   feed HEX           bytes of the client
 *   answer STREAM      a response without content, if the stream still takes one
 *   reset STREAM       RST_STREAM, CANCEL, if the stream has not ended
 *
 * Events are words, bytes in them are hexadecimal: request:STREAM:METHOD:SCHEME:TARGET:NAME=VALUE…,
 * rejection:STREAM:STATUS, data:STREAM:BYTES, end:STREAM, gone:STREAM:CODE (the client has reset it). Of what the session
 * sends: reset:STREAM:CODE, error:CODE (GOAWAY), pong:BYTES, acknowledged (SETTINGS).
 */

#include "http/h2/session_state.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LINE = 1 << 18,
    STREAMS = 1024,
    /* As python3-h2's connection has them in frames_differential.py. */
    CONCURRENT = 4,
    WINDOW = HEDDLE_H2_DEFAULT_WINDOW,
};

static heddle_h2_limits limits;
static heddle_h2_workspace workspace;
static heddle_h2_session *session;
static heddle_h2_stream *held[STREAMS]; /* by (id - 1) / 2 */
static bool consumes;

static void print_hex(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        printf("%02x", (uint8_t)bytes[i]);
}

static heddle_h2_stream **place_of(uint32_t id)
{
    return &held[id / 2 % STREAMS];
}

/* -- what the session calls ---------------------------------------------------------------------------------------- */

static void on_request(heddle_h2_session *at, heddle_h2_stream *stream, const heddle_h2_request *request)
{
    (void)at;
    const heddle_request_head *head = &request->head;
    *place_of(stream->id) = stream;
    printf(" request:%u:", stream->id);
    print_hex(request->bytes + head->method.start, head->method.size);
    putchar(':');
    print_hex(request->bytes + head->target.start, head->target.size);
    for (unsigned i = 0; i < head->field_count; i++) {
        putchar(':');
        print_hex(request->bytes + head->fields[i].name.start, head->fields[i].name.size);
        putchar('=');
        print_hex(request->bytes + head->fields[i].value.start, head->fields[i].value.size);
    }
    if (request->ended)
        printf(" end:%u", stream->id);
}

static void on_rejection(heddle_h2_session *at, heddle_h2_stream *stream, const heddle_rejection *rejection,
                         heddle_method method)
{
    (void)method;
    *place_of(stream->id) = stream;
    printf(" rejection:%u:%d", stream->id, rejection->status);
    heddle_h2_write_head(at, stream, rejection->status, NULL, 0, true);
}

static void on_data(heddle_h2_session *at, heddle_h2_stream *stream, const char *bytes, size_t size)
{
    printf(" data:%u:", stream->id);
    print_hex(bytes, size);
    if (consumes)
        heddle_h2_consume(at, stream, size);
}

static void on_end(heddle_h2_session *at, heddle_h2_stream *stream)
{
    (void)at;
    printf(" end:%u", stream->id);
}

static void release(heddle_h2_stream *stream)
{
    *place_of(stream->id) = NULL;
    heddle_h2_release(session, stream);
}

static void on_reset(heddle_h2_session *at, heddle_h2_stream *stream, heddle_h2_error error)
{
    (void)at;
    if (stream->state == HEDDLE_H2_RESET_BY_PEER)
        printf(" gone:%u:%u", stream->id, (unsigned)error);
    release(stream);
}

static void on_window(heddle_h2_session *at, heddle_h2_stream *stream)
{
    (void)at;
    (void)stream;
}

static void on_complete(heddle_h2_session *at, heddle_h2_stream *stream)
{
    (void)at;
    release(stream);
}

static const heddle_h2_operations operations = {
    .on_request = on_request, .on_rejection = on_rejection, .on_data = on_data, .on_end = on_end, .on_reset = on_reset,
    .on_window = on_window, .on_complete = on_complete,
};

/* -- what the session sends ---------------------------------------------------------------------------------------- */

static void print_frame(const heddle_h2_frame *frame, const heddle_h2_piece *payload)
{
    switch (frame->type) {
    case HEDDLE_H2_RST_STREAM:
        printf(" reset:%u:%u", frame->stream, heddle_h2_get_32(payload->bytes));
        break;
    case HEDDLE_H2_GOAWAY:
        printf(" error:%u", heddle_h2_get_32(payload->bytes + 4));
        break;
    case HEDDLE_H2_PING:
        printf(" pong:");
        print_hex((const char *)payload->bytes, payload->size);
        break;
    case HEDDLE_H2_SETTINGS:
        if (frame->flags & HEDDLE_H2_ACK)
            printf(" acknowledged");
        break;
    default: /* windows are the receiver's own affair */
        break;
    }
}

/* A frame is pulled whole, so its payload is one piece. */
static void print_output(void)
{
    static uint8_t buffer[1 << 16];
    size_t size;
    while ((size = heddle_h2_pull(session, 1, buffer, sizeof(buffer))) > 0) {
        heddle_h2_reader reader = {0};
        heddle_h2_piece piece;
        const uint8_t *at = buffer;
        while (heddle_h2_read(&reader, &at, buffer + size, &piece) == HEDDLE_H2_BEGIN) {
            if (heddle_h2_read(&reader, &at, buffer + size, &piece) != HEDDLE_H2_LAST_PIECE)
                abort();
            print_frame(&reader.frame, &piece);
        }
    }
}

/* -- commands ------------------------------------------------------------------------------------------------------ */

static void end_connection(void)
{
    if (session)
        heddle_h2_session_free(session);
    memset(held, 0, sizeof(held));
}

static void begin_connection(bool consume)
{
    end_connection();
    limits = heddle_h2_default_limits();
    limits.max_streams = CONCURRENT;
    limits.stream_window = limits.connection_window = WINDOW;
    limits.keep_underscores = true;
    limits.connect_protocol = true;
    consumes = consume;
    session = heddle_h2_session_new(&operations, &limits, &workspace, NULL, 1, false);
    if (!session)
        abort();
}

/* A copy of exactly the size, so that reading behind it is seen. */
static void feed(const char *hex)
{
    size_t size = strspn(hex, "0123456789abcdef") / 2;
    uint8_t *bytes = malloc(size + !size);
    for (size_t i = 0; i < size; i++)
        sscanf(hex + 2 * i, "%2hhx", &bytes[i]);
    for (size_t used = 0, part; used < size; used += part) {
        part = heddle_h2_feed(session, 1, bytes + used, size - used);
        if (part == 0)
            break;
    }
    free(bytes);
}

static void answer(uint32_t id)
{
    heddle_h2_stream *stream = *place_of(id);
    if (stream)
        heddle_h2_write_head(session, stream, 200, NULL, 0, true);
}

static void reset(uint32_t id)
{
    heddle_h2_stream *stream = *place_of(id);
    if (!stream)
        return;
    heddle_h2_reset(session, stream, HEDDLE_H2_CANCEL);
    release(stream);
}

int main(void)
{
    static char line[LINE];
    while (fgets(line, sizeof(line), stdin)) {
        if (strncmp(line, "new ", 4) == 0)
            begin_connection(line[4] == '1');
        else if (strncmp(line, "feed ", 5) == 0)
            feed(line + 5);
        else if (strncmp(line, "answer ", 7) == 0)
            answer((uint32_t)strtoul(line + 7, NULL, 10));
        else if (strncmp(line, "reset ", 6) == 0)
            reset((uint32_t)strtoul(line + 6, NULL, 10));
        else
            abort();
        print_output();
        putchar('\n');
        fflush(stdout);
    }
    end_connection();
    heddle_h2_workspace_free(&workspace);
    return 0;
}
