#ifndef HEDDLE_H2_PROGRAM_H
#define HEDDLE_H2_PROGRAM_H

/*
 * A session of HTTP/2, server or client, whose input is a program: each instruction is a frame, a call of the owner, a
 * pull of output or a step of time. So the fuzzer reaches states that bytes of a client alone don't lead to. After each
 * instruction the session's own books must agree.
 */

#include "fuzz.h"
#include "http/h2/session_state.h"

enum {
    PROGRAM_STREAMS = 256,
    PROGRAM_FRAME = 20000,
    PROGRAM_OUTPUT = 200000,
    PROGRAM_BODY = 70000,
    PROGRAM_HEADER = 9,
};

/* What the owner does in its callbacks: bits of a byte of the input. */
enum {
    ANSWER = 1,
    ANSWER_ENDS = 2,
    CONSUME = 4,
    KEEP = 8,
    RELEASE_AT_END = 16,
    RELEASE_AT_RESET = 32,
    WRITE_AT_WINDOW = 64,
    RELEASE_AT_COMPLETE = 128,
};

static struct {
    const uint8_t *at, *end;
    heddle_h2_session *session;
    int64_t now;
    uint32_t next_stream;
    size_t step; /* bytes that a frame is fed in; 0: all */
    uint8_t policy;
    heddle_h2_stream *held[PROGRAM_STREAMS];
    unsigned held_count;
    int loans; /* that have not ended */
    char *output;
} program;

static heddle_h2_limits limits;
static heddle_h2_workspace workspace;
static char body[PROGRAM_BODY];

/* Called around what the harness itself allocates, which must not fail. */
static void program_pause_failures(bool pause);

/* -- the owner ----------------------------------------------------------------------------------------------------- */

static bool is_held(const heddle_h2_stream *stream)
{
    for (unsigned i = 0; i < program.held_count; i++) {
        if (program.held[i] == stream)
            return true;
    }
    return false;
}

static void hold_stream(heddle_h2_stream *stream)
{
    PROMISE(!is_held(stream) && program.held_count < PROGRAM_STREAMS);
    program.held[program.held_count++] = stream;
}

static void release_stream(heddle_h2_stream *stream)
{
    unsigned at = 0;
    while (program.held[at] != stream)
        PROMISE(++at < program.held_count);
    program.held[at] = program.held[--program.held_count];
    heddle_h2_release(program.session, stream);
}

static void release_if(bool wanted, heddle_h2_stream *stream)
{
    PROMISE(is_held(stream));
    if (wanted)
        release_stream(stream);
}

static void end_loan(void *loan)
{
    (void)loan;
    PROMISE(program.loans-- > 0);
}

static void touch(const char *bytes, size_t size)
{
    program_pause_failures(true);
    free(fuzz_copy(bytes, size)); /* reads each byte */
    program_pause_failures(false);
}

static void on_request(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_h2_request *request)
{
    hold_stream(stream);
    touch(request->bytes, request->size);
    for (unsigned i = 0; i < request->head.field_count; i++) {
        fuzz_inside(request->head.fields[i].name, request->size);
        fuzz_inside(request->head.fields[i].value, request->size);
    }
    heddle_h2_field field = {"x-a", "b", 3, 1};
    if (program.policy & ANSWER)
        heddle_h2_write_head(session, stream, 200, &field, 1, program.policy & ANSWER_ENDS);
}

static void on_rejection(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_rejection *rejection,
                         heddle_method method)
{
    (void)method;
    hold_stream(stream);
    heddle_h2_write_head(session, stream, rejection->status, NULL, 0, true);
    if (is_held(stream))
        release_stream(stream);
}

static void on_data(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size)
{
    PROMISE(is_held(stream));
    touch(bytes, size);
    if (program.policy & CONSUME)
        heddle_h2_consume(session, stream, size);
    else if (program.policy & KEEP)
        heddle_h2_keep(session, stream, size);
}

static void on_end(heddle_h2_session *session, heddle_h2_stream *stream)
{
    (void)session;
    release_if(program.policy & RELEASE_AT_END, stream);
}

static void on_reset(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error)
{
    (void)session;
    (void)error;
    release_if(program.policy & RELEASE_AT_RESET, stream);
}

static void on_window(heddle_h2_session *session, heddle_h2_stream *stream)
{
    PROMISE(is_held(stream));
    if (program.policy & WRITE_AT_WINDOW)
        heddle_h2_write(session, stream, body, 5000);
}

static void on_complete(heddle_h2_session *session, heddle_h2_stream *stream)
{
    (void)session;
    release_if(program.policy & RELEASE_AT_COMPLETE, stream);
}

static void on_response(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_h2_response *response)
{
    (void)session;
    PROMISE(is_held(stream));
    touch(response->bytes, response->size);
}

static void on_malformed(heddle_h2_session *session, const heddle_h2_stream *stream, heddle_h2_error error)
{
    PROMISE(session->reason && *session->reason);
    PROMISE(!stream || is_held(stream));
    (void)error;
}

static const heddle_h2_operations operations = {
    .on_request = on_request,
    .on_rejection = on_rejection,
    .on_data = on_data,
    .on_end = on_end,
    .on_reset = on_reset,
    .on_window = on_window,
    .on_complete = on_complete,
    .on_response = on_response,
    .on_malformed = on_malformed,
};

/* -- the session's books ------------------------------------------------------------------------------------------- */

static void check_books(void)
{
    const heddle_h2_session *session = program.session;
    uint32_t listed = 0;
    size_t queued = 0, lent = 0;
    for (uint32_t i = 0; i < session->stream_count; i++) {
        const heddle_h2_stream *stream = session->streams[i];
        PROMISE(i == 0 || session->streams[i - 1]->id < stream->id);
        PROMISE(stream->listed == (stream->queued > 0 && stream->send_window > 0));
        PROMISE(stream->held || !heddle_h2_state_is_closed(stream->state));
        size_t own = 0;
        for (const heddle_h2_segment *segment = stream->first; segment; segment = segment->next) {
            own += segment->size;
            lent += segment->end_loan ? segment->size : 0;
        }
        PROMISE(own == stream->queued && stream->kept <= stream->unconsumed);
        PROMISE(stream->send_window <= INT32_MAX && stream->receive_window <= INT32_MAX);
        listed += stream->listed;
        queued += stream->queued;
    }
    PROMISE(listed == session->listed_count && queued == session->queued && lent == session->lent);
    PROMISE(!session->dead && session->depth == 0 && session->stream_count <= limits.max_streams);
    PROMISE(session->receive_window <= INT32_MAX && session->send_window <= INT32_MAX);
    PROMISE(session->decoder.table.size <= HEDDLE_HPACK_DEFAULT_SIZE);
    PROMISE(heddle_bytes_left(&session->output) < (1 << 20));
}

/* -- instructions -------------------------------------------------------------------------------------------------- */

static size_t write_header(uint8_t *frame, size_t length, uint8_t type, uint8_t flags, uint32_t stream)
{
    const uint8_t header[PROGRAM_HEADER] = {(uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length, type,
                                            flags, (uint8_t)(stream >> 24), (uint8_t)(stream >> 16),
                                            (uint8_t)(stream >> 8), (uint8_t)stream};
    memcpy(frame, header, sizeof(header));
    return sizeof(header) + length;
}

static void write_number(uint8_t *bytes, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(number >> (24 - 8 * i));
}

/* Any frame, whose payload follows in the input. */
static size_t raw_frame(uint8_t *frame, uint8_t type, uint8_t flags, uint8_t stream, size_t length)
{
    size_t left = (size_t)(program.end - program.at);
    uint32_t id = stream < 128 ? stream % 32 : stream == 255 ? INT32_MAX : program.next_stream;
    if (stream >= 128 && stream != 255 && type == HEDDLE_H2_HEADERS)
        program.next_stream += 2;
    length = left < length ? left : length;
    memcpy(frame + PROGRAM_HEADER, program.at, length);
    program.at += length;
    return write_header(frame, length, type, flags, id);
}

/* A whole request or response. */
static size_t headers_frame(uint8_t *frame, uint8_t a, uint8_t b)
{
    static const uint8_t get[] = "\x82\x86\x84\x41\x01" "a", post[] = "\x83\x86\x84\x41\x01" "a\x5c\x03" "100";
    static const uint8_t ok[] = "\x88";
    bool client = program.session->is_client;
    const uint8_t *block = client ? ok : b & 1 ? post : get;
    size_t size = (client ? sizeof(ok) : b & 1 ? sizeof(post) : sizeof(get)) - 1;
    uint32_t id = client ? 1 + 2U * (a % 8) : program.next_stream;
    program.next_stream += client ? 0 : 2;
    memcpy(frame + PROGRAM_HEADER, block, size);
    return write_header(frame, size, HEDDLE_H2_HEADERS, (uint8_t)(HEDDLE_H2_END_HEADERS | (b & 2 ? 1 : 0)), id);
}

static size_t data_frame(uint8_t *frame, uint8_t a, uint8_t b, uint8_t c)
{
    size_t length = (size_t)b * 64 + (c & 63);
    length = length > HEDDLE_H2_FRAME_SIZE ? HEDDLE_H2_FRAME_SIZE : length;
    memset(frame + PROGRAM_HEADER, 0, length);
    frame[PROGRAM_HEADER] = a; /* the padding, if there is any */
    return write_header(frame, length, HEDDLE_H2_DATA, (uint8_t)((c & 64 ? 1 : 0) | (c & 128 ? 8 : 0)),
                        1 + 2U * (a % 16));
}

static size_t number_frame(uint8_t *frame, uint8_t type, uint32_t stream, uint32_t number)
{
    write_number(frame + PROGRAM_HEADER, number);
    return write_header(frame, 4, type, 0, stream);
}

static size_t setting_frame(uint8_t *frame, uint8_t name, uint32_t value)
{
    frame[PROGRAM_HEADER] = 0;
    frame[PROGRAM_HEADER + 1] = name;
    write_number(frame + PROGRAM_HEADER + 2, value);
    return write_header(frame, 6, HEDDLE_H2_SETTINGS, 0, 0);
}

/* PING or GOAWAY. */
static size_t eight_bytes_frame(uint8_t *frame, uint8_t type, uint8_t a, uint8_t b)
{
    memset(frame + PROGRAM_HEADER, 0, 8);
    frame[PROGRAM_HEADER + 3] = a;
    frame[PROGRAM_HEADER + 7] = b % 15;
    return write_header(frame, 8, type, 0, 0);
}

static void pull(size_t room)
{
    PROMISE(heddle_h2_pull(program.session, program.now, program.output, room) <= room);
}

static void open_stream(uint8_t a)
{
    heddle_h2_field fields[] = {{":method", "GET", 7, 3}, {":path", "/", 5, 1}, {":scheme", "http", 7, 4},
                                {":authority", "a", 10, 1}, {"x-y", "zzz", 3, 3}};
    heddle_h2_stream *stream;
    if (heddle_h2_may_open(program.session) &&
        heddle_h2_open_stream(program.session, fields, 5, a & 1, !(a & 2), &stream) == HEDDLE_H2_WRITTEN)
        hold_stream(stream);
}

/* A call of the owner for a stream that it holds. */
static void call_session(heddle_h2_stream *stream, uint8_t b, uint8_t c)
{
    heddle_h2_session *session = program.session;
    heddle_h2_field fields[] = {{"x-a", "bcd", 3, 3}, {"Content-Type", "t", 12, 1}};
    session->now = program.now;
    switch (b % 14) {
    case 0: heddle_h2_write_head(session, stream, 200, fields, 2, c & 1); break;
    case 1: heddle_h2_write(session, stream, body, (size_t)c * 250); break;
    case 2: program.loans += heddle_h2_lend(session, stream, body, (size_t)c * 250, end_loan, NULL); break;
    case 3: heddle_h2_finish(session, stream); break;
    case 4: heddle_h2_reset(session, stream, c & 15); break;
    case 5: release_stream(stream); break;
    case 6: heddle_h2_consume(session, stream, (size_t)c * 64); break;
    case 7: heddle_h2_keep(session, stream, (size_t)c * 64); break;
    case 8: heddle_h2_write_whole(session, stream, body, c, body, (size_t)c * 100); break;
    case 9:
        if (heddle_h2_may_write(stream))
            stream->tunnel = true;
        break;
    case 10: heddle_h2_end_tunnel(session, stream, c & 1); break;
    case 11: heddle_h2_set_priority(session, stream, c & 15, c & 16); break;
    case 12:
        (void)heddle_h2_exceeds_share(session, stream);
        (void)heddle_h2_room(session, stream);
        break;
    default: heddle_h2_write_head(session, stream, 103, fields, 1, false); break;
    }
}

/* In pieces, each a copy of exactly its size. A session that takes nothing more wants its output pulled. */
static void feed(const uint8_t *frame, size_t size)
{
    size_t step = program.step ? program.step : size;
    for (size_t at = 0; at < size;) {
        size_t piece = size - at < step ? size - at : step;
        program_pause_failures(true);
        char *copy = fuzz_copy((const char *)frame + at, piece);
        program_pause_failures(false);
        size_t used = heddle_h2_feed(program.session, program.now, copy, piece);
        free(copy);
        PROMISE(used <= piece);
        check_books();
        if (used == 0) {
            pull(PROGRAM_OUTPUT / 2);
            heddle_h2_feed(program.session, program.now, "", 0);
            break;
        }
        at += used;
    }
}

static void run_instruction(void)
{
    uint8_t code = program.at[0], a = program.at[1], b = program.at[2], c = program.at[3];
    uint8_t frame[PROGRAM_FRAME];
    size_t size = 0;
    program.at += 4;
    switch (code & 15) {
    case 0: size = raw_frame(frame, a, b, c, (code >> 4) * 3); break;
    case 1: size = raw_frame(frame, a % 11, b, c, (code >> 4) * 3); break;
    case 2: size = raw_frame(frame, a, b, c, (code >> 4) * 40); break;
    case 3: size = headers_frame(frame, a, b); break;
    case 4: size = data_frame(frame, a, b, c); break;
    case 5: size = number_frame(frame, HEDDLE_H2_WINDOW_UPDATE, a % 34, (uint32_t)b << (c & 31) & INT32_MAX); break;
    case 6: size = setting_frame(frame, a % 10, (uint32_t)b << (c & 31)); break;
    case 7: pull(HEDDLE_H2_PULL_ROOM + (size_t)a * 256); break;
    case 8:
        program.now += (int64_t)a << (b & 31);
        heddle_h2_expire(program.session, program.now);
        break;
    case 9:
        if (program.session->is_client)
            open_stream(a);
        else if (a == 255)
            heddle_h2_drain(program.session, program.now);
        break;
    case 10:
        if (program.held_count)
            call_session(program.held[a % program.held_count], b, c);
        break;
    case 11: program.policy = a; break;
    case 12: program.step = a; break;
    case 13: size = number_frame(frame, HEDDLE_H2_RST_STREAM, 1 + 2U * (a % 16), b); break;
    case 14:
        size = eight_bytes_frame(frame, program.session->is_client ? HEDDLE_H2_GOAWAY : HEDDLE_H2_PING, a, b);
        break;
    default:
        (void)heddle_h2_deadline(program.session);
        (void)heddle_h2_has_output(program.session);
        (void)heddle_h2_is_open(program.session);
        break;
    }
    feed(frame, size);
    check_books();
}

/* -- the program --------------------------------------------------------------------------------------------------- */

static void choose_limits(uint8_t choice)
{
    limits = choice & 1 ? heddle_h2_client_limits() : heddle_h2_default_limits();
    limits.max_streams = 8;
    limits.connect_protocol = choice & 2;
    if (choice & 4) {
        limits.stream_window = 100;
        limits.connection_window = 70000;
    }
    if (choice & 8) {
        limits.stream_output = 20000;
        limits.connection_output = 30000;
    }
}

/* The first byte chooses the side, the limits and the end, the second one what the owner does. */
static void run_program(const uint8_t *data, size_t size)
{
    static const uint8_t settings[PROGRAM_HEADER] = {[3] = HEDDLE_H2_SETTINGS};
    bool client = *data & 1;
    choose_limits(*data);
    program_pause_failures(true);
    memset(&program, 0, sizeof(program));
    program.at = data + 2;
    program.end = data + size;
    program.policy = data[1];
    program.now = program.next_stream = 1;
    program.output = malloc(PROGRAM_OUTPUT);
    PROMISE(program.output);
    program.session = heddle_h2_session_new(&operations, &limits, &workspace, NULL, program.now, client);
    PROMISE(program.session);
    program_pause_failures(false);
    if (!client)
        feed((const uint8_t *)HEDDLE_H2_PREFACE, HEDDLE_H2_PREFACE_SIZE);
    feed(settings, sizeof(settings));
    while (program.end - program.at >= 4)
        run_instruction();
    pull(PROGRAM_OUTPUT / 2);
    if (*data & 32)
        heddle_h2_abort(program.session, program.now, HEDDLE_H2_NO_ERROR);
    check_books();
    while (*data & 64 && program.held_count)
        release_stream(program.held[0]);
    heddle_h2_session_free(program.session);
    PROMISE(program.loans == 0);
    heddle_h2_workspace_free(&workspace);
    free(program.output);
}

#endif
