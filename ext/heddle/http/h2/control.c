#include "http/h2/session_state.h"

/* Frames about the connection: SETTINGS, PING, WINDOW_UPDATE, and priorities. */

static void fail_without_memory(heddle_h2_session *session)
{
    heddle_h2_fail(session, HEDDLE_H2_INTERNAL_ERROR, "no memory");
}

/* -- SETTINGS ------------------------------------------------------------------------------------------------------ */

bool heddle_h2_announce_settings(heddle_h2_session *session)
{
    const heddle_h2_limits *limits = session->limits;
    const heddle_h2_setting_value settings[] = {
        {HEDDLE_H2_SET_MAX_CONCURRENT_STREAMS, limits->max_streams},
        {HEDDLE_H2_SET_INITIAL_WINDOW_SIZE, limits->stream_window},
        {HEDDLE_H2_SET_MAX_HEADER_LIST_SIZE, limits->header_limit},
        {HEDDLE_H2_SET_HEADER_TABLE_SIZE, limits->header_table_size},
        {HEDDLE_H2_SET_NO_RFC7540_PRIORITIES, 1},
        {HEDDLE_H2_SET_ENABLE_CONNECT_PROTOCOL, 1}, /* the last one, which is optional */
    };
    unsigned count = sizeof(settings) / sizeof(*settings) - !limits->connect_protocol;
    const heddle_h2_setting_value of_client[] = {
        {HEDDLE_H2_SET_ENABLE_PUSH, 0},
        {HEDDLE_H2_SET_INITIAL_WINDOW_SIZE, limits->stream_window},
        {HEDDLE_H2_SET_MAX_HEADER_LIST_SIZE, limits->header_limit},
    };
    heddle_h2_note_output(session);
    bool written = session->is_client ? heddle_h2_write_settings(&session->output, 0, of_client,
                                                                 sizeof(of_client) / sizeof(*of_client))
                                      : heddle_h2_write_settings(&session->output, 0, settings, count);
    if (!written)
        return false;
    uint32_t more = limits->connection_window > HEDDLE_H2_DEFAULT_WINDOW
                        ? limits->connection_window - HEDDLE_H2_DEFAULT_WINDOW : 0;
    session->receive_window = HEDDLE_H2_DEFAULT_WINDOW + (int64_t)more;
    return more == 0 || heddle_h2_write_window_update(&session->output, 0, more);
}

/* RFC 9113, 6.9.2: windows in use change by the difference, and may become negative. */
static bool change_windows(heddle_h2_session *session, uint32_t window)
{
    int64_t difference = (int64_t)window - session->peer_window;
    for (uint32_t i = 0; i < session->stream_count; i++) {
        heddle_h2_stream *stream = session->streams[i];
        if (stream->send_window + difference > HEDDLE_H2_LARGEST_WINDOW)
            return false;
        stream->send_window += difference;
        heddle_h2_list_stream(session, stream);
    }
    session->peer_window = window;
    return true;
}

static heddle_h2_error take_setting(heddle_h2_session *session, unsigned id, uint32_t value)
{
    switch (id) {
    case HEDDLE_H2_SET_HEADER_TABLE_SIZE:
        heddle_hpack_encoder_limit(&session->encoder, value);
        return HEDDLE_H2_NO_ERROR;
    case HEDDLE_H2_SET_ENABLE_PUSH: /* a server must not set it (RFC 9113, 6.5.2) */
        return value <= (session->is_client ? 0 : 1) ? HEDDLE_H2_NO_ERROR : HEDDLE_H2_PROTOCOL_ERROR;
    case HEDDLE_H2_SET_MAX_CONCURRENT_STREAMS:
        session->peer_streams = value;
        return HEDDLE_H2_NO_ERROR;
    case HEDDLE_H2_SET_ENABLE_CONNECT_PROTOCOL:
    case HEDDLE_H2_SET_NO_RFC7540_PRIORITIES:
        return value <= 1 ? HEDDLE_H2_NO_ERROR : HEDDLE_H2_PROTOCOL_ERROR;
    case HEDDLE_H2_SET_INITIAL_WINDOW_SIZE:
        if (value > HEDDLE_H2_LARGEST_WINDOW || !change_windows(session, value))
            return HEDDLE_H2_FLOW_CONTROL_ERROR;
        return HEDDLE_H2_NO_ERROR;
    case HEDDLE_H2_SET_MAX_FRAME_SIZE: /* Heddle never sends frames larger than the minimum */
        if (value < HEDDLE_H2_FRAME_SIZE || value > HEDDLE_H2_LARGEST_FRAME_SIZE)
            return HEDDLE_H2_PROTOCOL_ERROR;
        return HEDDLE_H2_NO_ERROR;
    default:
        return HEDDLE_H2_NO_ERROR;
    }
}

/* Counts an answer to SETTINGS or PING that the client has not received yet. */
static bool count_answer(heddle_h2_session *session)
{
    if (++session->answers <= session->limits->control_answers)
        return true;
    heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, "too many answers to control frames are waiting");
    return false;
}

void heddle_h2_take_settings(heddle_h2_session *session, const uint8_t *payload, uint32_t size)
{
    if (size / HEDDLE_H2_SETTING_SIZE > session->limits->settings_entries) {
        heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, "too many settings in a frame");
        return;
    }
    for (const uint8_t *at = payload, *end = payload + size; at < end; at += HEDDLE_H2_SETTING_SIZE) {
        unsigned id = (unsigned)at[0] << 8 | at[1];
        heddle_h2_error error = take_setting(session, id, heddle_h2_get_32(at + 2));
        if (error != HEDDLE_H2_NO_ERROR) {
            heddle_h2_fail(session, error, "a setting has a value that it can't have");
            return;
        }
    }
    if (session->stage == HEDDLE_H2_AT_FIRST_SETTINGS) {
        heddle_h2_enter_stage(session, HEDDLE_H2_AT_FRAMES);
        session->idle_since = session->now;
    }
    heddle_h2_note_output(session);
    if (count_answer(session) && !heddle_h2_write_settings(&session->output, HEDDLE_H2_ACK, NULL, 0))
        fail_without_memory(session);
}

void heddle_h2_take_settings_ack(heddle_h2_session *session)
{
    const heddle_h2_limits *limits = session->limits;
    if (session->settings_acknowledged)
        return;
    session->settings_acknowledged = true;
    heddle_hpack_decoder_limit(&session->decoder, limits->header_table_size);
    if (limits->stream_window >= HEDDLE_H2_DEFAULT_WINDOW)
        return;
    for (uint32_t i = 0; i < session->stream_count; i++)
        session->streams[i]->receive_window -= (int64_t)HEDDLE_H2_DEFAULT_WINDOW - limits->stream_window;
}

/* -- PING ---------------------------------------------------------------------------------------------------------- */

void heddle_h2_take_ping(heddle_h2_session *session, const heddle_h2_frame *frame, const uint8_t *payload)
{
    if (frame->flags & HEDDLE_H2_ACK)
        return;
    heddle_h2_note_output(session);
    if (count_answer(session) && !heddle_h2_write_ping(&session->output, HEDDLE_H2_ACK, payload))
        fail_without_memory(session);
}

/* -- windows ------------------------------------------------------------------------------------------------------- */

static void widen_connection(heddle_h2_session *session, uint32_t increment)
{
    if (increment == 0) {
        heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "a WINDOW_UPDATE of 0");
    } else if (session->send_window + increment > HEDDLE_H2_LARGEST_WINDOW) {
        heddle_h2_fail(session, HEDDLE_H2_FLOW_CONTROL_ERROR, "the window is more than 2^31-1");
    } else {
        session->send_window += increment;
    }
}

void heddle_h2_take_window_update(heddle_h2_session *session, uint32_t id, uint32_t increment)
{
    if (id == 0) {
        widen_connection(session, increment);
        return;
    }
    heddle_h2_stream *stream = heddle_h2_find_stream(session, id);
    if (!stream || heddle_h2_state_is_closed(stream->state))
        return;
    if (increment == 0) {
        heddle_h2_fail_stream(session, id, HEDDLE_H2_PROTOCOL_ERROR);
    } else if (stream->send_window + increment > HEDDLE_H2_LARGEST_WINDOW) {
        heddle_h2_fail_stream(session, id, HEDDLE_H2_FLOW_CONTROL_ERROR);
    } else {
        stream->send_window += increment;
        heddle_h2_list_stream(session, stream);
    }
}

/* Announces credit when there is enough for a frame. */
static bool update_window(heddle_h2_session *session, uint32_t id, uint32_t *credit, int64_t *window, uint32_t full)
{
    if (*credit < full / 2 || *credit == 0)
        return true;
    heddle_h2_note_output(session);
    *window += *credit;
    uint32_t increment = *credit;
    *credit = 0;
    return heddle_h2_write_window_update(&session->output, id, increment);
}

/* Adds to the credit of the connection's window, and of the stream's. */
static void add_credit(heddle_h2_session *session, uint32_t shared, heddle_h2_stream *stream, uint32_t own)
{
    const heddle_h2_limits *limits = session->limits;
    if (!heddle_h2_is_open(session))
        return;
    uint32_t connection_window = limits->connection_window > HEDDLE_H2_DEFAULT_WINDOW ? limits->connection_window
                                                                                       : HEDDLE_H2_DEFAULT_WINDOW;
    session->credit += shared;
    bool written = update_window(session, 0, &session->credit, &session->receive_window, connection_window);
    if (written && stream && heddle_h2_state_receives(stream->state)) {
        stream->credit += own;
        written = update_window(session, stream->id, &stream->credit, &stream->receive_window, limits->stream_window);
    }
    if (!written)
        fail_without_memory(session);
}

void heddle_h2_credit(heddle_h2_session *session, heddle_h2_stream *stream, uint32_t size)
{
    add_credit(session, size, stream, size);
}

static uint32_t cut_size(size_t size, uint32_t most)
{
    return size < most ? (uint32_t)size : most;
}

void heddle_h2_keep(heddle_h2_session *session, heddle_h2_stream *stream, size_t size)
{
    heddle_h2_enter(session);
    uint32_t part = cut_size(size, stream->unconsumed - stream->kept);
    stream->kept += part;
    add_credit(session, part, NULL, 0);
    heddle_h2_leave(session);
}

void heddle_h2_consume(heddle_h2_session *session, heddle_h2_stream *stream, size_t size)
{
    heddle_h2_enter(session);
    uint32_t part = cut_size(size, stream->unconsumed), kept = cut_size(part, stream->kept);
    stream->unconsumed -= part;
    stream->kept -= kept;
    add_credit(session, part - kept, stream, part);
    heddle_h2_leave(session);
}

/* -- priorities ---------------------------------------------------------------------------------------------------- */

/* RFC 9113, 5.3.2: the priorities of RFC 7540 are ignored. Of its rules one is checked: no stream depends on itself. */
void heddle_h2_take_priority(heddle_h2_session *session, uint32_t id, const uint8_t *payload)
{
    if (heddle_h2_get_31(payload) != id)
        return;
    if (heddle_h2_stream_state(session, id) == HEDDLE_H2_IDLE) /* an idle stream can't be reset */
        heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "a stream depends on itself");
    else
        heddle_h2_fail_stream(session, id, HEDDLE_H2_PROTOCOL_ERROR);
}

/* Keeps the priority of a stream that has not begun. */
static void keep_priority(heddle_h2_session *session, uint32_t id, uint8_t urgency, bool incremental)
{
    if (!heddle_h2_allocate_schedule(session)) {
        fail_without_memory(session);
        return;
    }
    heddle_h2_schedule *schedule = session->schedule;
    unsigned index = schedule->early_next++ % HEDDLE_H2_EARLY_PRIORITIES;
    for (unsigned i = 0; i < HEDDLE_H2_EARLY_PRIORITIES; i++) {
        if (schedule->early_streams[i] == id)
            index = i;
    }
    schedule->early_streams[index] = id;
    schedule->early_bits[index] = (uint8_t)(urgency | (incremental ? HEDDLE_H2_URGENCIES : 0));
}

void heddle_h2_take_priority_update(heddle_h2_session *session, const uint8_t *payload, uint32_t size)
{
    uint32_t id = heddle_h2_get_31(payload);
    /* nothing was pushed, and servers send no PRIORITY_UPDATE (RFC 9218, 7.1) */
    if (id % 2 == 0 || session->is_client) {
        heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "a PRIORITY_UPDATE of no request");
        return;
    }
    uint8_t urgency = HEDDLE_H2_DEFAULT_URGENCY;
    bool incremental = false;
    heddle_h2_parse_priority((const char *)payload + 4, size - 4, &urgency, &incremental);
    heddle_h2_stream *stream = heddle_h2_find_stream(session, id);
    if (stream)
        heddle_h2_set_priority(session, stream, urgency, incremental);
    else if (id > session->last_stream)
        keep_priority(session, id, urgency, incremental);
}
