#include "http/h2/session_state.h"

/* Reads frames: checks which frames are allowed when, and on which stream (RFC 9113, 4 to 6), and handles payloads. */

/* -- life ---------------------------------------------------------------------------------------------------------- */

heddle_h2_session *heddle_h2_session_new(const heddle_h2_operations *operations, const heddle_h2_limits *limits,
                                         heddle_h2_workspace *workspace, void *owner, int64_t now, bool is_client)
{
    heddle_h2_session *session = calloc(1, sizeof(*session));
    if (!session)
        return NULL;
    session->operations = operations;
    session->limits = limits;
    session->workspace = workspace;
    session->owner = owner;
    session->now = session->idle_since = now;
    session->send_window = session->peer_window = HEDDLE_H2_DEFAULT_WINDOW;
    session->peer_streams = UINT32_MAX;
    session->is_client = is_client;
    session->stage = is_client ? HEDDLE_H2_AT_FIRST_SETTINGS : HEDDLE_H2_AT_PREFACE;
    heddle_hpack_decoder_start(&session->decoder, HEDDLE_HPACK_DEFAULT_SIZE);
    heddle_hpack_encoder_start(&session->encoder);
    if (!heddle_h2_announce_settings(session)) {
        heddle_h2_session_free(session);
        return NULL;
    }
    return session;
}

void heddle_h2_session_free(heddle_h2_session *session)
{
    for (uint32_t i = 0; i < session->stream_count; i++) {
        heddle_h2_drop_output(session, session->streams[i]);
        free(session->streams[i]);
    }
    free(session->streams);
    free(session->schedule);
    free(session->remembered);
    heddle_hpack_table_free(&session->decoder.table);
    heddle_hpack_table_free(&session->encoder.table);
    heddle_bytes_reset(&session->gathered, 0);
    heddle_bytes_reset(&session->block, 0);
    heddle_bytes_reset(&session->output, 0);
    free(session);
}

void heddle_h2_workspace_free(heddle_h2_workspace *workspace)
{
    heddle_bytes_reset(&workspace->scratch, 0);
    heddle_bytes_reset(&workspace->head, 0);
    heddle_bytes_reset(&workspace->block, 0);
    free(workspace->fields);
    *workspace = (heddle_h2_workspace){0};
}

/* -- the end ------------------------------------------------------------------------------------------------------- */

bool heddle_h2_fail(heddle_h2_session *session, heddle_h2_error error, const char *reason)
{
    if (!heddle_h2_is_open(session))
        return false;
    heddle_h2_enter_stage(session, HEDDLE_H2_AT_END);
    session->reason = reason;
    heddle_h2_note_output(session);
    heddle_h2_write_goaway(&session->output, session->last_processed, error, reason);
    /* From last to first: if a stream is removed from the array meanwhile, the streams before it don't move. */
    for (uint32_t i = session->stream_count; i > 0; i--) {
        if (i > session->stream_count)
            continue;
        heddle_h2_stream *stream = session->streams[i - 1];
        if (heddle_h2_state_is_closed(stream->state))
            continue;
        bool held = stream->held;
        heddle_h2_move_stream(session, stream, HEDDLE_H2_SENT_RESET);
        if (held)
            session->operations->on_reset(session, stream, error);
    }
    return false;
}

void heddle_h2_abort(heddle_h2_session *session, int64_t now, heddle_h2_error error)
{
    session->now = now;
    heddle_h2_enter(session);
    heddle_h2_fail(session, error, "");
    heddle_h2_leave(session);
}

/* -- frames on streams --------------------------------------------------------------------------------------------- */

/*
 * Returns the stream's next state, or how the frame is handled (HEDDLE_H2_IGNORE and the values after it). Fails the
 * connection if the frame is a connection error.
 */
static uint8_t judge_stream(heddle_h2_session *session, uint32_t id, heddle_h2_event event)
{
    uint8_t verdict = heddle_h2_transitions[heddle_h2_stream_state(session, id)][event];
    if (verdict == HEDDLE_H2_WRONG)
        heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "a frame on a stream that is not open");
    else if (verdict == HEDDLE_H2_CLOSED_CONNECTION)
        heddle_h2_fail(session, HEDDLE_H2_STREAM_CLOSED, "a frame on a stream that has ended");
    return verdict;
}

static void begin_data(heddle_h2_session *session, const heddle_h2_frame *frame)
{
    uint8_t verdict = judge_stream(session, frame->stream, HEDDLE_H2_GOT_DATA);
    if (frame->flags & HEDDLE_H2_PADDED && frame->length == 0)
        heddle_h2_fail(session, HEDDLE_H2_FRAME_SIZE_ERROR, "padded DATA without the size of its padding");
    if (!heddle_h2_is_open(session))
        return;
    session->receive_window -= frame->length;
    if (session->receive_window < 0) {
        heddle_h2_fail(session, HEDDLE_H2_FLOW_CONTROL_ERROR, "DATA exceeds the connection's window");
        return;
    }
    heddle_h2_stream *stream = verdict < HEDDLE_H2_STATES ? heddle_h2_find_stream(session, frame->stream) : NULL;
    if (stream && (stream->receive_window -= frame->length) < 0) {
        heddle_h2_fail_stream(session, frame->stream, HEDDLE_H2_FLOW_CONTROL_ERROR);
        stream = NULL;
    } else if (verdict == HEDDLE_H2_CLOSED_STREAM) {
        heddle_h2_fail_stream(session, frame->stream, HEDDLE_H2_STREAM_CLOSED);
    } else if (verdict == HEDDLE_H2_IGNORE) {
        heddle_h2_count_control(session);
    }
    if (!stream && heddle_h2_is_open(session))
        heddle_h2_credit(session, NULL, frame->length);
    session->skipped = !stream;
    session->padding_known = !(frame->flags & HEDDLE_H2_PADDED);
    session->data_left = frame->length;
}

/*
 * Reads the first byte of padded DATA, which is the size of the padding at its end (RFC 9113, 6.1). The padding counts
 * against the windows, so it is credited to them here.
 */
static bool take_padding(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_piece *piece)
{
    if (session->padding_known || piece->size == 0)
        return true;
    uint32_t padding = *piece->bytes++;
    piece->size--;
    if (padding >= session->data_left)
        return heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "the padding of DATA is longer than its frame");
    session->padding_known = true;
    session->data_left -= padding + 1;
    heddle_h2_credit(session, stream, padding + 1);
    return heddle_h2_is_open(session);
}

/* Discards bytes of a DATA frame, and credits them to the connection's window. */
static void skip_data(heddle_h2_session *session, uint32_t size)
{
    uint32_t part = size < session->data_left ? size : session->data_left;
    session->data_left -= part;
    heddle_h2_credit(session, NULL, part);
}

static void take_data(heddle_h2_session *session, heddle_h2_piece piece, bool last)
{
    uint32_t id = session->reader.frame.stream;
    bool end = last && session->reader.frame.flags & HEDDLE_H2_END_STREAM;
    heddle_h2_stream *stream = heddle_h2_find_stream(session, id);
    if (!stream || !heddle_h2_state_receives(stream->state)) { /* the stream has ended within this frame */
        skip_data(session, piece.size);
        return;
    }
    if (!take_padding(session, stream, &piece))
        return;
    if (session->is_client && !stream->answered) {
        skip_data(session, piece.size);
        heddle_h2_fail_stream_because(session, id, HEDDLE_H2_PROTOCOL_ERROR, "DATA before the response's head");
        return;
    }
    uint32_t size = piece.size < session->data_left ? piece.size : session->data_left;
    session->data_left -= size;
    if (stream->body_left >= 0 && (stream->body_left -= size) < 0) {
        heddle_h2_credit(session, NULL, size);
        heddle_h2_fail_stream_because(session, id, HEDDLE_H2_PROTOCOL_ERROR, "DATA exceeds the content-length");
        return;
    }
    if (stream->rejected || !stream->held) {
        heddle_h2_credit(session, stream, size);
    } else if (size > 0) {
        stream->unconsumed += size;
        session->operations->on_data(session, stream, (const char *)piece.bytes, size);
    }
    stream = heddle_h2_find_stream(session, id);
    if (end && stream && heddle_h2_is_open(session) && heddle_h2_state_receives(stream->state))
        heddle_h2_complete_message(session, stream);
}

static void begin_headers(heddle_h2_session *session, const heddle_h2_frame *frame)
{
    uint32_t id = frame->stream;
    if (id % 2 == 0 || (session->is_client && id > session->last_stream)) {
        heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "HEADERS on a stream that the client can't have opened");
        return;
    }
    uint8_t verdict = judge_stream(session, id, HEDDLE_H2_GOT_HEADERS);
    if (!heddle_h2_is_open(session))
        return;
    if (verdict == HEDDLE_H2_IGNORE && !heddle_h2_count_control(session))
        return;
    session->block_stream = id;
    session->block_ends_stream = frame->flags & HEDDLE_H2_END_STREAM;
    session->block_verdict = verdict;
    session->block_self_dependent = false;
    session->block_continuations = 0;
    session->block_since = session->now;
}

/* Adds the fragment of a frame to the header block; the frame with END_HEADERS completes the block. */
static void take_fragment(heddle_h2_session *session, const uint8_t *bytes, uint32_t size)
{
    size_t limit = heddle_h2_decode_limit(session->limits);
    bool whole = session->reader.frame.flags & HEDDLE_H2_END_HEADERS;
    if (heddle_bytes_left(&session->block) + size > limit) {
        heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, "a header block is too large");
        return;
    }
    if (whole && heddle_bytes_left(&session->block) == 0) {
        heddle_h2_take_block(session, bytes, size);
    } else if (!heddle_bytes_add(&session->block, bytes, size)) {
        heddle_h2_fail_without_memory(session);
    } else if (whole) {
        heddle_h2_take_block(session, (const uint8_t *)session->block.bytes, session->block.size);
    } else {
        return;
    }
    heddle_bytes_reset(&session->block, 0);
    session->block_stream = 0;
}

/* Finds the fragment of the header block between the priority of RFC 7540 and the padding (RFC 9113, 6.2). */
static void take_headers(heddle_h2_session *session, const uint8_t *bytes, uint32_t size)
{
    uint8_t flags = session->reader.frame.flags;
    uint32_t padding = 0, before = 0;
    if (flags & HEDDLE_H2_PADDED) {
        padding = size > 0 ? bytes[0] : 0;
        before = 1;
    }
    if (flags & HEDDLE_H2_HAS_PRIORITY)
        before += 5;
    if (before > size) {
        heddle_h2_fail(session, HEDDLE_H2_FRAME_SIZE_ERROR, "HEADERS shorter than their flags require");
        return;
    }
    if (padding > size - before) {
        heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "the padding of HEADERS is longer than its frame");
        return;
    }
    if (flags & HEDDLE_H2_HAS_PRIORITY)
        session->block_self_dependent = heddle_h2_get_31(bytes + before - 5) == session->block_stream;
    take_fragment(session, bytes + before, size - before - padding);
}

/* -- rules for a frame's header ------------------------------------------------------------------------------------ */

static void begin_continuation(heddle_h2_session *session)
{
    if (!session->block_stream)
        heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "CONTINUATION without HEADERS");
    else if (++session->block_continuations > session->limits->continuations)
        heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, "too many CONTINUATION frames");
}

typedef enum {
    ON_STREAM,
    ON_CONNECTION,
    ANYWHERE,
} frame_place;

/* For each known type of frame: where it is allowed, and the smallest and largest size of its payload. */
static const struct {
    uint8_t place;
    bool stream_error; /* a wrong size is a stream error (RFC 9113, 6.3), unless the stream is idle */
    uint32_t least, most;
} frame_rules[] = {
    [HEDDLE_H2_DATA] = {ON_STREAM, false, 0, HEDDLE_H2_FRAME_SIZE},
    [HEDDLE_H2_HEADERS] = {ON_STREAM, false, 0, HEDDLE_H2_FRAME_SIZE},
    [HEDDLE_H2_PRIORITY] = {ON_STREAM, true, 5, 5},
    [HEDDLE_H2_RST_STREAM] = {ON_STREAM, false, 4, 4},
    [HEDDLE_H2_SETTINGS] = {ON_CONNECTION, false, 0, HEDDLE_H2_FRAME_SIZE},
    [HEDDLE_H2_PUSH_PROMISE] = {ON_STREAM, false, 4, HEDDLE_H2_FRAME_SIZE},
    [HEDDLE_H2_PING] = {ON_CONNECTION, false, HEDDLE_H2_PING_SIZE, HEDDLE_H2_PING_SIZE},
    [HEDDLE_H2_GOAWAY] = {ON_CONNECTION, false, 8, HEDDLE_H2_FRAME_SIZE},
    [HEDDLE_H2_WINDOW_UPDATE] = {ANYWHERE, false, 4, 4},
    [HEDDLE_H2_CONTINUATION] = {ON_STREAM, false, 0, HEDDLE_H2_FRAME_SIZE},
    [HEDDLE_H2_PRIORITY_UPDATE] = {ON_CONNECTION, false, 4, HEDDLE_H2_FRAME_SIZE},
};

/* Returns false if the frame is an error, or is ignored. */
static bool check_frame(heddle_h2_session *session, const heddle_h2_frame *frame)
{
    if (frame->length > HEDDLE_H2_FRAME_SIZE)
        return heddle_h2_fail(session, HEDDLE_H2_FRAME_SIZE_ERROR, "a frame is larger than 16384 bytes");
    if (session->stage == HEDDLE_H2_AT_FIRST_SETTINGS &&
        (frame->type != HEDDLE_H2_SETTINGS || frame->flags & HEDDLE_H2_ACK))
        return heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "the first frame is not SETTINGS");
    if (session->block_stream &&
        (frame->type != HEDDLE_H2_CONTINUATION || frame->stream != session->block_stream))
        return heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "a frame interrupts a header block");
    bool known = frame->type <= HEDDLE_H2_CONTINUATION || frame->type == HEDDLE_H2_PRIORITY_UPDATE;
    if (!heddle_h2_count_frame(session, frame) || !known)
        return false;
    uint8_t place = frame_rules[frame->type].place;
    if ((place == ON_STREAM && frame->stream == 0) || (place == ON_CONNECTION && frame->stream != 0))
        return heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "a frame of a type that is not allowed on its stream");
    if (frame->length >= frame_rules[frame->type].least && frame->length <= frame_rules[frame->type].most)
        return true;
    if (frame_rules[frame->type].stream_error && heddle_h2_stream_state(session, frame->stream) != HEDDLE_H2_IDLE)
        heddle_h2_fail_stream(session, frame->stream, HEDDLE_H2_FRAME_SIZE_ERROR);
    else
        heddle_h2_fail(session, HEDDLE_H2_FRAME_SIZE_ERROR, "a frame of a size that its type does not allow");
    return false;
}

static void begin_frame(heddle_h2_session *session)
{
    const heddle_h2_frame *frame = &session->reader.frame;
    session->skipped = !check_frame(session, frame);
    if (session->skipped)
        return;
    switch (frame->type) {
    case HEDDLE_H2_DATA:
        begin_data(session, frame);
        break;
    case HEDDLE_H2_HEADERS:
        begin_headers(session, frame);
        break;
    case HEDDLE_H2_CONTINUATION:
        begin_continuation(session);
        break;
    case HEDDLE_H2_PUSH_PROMISE:
        heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "PUSH_PROMISE is not allowed");
        break;
    case HEDDLE_H2_SETTINGS:
        if (frame->length % HEDDLE_H2_SETTING_SIZE != 0 || (frame->flags & HEDDLE_H2_ACK && frame->length > 0))
            heddle_h2_fail(session, HEDDLE_H2_FRAME_SIZE_ERROR, "SETTINGS of an invalid size");
        break;
    case HEDDLE_H2_RST_STREAM:
        session->skipped = judge_stream(session, frame->stream, HEDDLE_H2_GOT_RESET) == HEDDLE_H2_IGNORE;
        if (session->skipped)
            heddle_h2_count_control(session);
        break;
    case HEDDLE_H2_WINDOW_UPDATE:
        if (frame->stream)
            judge_stream(session, frame->stream, HEDDLE_H2_GOT_WINDOW);
        break;
    default:
        break;
    }
}

/* -- complete frames ----------------------------------------------------------------------------------------------- */

static void take_frame(heddle_h2_session *session, const uint8_t *payload, uint32_t size)
{
    const heddle_h2_frame *frame = &session->reader.frame;
    switch (frame->type) {
    case HEDDLE_H2_HEADERS:
        take_headers(session, payload, size);
        break;
    case HEDDLE_H2_CONTINUATION:
        take_fragment(session, payload, size);
        break;
    case HEDDLE_H2_PRIORITY:
        heddle_h2_take_priority(session, frame->stream, payload);
        break;
    case HEDDLE_H2_RST_STREAM: {
        heddle_h2_stream *stream = heddle_h2_find_stream(session, frame->stream);
        if (stream)
            heddle_h2_stream_reset_by_peer(session, stream, heddle_h2_get_32(payload));
        break;
    }
    case HEDDLE_H2_SETTINGS:
        if (frame->flags & HEDDLE_H2_ACK)
            heddle_h2_take_settings_ack(session);
        else
            heddle_h2_take_settings(session, payload, size);
        break;
    case HEDDLE_H2_PING:
        heddle_h2_take_ping(session, frame, payload);
        break;
    case HEDDLE_H2_WINDOW_UPDATE:
        heddle_h2_take_window_update(session, frame->stream, heddle_h2_get_31(payload));
        break;
    case HEDDLE_H2_PRIORITY_UPDATE:
        heddle_h2_take_priority_update(session, payload, size);
        break;
    case HEDDLE_H2_GOAWAY:
        if (session->is_client)
            heddle_h2_take_goaway(session, payload);
        /*
         * A server ignores GOAWAY: the client opens no more streams, and closes the connection when it has its
         * responses.
         */
        break;
    default:
        break;
    }
}

static void take_piece(heddle_h2_session *session, heddle_h2_piece piece, bool last)
{
    if (session->skipped)
        return;
    if (session->reader.frame.type == HEDDLE_H2_DATA) {
        take_data(session, piece, last);
    } else if (last && heddle_bytes_left(&session->gathered) == 0) {
        take_frame(session, piece.bytes, piece.size);
    } else if (!heddle_bytes_add(&session->gathered, piece.bytes, piece.size)) {
        heddle_h2_fail_without_memory(session);
    } else if (last) {
        take_frame(session, (const uint8_t *)session->gathered.bytes, (uint32_t)session->gathered.size);
        heddle_bytes_reset(&session->gathered, 0);
    }
}

/* -- feeding ------------------------------------------------------------------------------------------------------- */

static const uint8_t *take_preface(heddle_h2_session *session, const uint8_t *at, const uint8_t *end)
{
    for (; at < end && session->preface_size < HEDDLE_H2_PREFACE_SIZE; at++) {
        if (*at != (uint8_t)HEDDLE_H2_PREFACE[session->preface_size++]) {
            heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "the connection does not begin with the HTTP/2 preface");
            return end;
        }
    }
    if (session->preface_size == HEDDLE_H2_PREFACE_SIZE)
        heddle_h2_enter_stage(session, HEDDLE_H2_AT_FIRST_SETTINGS);
    return at;
}

bool heddle_h2_fed_enough(const heddle_h2_session *session)
{
    return session->fed_streams >= session->limits->streams_per_feed ||
           session->fed_fields >= session->limits->fields_per_feed;
}

/* Returns false while much output is queued, and when other connections should get their turn. */
static bool wants_more(const heddle_h2_session *session)
{
    return heddle_bytes_left(&session->output) <= HEDDLE_H2_PAUSE_OUTPUT &&
           !heddle_h2_fed_enough(session);
}

size_t heddle_h2_feed(heddle_h2_session *session, int64_t now, const void *bytes, size_t size)
{
    const uint8_t *start = bytes, *at = start, *end = start + size;
    session->now = now;
    session->fed_streams = session->fed_fields = 0;
    heddle_h2_enter(session);
    if (session->stage == HEDDLE_H2_AT_PREFACE)
        at = take_preface(session, at, end);
    heddle_h2_piece piece;
    while (heddle_h2_is_open(session) && wants_more(session)) {
        heddle_h2_reading reading = heddle_h2_read(&session->reader, &at, end, &piece);
        if (reading == HEDDLE_H2_INCOMPLETE)
            break;
        if (reading == HEDDLE_H2_BEGIN)
            begin_frame(session);
        else
            take_piece(session, piece, reading == HEDDLE_H2_LAST_PIECE);
    }
    heddle_h2_leave(session);
    return heddle_h2_is_open(session) ? (size_t)(at - start) : size;
}
