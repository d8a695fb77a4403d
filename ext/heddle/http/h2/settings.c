#include "http/h2/session_state.h"

/* SETTINGS (RFC 9113, 6.5) and PING (6.7). */

/* -- SETTINGS ------------------------------------------------------------------------------------------------------ */

bool heddle_h2_announce_settings(heddle_h2_session *session)
{
    const heddle_h2_limits *limits = session->limits;
    const heddle_h2_setting_value settings[] = {
        {HEDDLE_H2_SET_MAX_CONCURRENT_STREAMS, limits->max_streams},
        {HEDDLE_H2_SET_INITIAL_WINDOW_SIZE, limits->stream_window},
        {HEDDLE_H2_SET_MAX_HEADER_LIST_SIZE, limits->header_limit},
        {HEDDLE_H2_SET_NO_RFC7540_PRIORITIES, 1},
        {HEDDLE_H2_SET_ENABLE_CONNECT_PROTOCOL, 1}, /* the last entry, which is optional */
    };
    unsigned count = sizeof(settings) / sizeof(*settings) - !limits->connect_protocol;
    const heddle_h2_setting_value client_settings[] = {
        {HEDDLE_H2_SET_ENABLE_PUSH, 0},
        {HEDDLE_H2_SET_INITIAL_WINDOW_SIZE, limits->stream_window},
        {HEDDLE_H2_SET_MAX_HEADER_LIST_SIZE, limits->header_limit},
    };
    heddle_h2_note_output(session);
    bool written = session->is_client ? heddle_h2_write_settings(&session->output, 0, client_settings,
                                                                 sizeof(client_settings) / sizeof(*client_settings))
                                      : heddle_h2_write_settings(&session->output, 0, settings, count);
    if (!written)
        return false;
    uint32_t more = limits->connection_window > HEDDLE_H2_DEFAULT_WINDOW
                        ? limits->connection_window - HEDDLE_H2_DEFAULT_WINDOW : 0;
    session->receive_window = HEDDLE_H2_DEFAULT_WINDOW + (int64_t)more;
    return more == 0 || heddle_h2_write_window_update(&session->output, 0, more);
}

/*
 * Applies a new SETTINGS_INITIAL_WINDOW_SIZE. The windows of streams that can still send change by the difference, and
 * may become negative (RFC 9113, 6.9.2). Returns false if a window would be too large.
 */
static bool change_windows(heddle_h2_session *session, uint32_t window)
{
    int64_t difference = (int64_t)window - session->peer_window;
    for (uint32_t i = 0; i < session->stream_count; i++) {
        heddle_h2_stream *stream = session->streams[i];
        if (!heddle_h2_state_sends(stream->state))
            continue;
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
    case HEDDLE_H2_SET_ENABLE_PUSH: /* a server must not set it to 1 (RFC 9113, 6.5.2) */
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
    case HEDDLE_H2_SET_MAX_FRAME_SIZE: /* only checked: Heddle's frames are never larger than the lowest valid value */
        if (value < HEDDLE_H2_FRAME_SIZE || value > HEDDLE_H2_LARGEST_FRAME_SIZE)
            return HEDDLE_H2_PROTOCOL_ERROR;
        return HEDDLE_H2_NO_ERROR;
    default:
        return HEDDLE_H2_NO_ERROR;
    }
}

/*
 * Counts an acknowledgement of SETTINGS or PING that is about to be queued. If too many are queued, fails the session
 * and returns false.
 */
static bool count_answer(heddle_h2_session *session)
{
    if (++session->answers <= session->limits->control_answers)
        return true;
    return heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, "too many acknowledgements are queued");
}

void heddle_h2_take_settings(heddle_h2_session *session, const uint8_t *payload, uint32_t size)
{
    if (size / HEDDLE_H2_SETTING_SIZE > session->limits->settings_entries) {
        heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, "a SETTINGS frame has too many entries");
        return;
    }
    for (const uint8_t *at = payload, *end = payload + size; at < end; at += HEDDLE_H2_SETTING_SIZE) {
        unsigned id = (unsigned)at[0] << 8 | at[1];
        heddle_h2_error error = take_setting(session, id, heddle_h2_get_32(at + 2));
        if (error != HEDDLE_H2_NO_ERROR) {
            heddle_h2_fail(session, error, "a setting has an invalid value");
            return;
        }
    }
    if (session->stage == HEDDLE_H2_AT_FIRST_SETTINGS) {
        heddle_h2_enter_stage(session, HEDDLE_H2_AT_FRAMES);
        session->idle_since = session->now;
    }
    heddle_h2_note_output(session);
    if (count_answer(session) && !heddle_h2_write_settings(&session->output, HEDDLE_H2_ACK, NULL, 0))
        heddle_h2_fail_without_memory(session);
}

void heddle_h2_take_settings_ack(heddle_h2_session *session)
{
    const heddle_h2_limits *limits = session->limits;
    if (session->settings_acknowledged)
        return;
    session->settings_acknowledged = true;
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
        heddle_h2_fail_without_memory(session);
}
